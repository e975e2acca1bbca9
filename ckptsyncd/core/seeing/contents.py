"""What was whole, by what it holds: a checkpoint that is renamed, moved or copied still is one.

Its marker may not look newest any more: our own links, a chown or a backup moved the ctimes of its
files, a copy was made in the order of names, and a listing elsewhere sees them for the first time.
"""

from __future__ import annotations

from ckptsyncd.core.facts import FileFact, Listing
from ckptsyncd.core.seeing.units import relative

#: So many files of them are remembered, and the newest content always (guessed: a thousand
#: checkpoints of ten files).
MOST_FILES = 10_000

_Likeness = tuple[str, str, int, int, int, int, str | None]


class Contents:
    """The contents that were found whole. They are told apart by their sizes and mtimes.

    A copy that keeps times gives a file its time after its last byte: where all files have those
    of a whole one, all of it is there. Whether the bytes are the same too is not said by this.
    Where all files have one time (some archives give them that) their inodes have to be the same.
    """

    def __init__(self) -> None:
        """Know none."""
        self._kept: dict[int, tuple[str, Listing]] = {}
        self._files = 0

    def keep(self, name: str, listing: Listing) -> None:
        """Note that a checkpoint of this name was whole."""
        if not listing.files:
            return
        key = hash(_likeness(name, listing))
        self._drop(key)
        while self._kept and self._files + len(listing.files) > MOST_FILES:
            self._drop(next(iter(self._kept)))
        self._kept[key] = (name, listing)
        self._files += len(listing.files)

    def has(self, name: str, listing: Listing) -> bool:
        """Return whether such files, by the same names below it, were whole before."""
        likeness = _likeness(name, listing)
        found = self._kept.get(hash(likeness))
        return found is not None and _likeness(*found) == likeness

    def _drop(self, key: int) -> None:
        if key in self._kept:
            _, listing = self._kept.pop(key)
            self._files -= len(listing.files)


def _likeness(name: str, listing: Listing) -> tuple[_Likeness, ...]:
    times = {fact.mtime_ns for fact in listing.files if fact.kind == "file"}
    return tuple(_like(name, fact, has_time=len(times) > 1) for fact in listing.files)


def _like(name: str, fact: FileFact, *, has_time: bool) -> _Likeness:
    # A link's own time is rarely kept, and its target says everything.
    mtime_ns = fact.mtime_ns if fact.kind == "file" else 0
    number = (0, 0) if has_time else (fact.device, fact.inode)
    return relative(name, fact.path), fact.kind, *number, fact.size, mtime_ns, fact.target
