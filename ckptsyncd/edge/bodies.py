"""The bytes of one piece of a file: read once, through one buffer, summed on the way."""

from __future__ import annotations

import errno
import os
import weakref

from ckptsyncd.checksum import crc64nvme
from ckptsyncd.holes import hole_at, is_sparse, zeros

BLOCK_BYTES = 1024 * 1024


class FileBody:
    """A range of an open file, for one order in one thread (``core.ports.Body``).

    Takes the descriptor over, and closes it when closed or dropped. The memory it needs is one
    block, whatever the length; what lies in a hole is not read. Raises OSError with ESTALE where
    the file ends early.
    """

    def __init__(self, fd: int, offset: int, length: int, *, drop_behind: bool = False) -> None:
        """Stand before the first byte.

        With ``drop_behind`` the kernel is told that what was read is not needed in memory again.
        """
        self.length = length
        self._fd = fd
        self._offset = offset
        self._drop_behind = drop_behind
        self._block = memoryview(bytearray(min(length, BLOCK_BYTES)))
        self._done = 0
        self._running = 0
        self._sum: int | None = 0 if length == 0 else None
        self._has_holes = is_sparse(fd)
        self._close = weakref.finalize(self, os.close, fd)

    def read(self, most_bytes: int) -> memoryview:
        """Return the next bytes, at most ``most_bytes`` and one block, empty at the end.

        The view is overwritten by the next call.
        """
        block = self._fill(self._done, most_bytes)
        self._done += len(block)
        self._running = crc64nvme(block, self._running)
        if self._done == self.length:
            self._sum = self._running
        if self._drop_behind and block:
            start = self._offset + self._done - len(block)
            os.posix_fadvise(self._fd, start, len(block), os.POSIX_FADV_DONTNEED)
        return block

    def rewind(self) -> None:
        """Start again from the first byte."""
        self._done = self._running = 0

    def crc64nvme(self) -> int:
        """Return the CRC64-NVME of all bytes, as the last whole reading saw them.

        Reads what was not read yet, and does not move where ``read`` goes on.
        """
        if self._sum is None:
            done, total = self._done, self._running
            while block := self._fill(done, BLOCK_BYTES):
                done += len(block)
                total = crc64nvme(block, total)
            self._sum = total
        return self._sum

    def origin(self) -> tuple[int, int]:
        """Return the open file and where the first byte lies in it."""
        return self._fd, self._offset

    def close(self) -> None:
        """Let go of the file; success where it is closed already."""
        self._close()

    def _fill(self, done: int, most_bytes: int) -> memoryview:
        wanted = min(most_bytes, self.length - done, BLOCK_BYTES)
        if wanted <= 0:
            return self._block[:0]
        at = self._offset + done
        if self._has_holes and (hole := hole_at(self._fd, at, at + wanted)):
            return zeros(hole)
        count = os.preadv(self._fd, [self._block[:wanted]], at)
        if count == 0:
            text = f"the file ended {self.length - done} bytes early: it changed under us"
            raise OSError(errno.ESTALE, text)
        return self._block[:count]
