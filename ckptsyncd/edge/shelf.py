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
from collections.abc import Iterator
from pathlib import Path

from ckptsyncd.core.facts import FileFact
from ckptsyncd.core.messages import PinsWeighed
from ckptsyncd.core.rules.room import Room
from ckptsyncd.core.words import size_words
from ckptsyncd.edge import places
from ckptsyncd.edge.beneath import READ, WAY, link_below, open_below
from ckptsyncd.edge.copies import copy_file
from ckptsyncd.edge.folders import Folder, Folders
from ckptsyncd.edge.seen import age, fact_of

_COPY = ".copy"
_ABSENT = (FileNotFoundError, NotADirectoryError)


class Shelf:
    """The pinned files of one watch root. One thread keeps and drops; any may open meanwhile."""

    def __init__(self, root: str, place: str | None = None, room: Room | None = None) -> None:
        """Keep nothing yet. ``place`` overrides where links are made; nothing is made here.

        At most a quarter of the descriptors that the process may have are used for pins.
        """
        self._root = root
        self._place = place
        self._room = room or Room()
        self._open: dict[str, dict[int, int]] = {}
        self._lock = threading.Lock()
        self._folders = Folders()
        self.most_open = resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4

    def keep(self, pin_id: str, index: int, source: str) -> None:
        """Keep what lies at ``source`` in the root, instead of what was kept at this index before.

        OSError where neither a link nor a descriptor can be had, FileNotFoundError where the
        source is gone.
        """
        folder = self._folders.get(pin_id)
        if folder is not None and folder.is_made:
            with contextlib.suppress(OSError):
                self._link(folder, index, source)
                return
        if not any(self._linked(place, pin_id, index, source) for place in self._places()):
            self._hold_open(pin_id, index, source)

    def weighed(self) -> dict[str, int]:
        """Return the bytes on disk that are kept under each id and have no other name; no zeros."""
        found: dict[str, int] = {}
        with self._lock:
            for pin_id, held in self._open.items():
                found[pin_id] = sum(_only_ours(os.fstat(fd), 0) for fd in held.values())
        for place in self._places():
            for pin_id, status in _kept(place):
                found[pin_id] = found.get(pin_id, 0) + _only_ours(status, 1)
        return {pin_id: size for pin_id, size in found.items() if size}

    def weigh(self) -> PinsWeighed:
        """Return what is kept for us alone, what is free, what is allowed; OSError: no root.

        A disk so empty that nothing on it can be too much is not searched: no pin is told.
        """
        space = os.statvfs(self._root)
        disk_bytes = space.f_blocks * space.f_frsize
        free_bytes = space.f_bavail * space.f_frsize
        floor, most = self._room.floor(disk_bytes), self._room.most(disk_bytes)
        is_empty = (space.f_blocks - space.f_bfree) * space.f_frsize <= most
        pins = () if is_empty and free_bytes >= floor else tuple(sorted(self.weighed().items()))
        return PinsWeighed(pins, free_bytes, floor, most)

    def make_room(self, size: int) -> None:
        """Raise OSError where a copy of so many bytes would take more than is allowed."""
        space = os.statvfs(self._root)
        most = self._room.most(space.f_blocks * space.f_frsize)
        if sum(self.weighed().values()) + size > most:
            text = f"a copy of {size_words(size)} would be more than pins_most_bytes allows"
            raise OSError(errno.ENOSPC, f"{text} ({size_words(most)})")

    def _above_floor(self, size: int) -> None:
        space = os.statvfs(self._root)
        floor = self._room.floor(space.f_blocks * space.f_frsize)
        if space.f_bavail * space.f_frsize - size < floor:
            text = f"a copy of {size_words(size)} would leave less than pins_floor_bytes"
            raise OSError(errno.ENOSPC, f"{text} ({size_words(floor)})")

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
        folder = self._folders.get(pin_id)
        found = None if folder is None else _opened(folder, index)
        for place in () if found else self._places():
            with contextlib.suppress(*_ABSENT):
                fd = open_below(*_below(place, pin_id), WAY | os.O_NOFOLLOW)
                folder = Folder(fd, is_made=False)
                if found := _opened(folder, index):
                    self._folders.put(pin_id, folder)
                    break
        if found is None:
            raise FileNotFoundError(errno.ENOENT, "the pin is gone: somebody removed it")
        return found

    def is_empty(self, pin_id: str) -> bool:
        """Return whether nothing is kept under an id."""
        with self._lock:
            if pin_id in self._open:
                return False
        return not any(os.path.lexists(_directory(place, pin_id)) for place in self._places())

    def drop(self, pin_id: str) -> None:
        """Let go of everything kept under an id; success where nothing is."""
        self._folders.forget(pin_id)
        with self._lock:
            held = self._open.pop(pin_id, {})
        for fd in held.values():
            os.close(fd)
        for place in self._places():
            with contextlib.suppress(*_ABSENT):
                _remove(_directory(place, pin_id))

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
        try:
            places.make(_directory(place, pin_id), self._root)
            fd = open_below(*_below(place, pin_id), WAY | os.O_NOFOLLOW)
            folder = Folder(fd, is_made=True)
            self._link(folder, index, source)
        except OSError:
            return False
        self._folders.put(pin_id, folder)
        return True

    def _link(self, folder: Folder, index: int, source: str) -> None:
        name = str(index)
        try:
            link_below(self._root, source, folder.fd, name)
        except FileExistsError:
            os.unlink(name, dir_fd=folder.fd)
            link_below(self._root, source, folder.fd, name)

    def _hold_open(self, pin_id: str, index: int, source: str) -> None:
        fd = open_below(self._root, source)
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
        copy_file(source, fact, _name(place, pin_id, index) + _COPY, self._above_floor)


