"""Reading back W&B's offline files: the log format of LevelDB around protocol buffers.

W&B's own reader is part of its binary, so this is written from the format's description
(github.com/google/leveldb, doc/log_format.md); the file begins with W&B's own seven bytes.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_BLOCK = 32768
_HEAD = 7
_FULL, _LAST = 1, 4


def records(path: Path) -> Iterator[bytes]:
    """Yield every record of a file, its parts put together."""
    data = path.read_bytes()
    assert data[:4] == b":W&B"
    place, parts = _HEAD, b""
    while place + _HEAD <= len(data):
        left = _BLOCK - place % _BLOCK
        if left < _HEAD:
            place += left
            continue
        _, length, kind = struct.unpack_from("<IHB", data, place)
        parts += data[place + _HEAD : place + _HEAD + length]
        place += _HEAD + length
        if kind in (_FULL, _LAST):
            yield parts
            parts = b""


def history(path: Path) -> list[dict[str, Any]]:
    """Return every row that was logged."""
    from wandb.proto import wandb_internal_pb2  # noqa: PLC0415 - where the extra is installed

    found = []
    for data in records(path):
        record = wandb_internal_pb2.Record()
        record.ParseFromString(data)
        if record.WhichOneof("record_type") == "history":
            items = record.history.item
            found.append({_key(item): json.loads(item.value_json) for item in items})
    return found


def _key(item: Any) -> str:
    return item.key or "/".join(item.nested_key)
