"""What was whole, by what it holds: a checkpoint that is given another name still is one.

Its marker may not look newest any more: our own links, a chown or a backup moved the ctimes of its
files, and a listing under another name sees them for the first time.
"""

from __future__ import annotations

from ckptsyncd.core.facts import FileFact, Listing
from ckptsyncd.core.seeing.units import relative

#: So many files of them are remembered, and the newest content always (guessed: a thousand
#: checkpoints of ten files).
MOST_FILES = 10_000

_Likeness = tuple[str, str, int, int, int, int, str | None]


class Contents:
    """The contents that were found whole. They are told apart by their inodes, sizes and mtimes."""

    def __init__(self) -> None:
        """Know none."""
        self._kept: dict[tuple[int, int], tuple[str, Listing]] = {}
        self._files = 0

    def keep(self, name: str, listing: Listing) -> None:
        """Note that a checkpoint of this name was whole."""
        if not listing.files:
            return
        self._drop(_key(listing))
        while self._kept and self._files + len(listing.files) > MOST_FILES:
            self._drop(next(iter(self._kept)))
        self._kept[_key(listing)] = (name, listing)
        self._files += len(listing.files)

    def has(self, name: str, listing: Listing) -> bool:
        """Return whether these very files, by the same names below it, were whole before."""
        found = self._kept.get(_key(listing)) if listing.files else None
        if found is None or len(found[1].files) != len(listing.files):
            return False
        pairs = zip(listing.files, found[1].files, strict=True)
        return all(_likeness(name, now) == _likeness(found[0], then) for now, then in pairs)

    def _drop(self, key: tuple[int, int]) -> None:
        if key in self._kept:
            _, listing = self._kept.pop(key)
            self._files -= len(listing.files)


def _key(listing: Listing) -> tuple[int, int]:
    """Return what one file can have under one name only; the same prefix leaves their order."""
    return listing.files[0].device, listing.files[0].inode


def _likeness(name: str, fact: FileFact) -> _Likeness:
    rel = relative(name, fact.path)
    return rel, fact.kind, fact.device, fact.inode, fact.size, fact.mtime_ns, fact.target
