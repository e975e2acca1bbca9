"""Faults that somebody might build into the program, each as a change of its text.

Every change must fit exactly one place: a fault that does not apply any more says so.
"""

from __future__ import annotations

from dataclasses import dataclass

Edit = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Mutant:
    """One fault: its name, and its edits as (module, old text, new text).

    ``first`` is the night from which it is looked for: some show in one of a thousand.
    """

    name: str
    edits: tuple[Edit, ...]
    first: int = 1


def _one(name: str, module: str, old: str, new: str, first: int = 1) -> Mutant:
    return Mutant(name, ((module, old, new),), first)


MUTANTS: tuple[Mutant, ...] = (
    _one(
        "object-name-reused",
        "core/records/names.py",
        "    if edition == 1 and not salt:\n",
        "    if True:\n",
    ),
    Mutant(
        "manifest-before-finish",
        (
            (
                "core/sending/upload.py",
                "    elif edition.files:\n",
                "    elif any(f.todo or f.begun is None for f in edition.files.values()):\n",
            ),
            (
                "core/sending/upload.py",
                "        row = edition.stored[fact.path]\n",
                (
                    "        row = edition.stored.get(fact.path) or stored_file(fact, "
                    "edition.files[fact.path].key, 0, '', 0)\n"
                ),
            ),
            (
                "core/sending/edition.py",
                "not (self.files or self.looked)",
                "not (any(f.todo or not f.begun for f in self.files.values()) or self.looked)",
            ),
        ),
    ),
    Mutant(
        "no-second-look",
        (
            (
                "core/sending/upload.py",
                "    elif not edition.looked:\n",
                "    elif edition.looked is None:\n",
            ),
        ),
    ),
    Mutant(
        "second-look-by-path",
        (
            (
                "edge/scanner.py",
                "disk.look_again(order.errand.save_id, order.listing)",
                "_by_path(order, disk)",
            ),
            (
                "edge/scanner.py",
                "class Scanner:\n",
                """def _by_path(order: LookAgain, disk: Disk) -> str:
    try:
        there = [next(disk.walk(f.path, recursive=False), None) for f in order.listing.files]
    except OSError as error:
        return words(error)
    return "" if there == list(order.listing.files) else "it changed"


class Scanner:
""",
            ),
        ),
    ),
    _one(
        "edition-from-a-local-counter",
        "core/sending/editions.py",
        "        return max(self.numbers.get(checkpoint, 0), taken) + 1\n",
        "        return self.numbers.get(checkpoint, 0) + 1\n",
    ),
    Mutant(
        "epoch-ignored",
        (
            (
                "core/sending/series.py",
                'return series.epoch_taken == "yes" and latest.epoch_of(node) > series.epoch',
                "return False",
            ),
            (
                "core/sending/series.py",
                "    return found >= series.last_epoch\n",
                "    return False\n",
            ),
        ),
    ),
    Mutant(
        "latest-moved-backwards",
        (
            (
                "core/sending/runs.py",
                "if series.best is None or manifest.rank() > series.best.rank():",
                "if True:",
            ),
            (
                "core/sending/series.py",
                "series.best.rank() > current)",
                "series.best.rank() != current)",
            ),
            (
                "core/sending/series.py",
                "current.rank >= best.rank()",
                "current.rank == best.rank()",
            ),
        ),
    ),
    _one(
        "piece-trusted-after-the-listing-changed",
        "core/sending/editions.py",
        "known = row is not None and row.number and row.settled.listing == edition.listing",
        "known = row is not None and row.number",
        first=901,
    ),
    _one(
        "ambiguous-finish-taken-as-failure",
        "core/sending/progress.py",
        '        progress.doubt = failed.ambiguous or failed.kind in ("lost", "gone")\n',
        "        progress.restart()\n",
    ),
    _one(
        "adopted-without-checksum",
        "core/sending/progress.py",
        "    if same_sums(edition.sums, edition.rival):\n",
        "    if True:\n",
    ),
    # A few more of our own -----------------------------------------------------------------------
    _one(
        "anybodys-claim-joined",
        "core/sending/progress.py",
        "        same = Claim.decode(data).save_id == edition.save_id\n",
        "        same = bool(Claim.decode(data))\n",
    ),
    Mutant(
        "committed-editions-not-compared",
        (
            (
                "core/sending/rivals.py",
                "    return tuple(sorted(committed, reverse=True))\n",
                "    return ()\n",
            ),
        ),
    ),
    Mutant(
        "safe-by-the-ledger-alone",
        (
            (
                "core/sending/editions.py",
                "        row = self.catalog.read(checkpoint, data)\n",
                "        row = self.catalog.unconfirmed.pop(checkpoint)\n",
            ),
            (
                "core/sending/catalog.py",
                "            if row.manifest.edition in self.of(checkpoint):\n",
                "            if True:\n",
            ),
        ),
    ),
    _one(
        "number-used-again-after-a-void",
        "core/sending/editions.py",
        "        return max(self.numbers.get(checkpoint, 0), taken) + 1\n",
        "        return taken + 1\n",
    ),
    _one(
        "late-answer-believed",
        "core/sending/answers.py",
        "    if waiting is None or message.fact.key != waiting.key:\n",
        "    if waiting is None:\n",
        first=401,
    ),
    _one(
        "doubtful-seal-taken-as-done",
        "core/sending/answers.py",
        "            _doubt(edition, purpose)\n",
        "            _sealed(case, message) if purpose == 'seal' else _doubt(edition, purpose)\n",
    ),
    _one(
        "foreign-object-taken-as-ours",
        "core/sending/progress.py",
        "    if fact.size == progress.fact.size and seen.crc64nvme is not None and same:\n",
        "    if seen.crc64nvme is not None:\n",
    ),
    _one(
        "latest-not-read-again",
        "core/sending/runs.py",
        "            series.latest_known = False\n",
        "            pass\n",
    ),
    _one(
        "safe-kept-in-the-ledger-as-on-its-way",
        "core/sending/editions.py",
        "        notes.ledger.append(memory.forget_edition(save_id))\n",
        "",
    ),
    _one(
        "pins-never-let-go",
        "core/sending/editions.py",
        '        errand = Errand("unpin", edition.checkpoint, edition.save_id)\n'
        "        self.unpins[errand] = Unpin(errand)\n",
        "",
    ),
    _one(
        "begun-uploads-left-behind",
        "core/sending/leftovers.py",
        "            self.garbage[_errand(begun)] = begun\n"
        "            notes.ledger.append(memory.garbage_row(begun))\n",
        "            pass\n",
    ),
)
