"""safetensors: eight bytes of header length, a JSON header, then the tensors without a gap.

Layout after the format's own description in the safetensors repository.
"""

from __future__ import annotations

import json
from typing import Any

from ckptsyncd.formats.reading import Reader
from ckptsyncd.formats.verdict import UNKNOWN, WHOLE, Verdict, broken

#: The format's own limit for the header.
_LONGEST_HEADER = 100_000_000
#: Longer headers than this are not parsed: memory (some 80,000 tensors in one file).
_LONGEST_PARSED = 8 * 1024 * 1024
_MOST_DIGITS = 20
_PREFIX = 8


def check(reader: Reader) -> Verdict:
    """Return whether the file is as long as its header says."""
    prefix = reader.at(0, _PREFIX)
    length = int.from_bytes(prefix, "little")
    if len(prefix) < _PREFIX or not 0 < length <= _LONGEST_HEADER:
        return broken(f"safetensors header missing, its length would be {length}")
    if length > _LONGEST_PARSED:
        return UNKNOWN
    start = _PREFIX + length
    header = reader.at(_PREFIX, length)
    if len(header) < length:
        return broken(f"safetensors header ends at byte {start}, the file has {reader.size}")
    end = _data_end(header)
    if end is None:
        return broken("safetensors header is no valid JSON of tensors")
    if start + end != reader.size:
        return broken(f"safetensors header says {start + end} bytes, the file has {reader.size}")
    return WHOLE


def _data_end(header: bytes) -> int | None:
    """Return where the last tensor ends, counted from the header's end; ``None`` if not said."""
    try:
        tensors = json.loads(header, parse_int=_small_int)
        ends = [_end(row) for name, row in tensors.items() if name != "__metadata__"]
    except (ValueError, RecursionError, AttributeError, TypeError, KeyError):
        return None
    return max(ends, default=0)


def _end(row: Any) -> int:
    start, end = row["data_offsets"]
    if not (isinstance(start, int) and isinstance(end, int) and 0 <= start <= end):
        raise ValueError
    return end


def _small_int(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise ValueError
    return int(digits)