def _kept(place: str) -> Iterator[tuple[str, os.stat_result]]:
    """Yield what lies at a place for pins: pin id and what the system says of each file."""
    with contextlib.suppress(*_ABSENT):
        for folder in Path(place).iterdir():
            with contextlib.suppress(*_ABSENT):
                for path in folder.iterdir():
                    yield folder.name, path.lstat()


def _remove(folder: str) -> None:
    """Remove a directory with the links in it, the oldest first: ctimes stay in their order."""
    with os.scandir(folder) as entries:
        facts = [fact_of(entry.path, entry.stat(follow_symlinks=False)) for entry in entries]
    for fact in sorted((fact for fact in facts if fact and fact.kind == "file"), key=age):
        with contextlib.suppress(*_ABSENT):
            os.unlink(fact.path)  # noqa: PTH108 - a path object costs more
    shutil.rmtree(folder)


def _only_ours(status: os.stat_result, names: int) -> int:
    """Return the bytes on disk of a file that has only so many names: those are ours."""
    return status.st_blocks * 512 if status.st_nlink <= names else 0


def _directory(place: str, pin_id: str) -> str:
    if pin_id in ("", ".", "..") or "/" in pin_id or "\0" in pin_id:
        raise OSError(errno.EINVAL, "no name for a pin", pin_id)
    return f"{place}/{pin_id}"


def _below(place: str, pin_id: str) -> tuple[str, str]:
    """Return a directory that others do not write, and the path of a pin's own below it."""
    above, names = places.split(_directory(place, pin_id))
    return above, "/".join(names)


def _opened(folder: Folder, index: int) -> tuple[int, bool] | None:
    """Return a descriptor of what is kept in a directory, and whether it is a copy; or nothing."""
    for name, copied in ((f"{index}{_COPY}", True), (str(index), False)):
        with contextlib.suppress(*_ABSENT):
            return os.open(name, READ, dir_fd=folder.fd), copied
    return None


def _name(place: str, pin_id: str, index: int) -> str:
    return f"{_directory(place, pin_id)}/{index}"
