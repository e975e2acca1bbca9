"""CRC64-NVME, in C, and its combination from pieces.

The checksum of a file is combined from those of its pieces, so no byte is read twice. Polynomial
and check value (``123456789`` gives ``ae8b14860a799888``) are those of the NVM Express Base
Specification's 64-bit data protection CRC, as used by S3's full-object checksums.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from awscrt import checksums


def crc64nvme(data: bytes | bytearray | memoryview, previous: int = 0) -> int:
    """Return the checksum of ``previous``'s bytes followed by ``data``."""
    return cast("int", checksums.crc64nvme(data, previous))


def crc32c(data: bytes | bytearray | memoryview, previous: int = 0) -> int:
    """Return the CRC32C of ``previous``'s bytes followed by ``data``, for stores that check it."""
    return cast("int", checksums.crc32c(data, previous))


def combined(pieces: Iterable[tuple[int, int]]) -> int:
    """Return the checksum of the whole from (checksum, length in bytes) of its pieces in order."""
    total = 0
    for checksum, length in pieces:
        total = cast("int", checksums.combine_crc64nvme(total, checksum, length))
    return total


def combined_crc32c(pieces: Iterable[tuple[int, int]]) -> int:
    """Return the CRC32C of the whole from (checksum, length in bytes) of its pieces in order."""
    total = 0
    for checksum, length in pieces:
        total = cast("int", checksums.combine_crc32c(total, checksum, length))
    return total


class BytesBody:
    """The bytes of one piece that are in memory already, as stores take bodies."""

    def __init__(self, data: bytes, checksum: int | None = None) -> None:
        """Keep the bytes, and their CRC64-NVME where it is known; nothing was read yet."""
        self.length = len(data)
        self._data = data
        self._checksum = checksum
        self._at = 0

    def read(self, most_bytes: int) -> bytes:
        """Return the next bytes, empty at the end."""
        block = self._data[self._at : self._at + most_bytes]
        self._at += len(block)
        return block

    def rewind(self) -> None:
        """Start again from the first byte."""
        self._at = 0

    def crc64nvme(self) -> int:
        """Return the checksum of all bytes; reads them where it was not known."""
        return crc64nvme(self._data) if self._checksum is None else self._checksum
