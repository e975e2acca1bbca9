"""TensorFlow's index of a checkpoint: a table of sorted keys whose footer ends the file.

Other programs call their files ``.index`` too, so only what begins as TensorFlow's does is judged.
"""

from __future__ import annotations

from ckptsyncd.formats.reading import Reader
from ckptsyncd.formats.verdict import UNKNOWN, WHOLE, Verdict, broken

#: The last eight bytes (tensorflow-cpu 2.21.0, and every sorted table of its kind).
FOOTER = bytes.fromhex("57fb808b247547db")
#: The first entry: an empty key, the length of its value, and a header that begins with the number
#: of shards and holds version 1.
_BEGIN = b"\0\0"
_SHARDS = b"\x08"
_VERSION = b"\x1a\x02\x08\x01"


def check(reader: Reader) -> Verdict:
    """Return whether an index ends with its footer."""
    head = reader.at(0, 24)
    if not (head.startswith(_BEGIN) and head[3:4] == _SHARDS and _VERSION in head[4:]):
        return UNKNOWN
    is_whole = reader.at(reader.size - len(FOOTER), len(FOOTER)) == FOOTER
    return WHOLE if is_whole else broken("TensorFlow index ends without its footer")
