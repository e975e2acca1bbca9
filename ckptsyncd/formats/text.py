"""JSON (indexes, trainer states, configurations): whether the text ends where it must.

Only an object, a list or a string has an end; a number cut off is another number. What is no JSON
for another reason than its end (comments, one document a line) is not called broken.
"""

from __future__ import annotations

import json

from ckptsyncd.formats.reading import Reader
from ckptsyncd.formats.verdict import UNKNOWN, WHOLE, Verdict, broken

#: Longer texts are not parsed: memory (a hostile one needs 20 times its length for a moment).
_LONGEST_PARSED = 4 * 1024 * 1024
_SPACE = b" \t\r\n"
_CLOSING = {b"{": b"}", b"[": b"]", b'"': b'"'}
#: The longest word (``-Infinity``) or escape that a cut leaves unreadable behind an error.
_LONGEST_WORD = 9


def check(reader: Reader) -> Verdict:
    """Return whether the text is a whole JSON document."""
    head, tail = reader.at(0, 256).lstrip(_SPACE), reader.at(max(0, reader.size - 256), 256)
    if head.startswith(b"\0\0") or tail.endswith(b"\0\0"):
        return broken("JSON text has zero bytes instead of text")
    closing = _CLOSING.get(head[:1])
    if closing is None:
        return UNKNOWN
    if reader.size > _LONGEST_PARSED:
        ended = tail.rstrip(_SPACE).endswith(closing)
        return UNKNOWN if ended else broken("JSON text is cut off")
    return _parsed(reader.at(0, reader.size))


def _parsed(data: bytes) -> Verdict:
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        # A cut may fall into a character; anything else is another encoding.
        cut = error.reason == "unexpected end of data"
        return broken("JSON text is cut off") if cut else UNKNOWN
    text = text.rstrip()
    try:
        json.loads(text, parse_int=len, parse_float=len)  # numbers of any length cost nothing
    except RecursionError:
        return UNKNOWN
    except json.JSONDecodeError as error:
        at_end = error.pos >= len(text) - _LONGEST_WORD or error.msg.startswith("Unterminated")
        extra = error.msg.startswith("Extra data")
        return broken(f"JSON text is cut off: {error.msg}") if at_end and not extra else UNKNOWN
    return WHOLE
