"""TensorBoard's event files, written without TensorFlow: a line of numbers is forty bytes.

The framing is TFRecord's (length, masked CRC32C of it, record, masked CRC32C of that), the records
are ``Event`` messages of ``tensorflow/core/util/event.proto``: wall_time (1, double), step (2,
int64), file_version (3, string), summary (5) with values of tag (1) and simple_value (2, float).
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Mapping
from pathlib import Path

from ckptsyncd.checksum import crc32c
from ckptsyncd.report.readings import Reading

PREFIX = "ckptsyncd/"
_VERSION = b"brain.Event:2"
_MASK = 0xA282EAD8
_VARINT, _DOUBLE, _BYTES, _FLOAT = 0, 1, 2, 5


class TensorBoard:
    """Appends readings below one directory; each series is a run of its own, ``ckptsyncd/SERIES``.

    A file that could not be written to its end is left, and a new one begun: what follows a torn
    record would not be read.
    """

    def __init__(self, directory: Path) -> None:
        """Write nothing yet."""
        self._directory = directory
        self._files: dict[str, Path] = {}
        self._begun = 0

    def write(self, reading: Reading) -> None:
        """Append one reading; raises OSError where the disk does not take it."""
        path = self._files.pop(reading.series, None)
        records = [scalars(reading.at, reading.step or 0, reading.values())]
        if path is None:
            path = self._new_file(reading)
            records.insert(0, _double(1, reading.at) + _bytes(3, _VERSION))
        with path.open("ab", buffering=0) as file:
            data = b"".join(map(framed, records))
            if file.write(data) != len(data):
                msg = f"{path} is torn: the disk is full"
                raise OSError(msg)
        self._files[reading.series] = path

    def _new_file(self, reading: Reading) -> Path:
        directory = self._directory / "ckptsyncd" / reading.series
        directory.mkdir(parents=True, exist_ok=True)
        self._begun += 1
        who = f"{socket.gethostname()}.{os.getpid()}.{self._begun}"
        return directory / f"events.out.tfevents.{int(reading.at):010d}.{who}.ckptsyncd"


def scalars(wall: float, step: int, values: Mapping[str, float]) -> bytes:
    """Return one event that holds so many numbers at one step."""
    told = b"".join(
        _bytes(1, _bytes(1, (PREFIX + name).encode()) + _key(2, _FLOAT) + struct.pack("<f", value))
        for name, value in values.items()
    )
    return _double(1, wall) + _key(2, _VARINT) + _varint(step) + _bytes(5, told)


def framed(record: bytes) -> bytes:
    """Return a record as it stands in the file."""
    length = struct.pack("<Q", len(record))
    return length + _masked(length) + record + _masked(record)


def _masked(data: bytes) -> bytes:
    crc = crc32c(data)
    turned = (crc >> 15 | crc << 17) & 0xFFFFFFFF
    return struct.pack("<I", (turned + _MASK) & 0xFFFFFFFF)


def _key(number: int, kind: int) -> bytes:
    return _varint(number << 3 | kind)


def _double(number: int, value: float) -> bytes:
    return _key(number, _DOUBLE) + struct.pack("<d", value)


def _bytes(number: int, value: bytes) -> bytes:
    return _key(number, _BYTES) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:  # noqa: PLR2004 - seven bits a byte
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])
