"""Which other files a file says belong to it, and how many bytes they hold together.

Indexes of sharded weights are JSON. The ``.metadata`` of a PyTorch distributed checkpoint is a
pickle, which nobody loads here: the names of its shards stand in it as plain text.
"""

from __future__ import annotations

import json
import re
from typing import Any

from ckptsyncd.formats.reading import Reader

Listed = tuple[tuple[str, ...], int]

NOTHING: Listed = ((), 0)

#: Longer indexes say nothing (the largest known one, of 671 billion parameters, has 9 MB).
_LONGEST_INDEX = 16 * 1024 * 1024
#: A longer ``.metadata`` says nothing: some names would pass for all of them (guessed: 100 MB for
#: 10,000 shards).
_LONGEST_SEARCH = 256 * 1024 * 1024
_BLOCK_BYTES = 1024 * 1024
#: A name can lie across two blocks; none is longer.
_OVERLAP_BYTES = 64
_MOST_NAMES = 100_000

_SHARD = re.compile(rb"__\d{1,9}_\d{1,9}\.distcp")
_NAME = re.compile(r"[^/\\\0]{1,255}")


def listed(fd: int, path: str, size: int) -> Listed:
    """Return the names of files beside this one that it lists, and their bytes (0: not said).

    Never raises for what the file contains; OSError where it cannot be read.
    """
    name = path.rpartition("/")[2]
    reader = Reader(fd, size)
    if name.endswith(".index.json") and 0 < size <= _LONGEST_INDEX:
        return _of_index(reader)
    return (_of_metadata(reader), 0) if name == ".metadata" else NOTHING


def _of_index(reader: Reader) -> Listed:
    try:
        index = json.loads(reader.at(0, reader.size))
    except (ValueError, RecursionError):
        return NOTHING  # its own check says what is wrong with it
    if not isinstance(index, dict) or not isinstance(index.get("weight_map"), dict):
        return NOTHING
    names = set(index["weight_map"].values()) if _are_names(index["weight_map"]) else set()
    about = index.get("metadata")
    return tuple(sorted(names)), _count(about.get("total_size")) if isinstance(about, dict) else 0


def _are_names(weights: dict[str, Any]) -> bool:
    return all(isinstance(x, str) and _NAME.fullmatch(x) for x in weights.values())


def _count(value: Any) -> int:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return int(value) if is_number and 0 < value < 2**63 else 0


def _of_metadata(reader: Reader) -> tuple[str, ...]:
    names: set[bytes] = set()
    if reader.size > _LONGEST_SEARCH:
        return ()
    for offset in range(0, reader.size, _BLOCK_BYTES):
        names.update(_SHARD.findall(reader.at(offset, _BLOCK_BYTES + _OVERLAP_BYTES)))
        if len(names) > _MOST_NAMES:
            return ()
    return tuple(sorted(name.decode() for name in names))
