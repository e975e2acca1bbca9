"""Removing the local copy of a safe checkpoint: the very files that were committed, no others.

Everything is compared before the first file goes. What the trainer wrote last (its marker) goes
first, so that what a kill leaves behind does not look whole. Directories go where they are empty.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator

from ckptsyncd.core.facts import FileFact, Listing
from ckptsyncd.edge.seen import difference, fact_of

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def discard(root: str, listing: Listing) -> None:
    """Remove the files of a listing; raises OSError where one of them is another one now.

    ESTALE: nothing was removed. What is gone already counts as removed.
    """
    for fact in listing.files:
        with contextlib.suppress(FileNotFoundError), _parent(root, fact.path) as (place, name):
            _check(fact, name, place)
    for fact in sorted(listing.files, key=lambda fact: -fact.mtime_ns):
        with contextlib.suppress(FileNotFoundError), _parent(root, fact.path) as (place, name):
            _check(fact, name, place)
            os.unlink(name, dir_fd=place)
    for path in _folders(listing):
        with contextlib.suppress(OSError), _parent(root, path) as (place, name):
            os.rmdir(name, dir_fd=place)  # not empty: others' files are in it


def _check(fact: FileFact, name: str, place: int) -> None:
    """Raise ESTALE where what has the name is not what was committed."""
    status = os.stat(name, dir_fd=place, follow_symlinks=False)
    target = os.readlink(name, dir_fd=place) if fact.kind == "symlink" else None
    now = fact_of(fact.path, status, target)
    reason = difference(fact, now) if now is not None else f"{fact.path} is no file any more"
    if reason:
        raise OSError(errno.ESTALE, reason)


def _folders(listing: Listing) -> list[str]:
    """Return the directories of a checkpoint, the innermost first; its own is the outermost."""
    return sorted((fact.path for fact in listing.folders), key=lambda path: -path.count("/"))


@contextlib.contextmanager
def _parent(root: str, path: str) -> Iterator[tuple[int, str]]:
    """Open the directory of a path, never through a symlink below the root; yield it and a name."""
    *parents, name = path.split("/")
    place = os.open(root, _DIRECTORY & ~os.O_NOFOLLOW)
    try:
        for parent in parents:
            inner = os.open(parent, _DIRECTORY, dir_fd=place)
            os.close(place)
            place = inner
        yield place, name
    finally:
        os.close(place)
