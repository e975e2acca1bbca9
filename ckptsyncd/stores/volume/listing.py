"""The objects of a volume: found in the order of their keys, removed with their empty folders."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ckptsyncd.core.facts import ObjectFact
from ckptsyncd.errors import Missing
from ckptsyncd.stores.volume.faults import faults
from ckptsyncd.stores.volume.tree import WORKROOM, Tree

#: Why a directory stays: somebody put something in, took it away first, or may not remove it.
_STAYS = frozenset(
    {errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT, errno.EBUSY, errno.EACCES, errno.EPERM}
)


class _Entry(NamedTuple):
    """A name in a directory; a directory's ends in ``/``, which also sorts it where it belongs."""

    name: str
    size: int


def objects_below(tree: Tree, prefix: str) -> Iterator[ObjectFact]:
    """Yield every regular file whose key starts with the prefix, sorted by the bytes of its key.

    Symlinks, sockets, names that are no UTF-8 and the workroom are no objects. What vanishes
    meanwhile is left out.
    """
    tree.check()
    yield from _below(tree, (), prefix)


def remove_object(tree: Tree, names: Sequence[str]) -> None:
    """Remove a file durably, then every directory above it that is empty; success where none is."""
    what = "/".join(names)
    try:
        with tree.folder(names[:-1]) as folder, faults(what, writes=True):
            if not _unlinked(folder, names[-1]):
                return
            os.fsync(folder)
    except Missing:
        tree.check()
        return
    for depth in range(len(names) - 1, 0, -1):
        if not _removed_if_empty(tree, names[:depth]):
            return


def _below(tree: Tree, names: tuple[str, ...], prefix: str) -> Iterator[ObjectFact]:
    if names == WORKROOM:
        return
    above = "".join(f"{name}/" for name in names)
    for entry in _entries(tree, names):
        key = above + entry.name
        if not entry.name.endswith("/"):
            if key.startswith(prefix):
                yield ObjectFact(key, entry.size)
        elif key.startswith(prefix) or prefix.startswith(key):
            yield from _below(tree, (*names, entry.name[:-1]), prefix)


def _entries(tree: Tree, names: tuple[str, ...]) -> list[_Entry]:
    try:
        with tree.folder(names) as folder, faults("/".join(names)), os.scandir(folder) as rows:
            found = [entry for row in rows if (entry := _entry(row))]
    except Missing:
        return []
    return sorted(found, key=lambda entry: entry.name.encode())


def _entry(row: os.DirEntry[str]) -> _Entry | None:
    try:
        row.name.encode()
        if row.is_dir(follow_symlinks=False):
            return _Entry(row.name + "/", 0)
        if row.is_file(follow_symlinks=False):
            return _Entry(row.name, row.stat(follow_symlinks=False).st_size)
    except (FileNotFoundError, UnicodeEncodeError):
        return None
    return None


def _unlinked(folder: int, name: str) -> bool:
    """Unlink; a directory of that name is no object."""
    try:
        os.unlink(name, dir_fd=folder)
    except IsADirectoryError:
        return False
    return True


def _removed_if_empty(tree: Tree, names: Sequence[str]) -> bool:
    try:
        with tree.folder(names[:-1]) as above, faults("/".join(names), writes=True):
            return _rmdir(above, names[-1])
    except Missing:
        return False


def _rmdir(above: int, name: str) -> bool:
    try:
        os.rmdir(name, dir_fd=above)
    except OSError as error:
        if error.errno in _STAYS:
            return False
        raise
    return True
