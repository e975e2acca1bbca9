"""The watch root as the rest of the program sees it: ``core.ports.Disk`` on a real file system."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from ckptsyncd.core.facts import FileFact, FileLook, Listing, Piece
from ckptsyncd.core.messages import PinsWeighed
from ckptsyncd.core.rules.room import Room
from ckptsyncd.edge.beneath import READ, open_below, within
from ckptsyncd.edge.bodies import FileBody
from ckptsyncd.edge.discarding import discard
from ckptsyncd.edge.pins import Check, Pins
from ckptsyncd.edge.seen import difference, fact_at, fact_of, words
from ckptsyncd.edge.shelf import Shelf
from ckptsyncd.edge.walk import VANISHED, walk
from ckptsyncd.edge.writers import Writers

#: Reads which other files an open file names: descriptor, path, size -> names, bytes together.
Lists = Callable[[int, str, int], tuple[tuple[str, ...], int]]


def _lists_nothing(fd: int, path: str, size: int) -> tuple[tuple[str, ...], int]:
    del fd, path, size
    return (), 0


class RealDisk:
    """One watch root and its pins (contracts at ``core.ports.Disk``).

    ``walk``, ``look``, ``pin``, ``copy``, ``look_again``, ``unpin`` belong to one thread;
    ``open_piece``, ``read_small`` and ``weigh`` may be called from any. A root that is a symlink is
    resolved once, here; the root need not exist yet.
    """

    def __init__(
        self,
        root: Path,
        check: Check,
        *,
        lists: Lists = _lists_nothing,
        pins: Path | None = None,
        room: Room | None = None,
        drop_behind: bool = False,
    ) -> None:
        """Touch nothing yet.

        ``check`` judges the format of an open file, ``lists`` reads what it names. ``pins``
        overrides where links are made (default: beside the root, else inside it), ``room`` how much
        of the disk pins may take.
        ``drop_behind`` keeps what is uploaded out of the page cache.
        """
        self.root = os.path.realpath(root)
        self._check = check
        self._lists = lists
        self._drop_behind = drop_behind
        self._writers = Writers()
        self._shelf = Shelf(self.root, os.path.realpath(pins) if pins else None, room)
        self._pins = Pins(self.root, self._shelf, self._writers, check)

    @property
    def longest_hold_seconds(self) -> float:
        """The longest that a writer's open could have waited for a read lease of ours."""
        return self._writers.longest_hold_seconds

    def walk(self, path: str, *, recursive: bool) -> Iterator[FileFact]:
        """Yield everything at and below ``path``, except the root itself and what is ours.

        An unreadable directory is raised as OSError after all that could be seen was yielded.
        """
        return walk(self.root, path, recursive=recursive)

    def look(self, path: str) -> FileLook | None:
        """Examine one file closely; symlinks and directories need no examination."""
        try:
            with within(self.root, path) as (directory, name):
                fact = fact_at(path, name, directory)
                if fact.kind != "file":
                    return FileLook(fact, writer="none")
                return self._examined(fact, directory, name)
        except VANISHED:
            return None

    def pin(self, pin_id: str, listing: Listing) -> tuple[Listing, str]:
        """Make the listing's files readable under ``pin_id``; the text says why not."""
        try:
            return self._pins.pin(pin_id, listing), ""
        except OSError as error:
            return Listing(()), words(error)

    def copy(self, pin_id: str, listing: Listing) -> tuple[Listing, str]:
        """Make a stable copy of the listing's files under ``pin_id``; the text says why not."""
        try:
            return self._pins.copy(pin_id, listing), ""
        except OSError as error:
            return Listing(()), words(error)

    def look_again(self, pin_id: str, listing: Listing) -> str:
        """Return why the pinned files are not what the listing says, or ``""``."""
        try:
            self._pins.look_again(pin_id, listing)
        except OSError as error:
            return words(error)
        return ""

    def unpin(self, pin_id: str) -> None:
        """Let go of the pinned files."""
        self._shelf.drop(pin_id)

    def discard(self, listing: Listing) -> str:
        """Remove the listing's files if every one is what the listing says; return why not."""
        try:
            discard(self.root, listing)
        except OSError as error:
            return words(error)
        return ""

    def held(self) -> tuple[str, ...]:
        """Return the ids of all pins, also of those that an earlier run left."""
        return self._shelf.ids()

    def weigh(self) -> PinsWeighed:
        """Return what pins hold of the disk for us alone; OSError where there is no root."""
        return self._shelf.weigh()

    def open_piece(self, pin_id: str, listing: Listing, path: str, piece: Piece) -> FileBody:
        """Return the bytes of one piece of a pinned file; close it or drop it when done.

        OSError: ENOENT where the pin is gone, ESTALE where the file is not what the listing says.
        """
        fd = self._pins.open(pin_id, listing, path)
        return FileBody(fd, piece.offset, piece.length, drop_behind=self._drop_behind)

    def read_small(self, path: str, most_bytes: int) -> bytes | None:
        """Return the first ``most_bytes`` of a regular file, ``None`` where there is none."""
        try:
            fd = open_below(self.root, path)
        except VANISHED:
            return None
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            return None
        with os.fdopen(fd, "rb", buffering=0) as file:
            blocks: list[bytes] = []
            while most_bytes > 0 and (block := file.read(most_bytes)):
                blocks.append(block)
                most_bytes -= len(block)
            return b"".join(blocks)

    def _examined(self, fact: FileFact, directory: int, name: str) -> FileLook:
        try:
            fd = os.open(name, READ, dir_fd=directory)
        except VANISHED:
            raise
        except PermissionError:
            owner = os.stat(name, dir_fd=directory, follow_symlinks=False).st_uid
            return FileLook(fact, fault=_unreadable(fact, owner))
        try:
            return self._judged(fact, fd)
        except OSError as error:
            return FileLook(fact, fault=f"unreadable: {words(error)}")
        finally:
            os.close(fd)

    def _judged(self, fact: FileFact, fd: int) -> FileLook:
        """Return the look at an open file; whatever changes meanwhile was written meanwhile."""
        before = fact_of(fact.path, os.fstat(fd))
        if before is None or before.kind != "file":
            return FileLook(fact, writer="open")
        writer, name = self._writers.of(fd)
        if writer == "open":
            return FileLook(before, writer, name)
        shape, has_end_mark, fault = self._check(fd, before.path, before.size)
        names, names_bytes = self._lists(fd, before.path, before.size)
        after = fact_of(fact.path, os.fstat(fd))
        if after is None or difference(before, after):
            return FileLook(after or before, writer="open")
        return FileLook(after, writer, name, shape, has_end_mark, fault, names, names_bytes)


def _unreadable(fact: FileFact, owner: int) -> str:
    return f"unreadable: mode {fact.mode:04o} owned by uid {owner}; run ckptsyncd as that user"
