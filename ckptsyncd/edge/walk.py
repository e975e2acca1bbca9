"""List a tree with lstat only: nothing is opened but directories, no symlink is followed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress

from ckptsyncd.core.facts import FileFact
from ckptsyncd.edge.beneath import fact_below, open_below
from ckptsyncd.edge.seen import fact_at

#: A directory of this name is ours wherever it lies (another daemon may watch a part of the tree).
OURS = ".ckptsyncd"

#: Made by mkfs at the top of every ext4 volume, readable by root only, never a trainer's.
_FSCK = "lost+found"

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

#: What a name says that was there a moment ago.
VANISHED = (FileNotFoundError, NotADirectoryError)


def walk(root: str, path: str, *, recursive: bool) -> Iterator[FileFact]:
    """Yield the facts of everything at and below ``path``, the root itself left out.

    What vanishes meanwhile is left out. Everything that can be seen is yielded before an error is
    raised, so that one directory does not hide the others; PermissionError only where no other
    error was met. Directories come before what is in them, names of one directory in their order.
    Without ``recursive``: the path itself and what lies directly in it.
    """
    if path:
        try:
            fact = fact_below(root, path)
        except VANISHED:
            return
        yield fact
        if fact.kind != "directory":
            return
    trouble: list[OSError] = []
    waiting = [path]
    while waiting:
        deeper: list[str] = []
        for fact in _inside(root, waiting.pop(), trouble):
            yield fact
            if recursive and fact.kind == "directory":
                deeper.append(fact.path)
        waiting += reversed(deeper)
    if trouble:
        trouble.sort(key=lambda error: isinstance(error, PermissionError))
        raise trouble[0]


def _inside(root: str, path: str, trouble: list[OSError]) -> Iterator[FileFact]:
    """Yield the facts of what lies directly in a directory; its descriptor is closed at the end.

    Only the names are kept meanwhile: there may be a million.
    """
    try:
        directory = open_below(root, path, _DIRECTORY)
    except VANISHED:
        return
    except OSError as error:
        if not is_fsck(path, error):
            trouble.append(error)
        return
    start = path + "/" if path else ""
    try:
        for name in sorted(os.listdir(directory)):  # noqa: PTH208 - by its descriptor
            if name != OURS:
                with suppress(*VANISHED):
                    yield fact_at(start + name, name, directory)
    except OSError as error:
        trouble.append(error)
    finally:
        os.close(directory)


def is_fsck(path: str, error: OSError) -> bool:
    """Return whether an error is only that a volume's ``lost+found`` may not be read."""
    return isinstance(error, PermissionError) and path.rpartition("/")[2] == _FSCK
