"""Bytes on their way to an HTTP server: summed while they pass, in blocks and never as a whole."""

from __future__ import annotations

import errno
from collections.abc import Iterator

from ckptsyncd.checksum import crc32c, crc64nvme
from ckptsyncd.core.ports import Body

#: Bytes of one write to the socket: larger than the 16 KiB that an HTTP client reads by itself,
#: which cost half of the CPU time (measured over TLS), and small enough to leave a slow link within
#: one wait on the socket.
BLOCK_BYTES = 256 * 1024

Block = bytes | bytearray | memoryview


class Passing:
    """A body as what an HTTP client iterates over; each iteration starts at its first byte.

    It has a length and no ``read``, so that a client sends whole blocks under a known length.
    The first ``skipped_bytes`` are summed and not sent: the store has them already. ``fault`` keeps
    what the body itself raised: a client would take it for the network's. ``crc32c`` stays 0 where
    ``sums_crc32c`` says that the store knows none.
    """

    def __init__(self, body: Body, skipped_bytes: int = 0, *, sums_crc32c: bool = True) -> None:
        """Stand before the body's first byte."""
        self.fault: OSError | None = None
        self.crc64nvme = 0
        self.crc32c = 0
        self._body = body
        self._skipped_bytes = skipped_bytes
        self._sums_crc32c = sums_crc32c

    def __len__(self) -> int:
        """Return how many bytes are sent: the content length."""
        return self._body.length - self._skipped_bytes

    def __iter__(self) -> Iterator[Block]:
        """Yield the bytes from the start, and sum them."""
        self.crc64nvme = self.crc32c = 0
        skip = self._skipped_bytes
        for block in self.blocks():
            self.crc64nvme = crc64nvme(block, self.crc64nvme)
            if self._sums_crc32c:
                self.crc32c = crc32c(block, self.crc32c)
            if skip < len(block):
                yield memoryview(block)[skip:] if skip else block
            skip = max(skip - len(block), 0)

    def summed(self) -> Passing:
        """Read everything through without sending it; raise what the body raises."""
        for _ in self:
            pass
        return self

    def blocks(self) -> Iterator[Block]:
        """Yield the body's bytes from its start, and sum nothing."""
        at = 0
        try:
            self._body.rewind()
            while block := self._body.read(BLOCK_BYTES):
                at += len(block)
                yield block
        except OSError as error:
            self.fault = error
            raise
        if at != self._body.length:
            msg = f"the body ended after {at} of {self._body.length} bytes"
            self.fault = OSError(errno.EIO, msg)
            raise self.fault
