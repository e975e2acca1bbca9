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
