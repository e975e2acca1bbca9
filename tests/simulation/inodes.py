"""What lies on a pretended disk: files, links and directories, and the bytes of a pinned piece."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass

from ckptsyncd.checksum import crc64nvme
from ckptsyncd.core.facts import Piece


@dataclass(slots=True, eq=False)
class Inode:
    """A file's content, whatever names it has. ``is_whole``: its writer came to the end.

    ``ctime_ns``: when it was last written, renamed, linked or unlinked.
    """

    number: int
    data: bytes = b""
    mtime_ns: int = 0
    ctime_ns: int = 0
    writers: int = 0
    is_whole: bool = False
    path: str = ""

    @property
    def lists(self) -> tuple[str, ...]:
        """The files that it names, if it is an index."""
        return tuple(self.data.partition(b"names:")[2].decode().split())


@dataclass(slots=True, eq=False)
class Link:
    """A symlink."""

    number: int
    target: str
    mtime_ns: int


@dataclass(slots=True, eq=False)
class Folder:
    """A directory; what is in it is told by the names."""

    number: int


class PinnedBody:
    """The bytes of a piece, read in two halves: the first when it is made, the rest when asked.

    So a file that is written meanwhile is read torn, as it would be in life.
    """

    def __init__(self, data: Callable[[], bytes], piece: Piece) -> None:
        """Read the first half."""
        self.length = piece.length
        self._data = data
        self._end = piece.offset + piece.length
        self._middle = piece.offset + piece.length // 2
        self._early = data()[piece.offset : self._middle]
        self._all: bytes | None = None
        self._at = 0

    def capture(self) -> None:
        """Read the second half now: the rest of a request is on its way already."""
        if self._all is None:
            self._all = self._early + self._data()[self._middle : self._end]

    def read(self, most_bytes: int) -> bytes:
        """Return the next bytes; OSError (ESTALE) where the file became shorter."""
        data = self._whole()
        block = data[self._at : self._at + most_bytes]
        self._at += len(block)
        return block

    def rewind(self) -> None:
        """Start again."""
        self._at = 0

    def crc64nvme(self) -> int:
        """Return the checksum of what was read."""
        return crc64nvme(self._whole())

    def _whole(self) -> bytes:
        self.capture()
        assert self._all is not None
        if len(self._all) < self.length:
            raise OSError(errno.ESTALE, "the file ended early: it changed under us")
        return self._all
