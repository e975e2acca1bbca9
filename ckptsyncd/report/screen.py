"""Lines of a screen: wrapped to its width, coloured where that is wanted, and harmless."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ckptsyncd.core.words import printable, redacted

#: Nothing is wrapped closer than this (guessed: two words).
NARROWEST = 20
_COLOURS = {"good": "32", "busy": "36", "bad": "31;1", "warn": "33", "dim": "2", "bold": "1"}
#: A number and its unit stay on one line.
_UNIT = re.compile(r"(?<=\d) (?=%|(?:B|[KMGT]iB|s|min|h|d)\b)")
#: Never in a text that was made printable, and no place to wrap.
_GLUE = "\u00a0"
_CELLS = 16


@dataclass(frozen=True, slots=True)
class Line:
    """A line before it is wrapped and coloured; what follows the first line is indented."""

    text: str
    tone: str = ""
    indent: int = 0


def finished(lines: Iterable[Line], width: int, *, colour: bool) -> list[str]:
    """Return the lines as they are printed."""
    return [text for line in lines for text in _finished(line, width, colour=colour)]


def bar(done: int, total: int) -> str:
    """Return a bar that is as full as the work is done, and full only when it is."""
    full = _CELLS if total <= 0 else min(_CELLS, _CELLS * done // total)
    return f"[{'#' * full}{'.' * (_CELLS - full)}]"


def _finished(line: Line, width: int, *, colour: bool) -> Iterator[str]:
    wrapped = textwrap.wrap(
        _UNIT.sub(_GLUE, printable(redacted(line.text))),
        max(width, NARROWEST),
        subsequent_indent=" " * line.indent,
        drop_whitespace=True,
        break_on_hyphens=False,
        replace_whitespace=False,
    )
    for part in wrapped or [""]:
        text = part.replace(_GLUE, " ")
        is_toned = colour and line.tone and text
        yield f"\x1b[{_COLOURS[line.tone]}m{text}\x1b[0m" if is_toned else text
