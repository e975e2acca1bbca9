"""Read ranges of an open file without moving its position."""

from __future__ import annotations

import os


class Reader:
    """One open file of a known size."""

    def __init__(self, fd: int, size: int) -> None:
        """Read nothing yet; the descriptor stays the caller's."""
        self._fd = fd
        self.size = size

    def at(self, offset: int, length: int) -> bytes:
        """Return the bytes of a range, fewer where the file ends before, none outside of it."""
        if not 0 <= offset < self.size or length <= 0:
            return b""
        return os.pread(self._fd, min(length, self.size - offset), offset)
