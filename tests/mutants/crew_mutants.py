"""Faults in what several machines do together, each as a change of the program's text."""

from __future__ import annotations

from tests.mutants.mutants import Mutant

CREW_MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "committed-without-the-last-part",
        (
            (
                "core/sending/together/replies.py",
                "    if joint.parts.keys() >= set(joint.nodes(case.scene.policy.nodes)):\n",
                "    if len(joint.parts) >= case.scene.policy.nodes - 1:\n",
            ),
        ),
    ),
    Mutant(
        "another-save-joined",
        (
            (
                "core/sending/together/replies.py",
                "    elif claim is None or not _is_same(case, claim):\n",
                "    elif claim is None:\n",
            ),
        ),
    ),
    Mutant(
        "no-window",
        (
            (
                "core/sending/together/saves.py",
                "and apart <= policy.save_window_seconds",
                "and apart >= 0.0",
            ),
        ),
    ),
    Mutant(
        "part-before-its-files",
        (
            (
                "core/sending/upload.py",
                "    elif edition.files:\n",
                "    elif edition.files and not scene.is_joint:\n",
            ),
        ),
    ),
    Mutant(
        "committed-without-what-the-index-names",
        (
            (
                "core/sending/together/merging.py",
                "reason = _missing(ordered, files) or (",
                'reason = "" if not is_counted else (',
            ),
        ),
    ),
    Mutant(
        "committed-without-an-index",
        (
            (
                "core/sending/together/merging.py",
                'or ("" if is_counted else _undecided(ordered))',
                'or ""',
            ),
        ),
    ),
)
