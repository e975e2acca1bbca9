"""Where pinned files are kept and found again: links and copies on disk, descriptors in memory.

A pin of a file is, in this order: a copy of ours (only where it was asked for), a hard link, an
open descriptor (where no link can be made: another owner, another mount, no links at all). Links
and copies lie at ``<place>/<pin id>/<index>``, the index being the file's place in its listing,
so that an earlier run's are found after a restart.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import shutil
import threading
from pathlib import Path

from ckptsyncd.core.facts import FileFact
from ckptsyncd.edge import places
from ckptsyncd.edge.copies import copy_file

_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
_COPY = ".copy"
_ABSENT = (FileNotFoundError, NotADirectoryError)


def open_to_read(place: str) -> int:
    """Open a file that others may own, write or replace: never waits, never follows a symlink."""
    return os.open(place, _READ)


class Shelf:
    """The pinned files of one watch root. One thread keeps and drops; any may open meanwhile."""

    def __init__(self, root: str, place: str | None = None) -> None:
        """Keep nothing yet. ``place`` overrides where links are made; nothing is made here.

        At most a quarter of the descriptors that the process may have are used for pins.
        """
        self._root = root
        self._place = place
        self._open: dict[str, dict[int, int]] = {}
        self._lock = threading.Lock()
        self.most_open = resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4

    def keep(self, pin_id: str, index: int, source: str) -> None:
        """Keep what lies at ``source`` now, instead of what was kept at this index before.

        OSError where neither a link nor a descriptor can be had, FileNotFoundError where the
        source is gone.
        """
        if not any(self._linked(place, pin_id, index, source) for place in self._places()):
            self._hold_open(pin_id, index, source)

    def keep_copy(self, pin_id: str, index: int, source: int, fact: FileFact) -> None:
        """Keep a copy of an open file, with the size and mtime of its fact; OSError where not."""
        first, *others = self._places()
        try:
            self._copied(first, pin_id, index, source, fact)
        except OSError:
            if not others:
                raise
            self._copied(others[0], pin_id, index, source, fact)

    def opened(self, pin_id: str, index: int) -> tuple[int, bool]:
        """Return a new descriptor of what is kept, and whether it is a copy of ours.

        FileNotFoundError where nothing is kept there (any more).
        """
        with self._lock:
            held = self._open.get(pin_id, {}).get(index)
            if held is not None:
                return os.dup(held), False
        for place in self._places():
            for suffix in (_COPY, ""):
                with contextlib.suppress(*_ABSENT):
                    return open_to_read(_name(place, pin_id, index) + suffix), suffix == _COPY
        raise FileNotFoundError(errno.ENOENT, "the pin is gone: somebody removed it")

    def drop(self, pin_id: str) -> None:
        """Let go of everything kept under an id; success where nothing is."""
        with self._lock:
            held = self._open.pop(pin_id, {})
        for fd in held.values():
            os.close(fd)
        for place in self._places():
            with contextlib.suppress(*_ABSENT):
                shutil.rmtree(_directory(place, pin_id))

    def ids(self) -> tuple[str, ...]:
        """Return every id under which something is kept, by this run or an earlier one."""
        with self._lock:
            found = set(self._open)
        for place in self._places():
            with contextlib.suppress(*_ABSENT):
                found.update(entry.name for entry in Path(place).iterdir())
        return tuple(sorted(found))

    def _places(self) -> tuple[str, ...]:
        return (self._place,) if self._place else places.candidates(self._root)

    def _linked(self, place: str, pin_id: str, index: int, source: str) -> bool:
        """Return whether a link could be made; why not shows when the source is opened instead."""
        name = _name(place, pin_id, index)
        try:
            places.make(_directory(place, pin_id), self._root)
            Path(name).unlink(missing_ok=True)
            os.link(source, name, follow_symlinks=False)
        except OSError:
            return False
        return True

    def _hold_open(self, pin_id: str, index: int, source: str) -> None:
        fd = open_to_read(source)
        with self._lock:
            is_full = sum(map(len, self._open.values())) >= self.most_open
            held = self._open.setdefault(pin_id, {})
            before = held.pop(index, None)
            if not is_full:
                held[index] = fd
        if before is not None:
            os.close(before)
        if is_full:
            os.close(fd)
            why = f"no links can be made, and {self.most_open} files are held open; raise ulimit -n"
            raise OSError(errno.EMFILE, why)

    def _copied(self, place: str, pin_id: str, index: int, source: int, fact: FileFact) -> None:
        places.make(_directory(place, pin_id), self._root)
        copy_file(source, fact, _name(place, pin_id, index) + _COPY)


def _directory(place: str, pin_id: str) -> str:
    if pin_id in ("", ".", "..") or "/" in pin_id or "\0" in pin_id:
        raise OSError(errno.EINVAL, "no name for a pin", pin_id)
    return f"{place}/{pin_id}"


def _name(place: str, pin_id: str, index: int) -> str:
    return f"{_directory(place, pin_id)}/{index}"
