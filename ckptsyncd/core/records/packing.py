"""Many rows in little room, for the ledger: a listing of 100,000 files is 23 MB of JSON.

It is written when a checkpoint settles, when it gets its number and when it is safe, and whoever
holds it as text holds it several times. Packed by the thousand it is 3 MB, and never there at once.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any

from ckptsyncd.core.records.manifest import as_list, parse_json
from ckptsyncd.errors import Never

#: So many rows are packed together, and fewer are left as they are, to be read by people (guessed).
MANY = 1000
#: The fastest: names and times of one checkpoint are alike.
_LEVEL = 1

Row = dict[str, Any]


def packed(rows: Iterable[Row]) -> list[Row] | list[str]:
    """Return rows to be written into a JSON document; ``unpacked`` is the inverse."""
    rest = iter(rows)
    first = list(islice(rest, MANY))
    if len(first) < MANY:
        return first
    blocks = chain([first], iter(lambda: list(islice(rest, MANY)), []))
    return [squeezed([json.dumps(block, separators=(",", ":")).encode()]) for block in blocks]


def unpacked(value: object, most_bytes: int) -> Iterator[object]:
    """Yield the rows again; raises Never where they were not packed here, or are too large."""
    for item in as_list(value):
        if isinstance(item, str):
            yield from as_list(parse_json(opened(item, most_bytes), most_bytes))
        else:
            yield item


def squeezed(parts: Iterable[bytes]) -> str:
    """Return a text that stands for these bytes, and is no JSON; ``opened`` is the inverse."""
    press = zlib.compressobj(_LEVEL)
    return b"".join((*map(press.compress, parts), press.flush())).hex()


def opened(text: str, most_bytes: int) -> bytes:
    """Return the bytes that a text stands for; raises Never where that is none, or too large."""
    press = zlib.decompressobj()
    try:
        data = press.decompress(bytes.fromhex(text), most_bytes)
    except (ValueError, zlib.error) as error:
        msg = f"not a packed text: {error}"
        raise Never(msg) from None
    if not press.eof:
        msg = f"a packed text of more than {most_bytes} bytes, or a part of one"
        raise Never(msg)
    return data
