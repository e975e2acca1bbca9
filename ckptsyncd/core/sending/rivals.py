"""Which committed editions may have the very content that has just settled."""

from __future__ import annotations

from ckptsyncd.core.records.memory import EditionRow, SafeRow


def rivals_of(
    save_id: str, committed: set[int], row: EditionRow | None, safe: SafeRow | None
) -> tuple[int, ...]:
    """Return the committed editions whose content this one may be, newest first.

    Where the ledger knows this edition's number: only a commit of that number, which the ledger may
    have missed. Where it is known what is safe of this name: what was committed since, and that one
    itself if it has the same sizes and times (it was brought here again).
    """
    if row is not None:
        return (row.number,) if row.number in committed else ()
    if safe is not None:
        is_again = safe.manifest.save_id == save_id
        least = safe.manifest.edition + (not is_again)
        committed = {number for number in committed if number >= least}
    return tuple(sorted(committed, reverse=True))
