"""How a piece's bytes go out: first as the signer wants them, then in large blocks."""

from __future__ import annotations

import base64
import errno
import hashlib
from collections.abc import Iterator

from ckptsyncd.checksum import crc32c, crc64nvme
from ckptsyncd.core.ports import Body

#: Bytes of one write to the socket. urllib3 would read 16 KiB at a time, which costs half of the
#: CPU time over https (measured). Not larger: over http one whole block must leave within the
#: connect time-out, and 32 connections may share a slow link.
BLOCK_BYTES = 256 * 1024
#: The same on a connection of our own, whose time-out is longer.
LARGE_BLOCK_BYTES = 1024 * 1024

Block = bytes | bytearray | memoryview


class SentBody:
    """A body as a file that the SDK reads: once to sign if it must, once to send.

    ``fault`` keeps what the body itself raised: inside the SDK it would be taken for the network's.
    ``crc64nvme`` is that of the bytes read since the last start, where ``summing``. ``full_key`` is
    the object's whole name, for whoever sees the request that carries it.
    """

    def __init__(self, body: Body, *, summing: bool) -> None:
        """Stand before the body's first byte."""
        self.fault: OSError | None = None
        self.full_key = ""
        self.crc64nvme = 0
        self._body = body
        self._summing = summing
        self._at = 0
        body.rewind()

    def __len__(self) -> int:
        """Return how many bytes there are: the content length."""
        return self._body.length

    def tell(self) -> int:
        """Return how many bytes were read since the start."""
        return self._at

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go back to the start; nowhere else, since nobody asks."""
        if (offset, whence) != (0, 0):
            msg = f"a body can only be started again, not read from {offset}"
            raise ValueError(msg)
        if self._at:
            self._body.rewind()
            self._at = self.crc64nvme = 0
        return 0

    def read(self, most_bytes: int = BLOCK_BYTES) -> Block:
        """Return the next bytes; raise, and keep in ``fault``, where there are too few."""
        try:
            block = self._body.read(most_bytes)
            if not block and self._at < len(self):
                msg = f"the body ended after {self._at} of {len(self)} bytes"
                raise OSError(errno.EIO, msg)  # noqa: TRY301 - kept below like the body's own
        except OSError as error:
            self.fault = error
            raise
        if self._summing:
            self.crc64nvme = crc64nvme(block, self.crc64nvme)
        self._at += len(block)
        return block

    def __iter__(self) -> Iterator[Block]:
        """Yield every byte from the first one, for a connection of our own."""
        self.seek(0)
        while block := self.read(LARGE_BLOCK_BYTES):
            yield block

    def blocks(self) -> Blocks:
        """Return the bytes as blocks to be written one by one."""
        return Blocks(self)


class Blocks:
    """A body without ``read``, so that the sender takes whole blocks instead of small bites."""

    def __init__(self, sent: SentBody) -> None:
        """Iterate over the given body."""
        self._sent = sent

    def __iter__(self) -> Iterator[Block]:
        """Yield every block from the first byte."""
        self._sent.seek(0)
        while block := self._sent.read(BLOCK_BYTES):
            yield block

    def seek(self, offset: int) -> None:
        """Go back to the start: a request that follows a redirect is sent again."""
        self._sent.seek(offset)


def declared(check: str, body: Body) -> dict[str, str]:
    """Return the request's parameters that declare the body's checksum, read before it is sent.

    Declared in a header, never in a trailer: old dialects refuse a trailer or store it as content.
    For ``sha256`` the signature itself declares it; the body is read once all the same, since a
    file that fails inside the signer (which is not Python's) fails with noise on stderr.
    """
    if check == "crc64nvme":
        return {"ChecksumCRC64NVME": as_base64(body.crc64nvme(), 8)}
    if check == "crc32c":
        total = 0
        for block in _passing(body):
            total = crc32c(block, total)
        return {"ChecksumCRC32C": as_base64(total, 4)}
    if check == "md5":
        digest = hashlib.md5(usedforsecurity=False)
        for block in _passing(body):
            digest.update(block)
        return {"ContentMD5": base64.b64encode(digest.digest()).decode()}
    if check == "sha256":
        body.crc64nvme()
    return {}


def as_base64(checksum: int, size: int) -> str:
    """Return a checksum of ``size`` bytes as S3 writes it."""
    return base64.b64encode(checksum.to_bytes(size, "big")).decode()


def from_base64(text: str | None) -> int | None:
    """Return the CRC64-NVME that S3 tells, None where it is none (a composite has a suffix)."""
    try:
        raw = base64.b64decode(text or "", validate=True)
    except ValueError:
        return None
    return int.from_bytes(raw, "big") if len(raw) == 8 else None  # noqa: PLR2004


def _passing(body: Body) -> Iterator[Block]:
    body.rewind()
    while block := body.read(BLOCK_BYTES):
        yield block
    body.rewind()
