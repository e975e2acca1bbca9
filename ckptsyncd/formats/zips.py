"""Zip archives (torch, NumPy, Keras): the end record, and the directory where it says.

Layout after PKWARE's APPNOTE 6.3, sections 4.3.6 to 4.3.16.
"""

from __future__ import annotations

import struct

from ckptsyncd.formats.reading import Reader
from ckptsyncd.formats.verdict import WHOLE, Verdict, broken

LOCAL_HEADER = b"PK\x03\x04"
END_RECORD = b"PK\x05\x06"
_DIRECTORY_ENTRY = b"PK\x01\x02"
_END_RECORD_64 = b"PK\x06\x06"
_LOCATOR_64 = b"PK\x06\x07"

#: End record: signature, 2 disks, entries here, entries, directory's size and offset, comment.
_END = struct.Struct("<4s2H2H2IH")
#: Zip64 locator: signature, disk, offset of the zip64 end record, disks.
_LOCATOR = struct.Struct("<4sIQI")
#: Zip64 end record: signature, its size, versions, 2 disks, entries here, entries, size, offset.
_END_64 = struct.Struct("<4sQ2H2I4Q")
_LONGEST_COMMENT = 0xFFFF


def check(reader: Reader) -> Verdict:
    """Return whether the archive ends with its end record and the directory lies before it."""
    position = _end_position(reader)
    if position < 0:
        return broken("zip end record missing")
    _, _, _, _, entries, length, offset, _ = _END.unpack(reader.at(position, _END.size))
    locator = reader.at(position - _LOCATOR.size, _LOCATOR.size)
    if position >= _LOCATOR.size and locator.startswith(_LOCATOR_64):
        position = _LOCATOR.unpack(locator)[2]
        record = reader.at(position, _END_64.size)
        if len(record) < _END_64.size or not record.startswith(_END_RECORD_64):
            return broken(f"zip64 end record missing at byte {position}")
        *_, entries, length, offset = _END_64.unpack(record)
    return _directory(reader, entries, offset, offset + length, position)


def _directory(reader: Reader, entries: int, offset: int, end: int, expected: int) -> Verdict:
    if end != expected:
        return broken(f"zip directory ends at byte {end}, the end record begins at {expected}")
    if entries and reader.at(offset, 4) != _DIRECTORY_ENTRY:
        return broken(f"zip directory missing at byte {offset}")
    if entries and reader.at(0, 4) != LOCAL_HEADER:
        return broken("zip header missing at byte 0")
    return WHOLE


def _end_position(reader: Reader) -> int:
    """Return where the end record begins whose comment ends the file, or -1."""
    start = max(0, reader.size - _END.size - _LONGEST_COMMENT)
    tail = reader.at(reader.size - _END.size, _END.size)
    if tail.startswith(END_RECORD) and tail.endswith(b"\0\0"):
        return reader.size - _END.size  # as torch, NumPy and Keras write it: no comment
    tail = reader.at(start, reader.size - start)
    found = tail.rfind(END_RECORD)
    while found >= 0:
        comment = len(tail) - found - _END.size
        if comment >= 0 and tail[found + 20 : found + 22] == comment.to_bytes(2, "little"):
            return start + found
        found = tail.rfind(END_RECORD, 0, found + 3)
    return -1
