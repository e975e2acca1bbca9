"""GGUF: the tensor table says where the last tensor ends.

Layout after the format's description in the ggml repository (versions 2 and 3, little-endian).
Its writers pad every tensor to the alignment, the last one too.
"""

from __future__ import annotations

import struct

from ckptsyncd.formats.reading import Reader
from ckptsyncd.formats.verdict import UNKNOWN, WHOLE, Verdict, broken

MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_ALIGNMENT_KEY = b"general.alignment"
_ALIGNMENT = 32
#: Bounds of a check (guessed): a tokenizer's 250,000 words need 5 MB and as many steps.
_LONGEST_HEADER = 32 * 1024 * 1024
_MOST_STEPS = 1_000_000
_MOST_DIMENSIONS = 8

_SCALAR_BYTES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
_STRING, _ARRAY, _UINT32 = 8, 9, 4

#: Tensor type -> elements and bytes of one block, as ggml lays them out.
_BLOCKS = {
    0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34),
    10: (256, 84), 11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210),
    16: (256, 66), 17: (256, 74), 18: (256, 98), 19: (256, 50), 20: (32, 18), 21: (256, 110),
    22: (256, 82), 23: (256, 136), 24: (1, 1), 25: (1, 2), 26: (1, 4), 27: (1, 8), 28: (1, 8),
    29: (256, 56), 30: (1, 2), 34: (256, 54), 35: (256, 66), 39: (32, 17), 40: (64, 36),
    41: (128, 18),
}  # fmt: skip


def check(reader: Reader) -> Verdict:
    """Return whether the file ends where its last tensor does; unknown with types unknown to us."""
    if reader.at(0, 4) != MAGIC:
        return broken("GGUF magic missing")
    cursor = _Cursor(reader)
    try:
        end, padded_end = _ends(cursor)
    except _CutOff:
        return broken(f"GGUF header is cut off, the file has {reader.size}")
    except _TooMuch:
        return UNKNOWN
    if reader.size < end:
        return broken(f"GGUF header says {end} bytes, the file has {reader.size}")
    return WHOLE if reader.size == padded_end else UNKNOWN


def _ends(cursor: _Cursor) -> tuple[int, int]:
    """Return where the last tensor ends, without and with its padding."""
    cursor.skip(4)
    if cursor.number("<I") not in _VERSIONS:
        raise _TooMuch
    tensors, pairs = cursor.number("<Q"), cursor.number("<Q")
    alignment = _ALIGNMENT
    for _ in range(pairs):
        key = cursor.string()
        kind = cursor.number("<I")
        if key == _ALIGNMENT_KEY and kind == _UINT32:
            alignment = cursor.number("<I")
        else:
            _skip_value(cursor, kind)
    if not alignment:
        raise _TooMuch
    end = max((_tensor_end(cursor) for _ in range(tensors)), default=0)
    start = _padded(cursor.position, alignment)
    return start + end, _padded(start + end, alignment)


def _padded(position: int, alignment: int) -> int:
    return position + -position % alignment


def _tensor_end(cursor: _Cursor) -> int:
    cursor.string()
    dimensions = cursor.number("<I")
    if dimensions > _MOST_DIMENSIONS:
        raise _TooMuch
    elements = 1
    for _ in range(dimensions):
        elements *= cursor.number("<Q")
    block = _BLOCKS.get(cursor.number("<I"))
    if block is None:
        raise _TooMuch
    return cursor.number("<Q") + elements // block[0] * block[1]


def _skip_value(cursor: _Cursor, kind: int) -> None:
    if kind == _STRING:
        cursor.string()
    elif kind == _ARRAY:
        item, count = cursor.number("<I"), cursor.number("<Q")
        if item in _SCALAR_BYTES:
            cursor.skip(count * _SCALAR_BYTES[item])
        elif item == _STRING:
            for _ in range(count):
                cursor.string()
        else:
            raise _TooMuch
    elif kind in _SCALAR_BYTES:
        cursor.skip(_SCALAR_BYTES[kind])
    else:
        raise _TooMuch


class _CutOff(Exception):
    """The file ends inside its header."""


class _TooMuch(Exception):
    """Nothing can be said within our bounds."""


class _Cursor:
    """Reads a header from its start in blocks of 1 MiB."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._block = b""
        self._start = 0
        self._steps = 0
        self.position = 0

    def number(self, form: str) -> int:
        """Return an unsigned number and step over it."""
        data = self._take(struct.calcsize(form))
        return int.from_bytes(data, "little")

    def string(self) -> bytes:
        """Step over a string and return its first bytes."""
        length = self.number("<Q")
        head = self._take(min(length, len(_ALIGNMENT_KEY)))
        self.skip(length - len(head))
        return head if length == len(head) else b""

    def skip(self, length: int) -> None:
        """Step over bytes, which must be there."""
        self.position += length
        if self.position > self._reader.size:
            raise _CutOff
        if self.position > _LONGEST_HEADER:
            raise _TooMuch

    def _take(self, length: int) -> bytes:
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise _TooMuch
        offset = self.position - self._start
        if not 0 <= offset <= len(self._block) - length:
            self._block, self._start = self._reader.at(self.position, 1024 * 1024), self.position
            offset = 0
        self.skip(length)
        return self._block[offset : offset + length]
