"""Faults in what several machines do together, each as a change of the program's text."""

from __future__ import annotations

from tests.mutants.mutants import Mutant

CREW_MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "committed-without-the-last-part",
        (
            (
                "core/sending/together/replies.py",
                "    if len(joint.parts) == case.scene.policy.nodes:\n",
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
)
