"""HDF5 (Keras weights): the superblock's end-of-file address against the file's size.

Layout after the HDF5 File Format Specification, section II.A (superblock versions 0 to 3).
"""

from __future__ import annotations

from ckptsyncd.formats.reading import Reader
from ckptsyncd.formats.verdict import UNKNOWN, WHOLE, Verdict, broken

SIGNATURE = b"\x89HDF\r\n\x1a\n"

#: The superblock lies at 0, or behind a user's own block of 512, 1024, 2048, ... bytes.
_PLACES = (0, *(512 << shift for shift in range(12)))
_LONGEST_SUPERBLOCK = 96
#: A superblock and anything behind it.
_SHORTEST_FILE = 48
_WITH_FLAGS = 3
_OPEN_FOR_WRITING = 1

#: By superblock version: where the size of addresses stands, and where the addresses begin.
_FIELDS = {0: (13, 24), 1: (13, 28), 2: (9, 12), 3: (9, 12)}
#: Which of the addresses, counted from 0, is the end of the file.
_END_OF_FILE = 2


def check(reader: Reader) -> Verdict:
    """Return whether the file ends where its superblock says, and was closed by its writer."""
    place = next((at for at in _PLACES if reader.at(at, 8) == SIGNATURE), None)
    if place is None:
        return broken("HDF5 signature missing")
    block = reader.at(place, _LONGEST_SUPERBLOCK)
    if len(block) < _SHORTEST_FILE:
        return broken("HDF5 superblock is cut off")
    block = block.ljust(_LONGEST_SUPERBLOCK, b"\0")
    if block[8] not in _FIELDS:
        return UNKNOWN
    end = _end_address(block)
    if end != reader.size:
        return broken(f"HDF5 superblock says {end} bytes, the file has {reader.size}")
    if block[8] == _WITH_FLAGS and block[11] & _OPEN_FOR_WRITING:
        return broken("HDF5 superblock says that its writer did not close the file")
    return WHOLE


def _end_address(block: bytes) -> int:
    size_at, addresses_at = _FIELDS[block[8]]
    width = block[size_at]
    start = addresses_at + _END_OF_FILE * width
    return int.from_bytes(block[start : start + width], "little")
