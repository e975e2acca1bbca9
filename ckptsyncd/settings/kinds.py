"""What a setting's value may be: each kind reads it, says what is allowed, and shows it again.

``parse`` takes text (a flag, an environment variable), ``take`` a TOML value. Both raise ValueError
with a reason; whoever asked knows where the value stood and says so.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any, Protocol

_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
_TRUE = {"true", "yes", "on", "1"}
_FALSE = {"false", "no", "off", "0"}


class Kind(Protocol):
    """One kind of value."""

    def parse(self, text: str) -> Any:
        """Return the value that a text means; raises ValueError."""
        ...

    def take(self, value: Any) -> Any:
        """Return the value that a TOML value means; raises ValueError."""
        ...

    def allowed(self) -> str:
        """Say what is allowed, for messages and tables."""
        ...

    def show(self, value: Any) -> str:
        """Return the value as it would stand in a TOML file."""
        ...


def quoted(text: str) -> str:
    """Return a text as a TOML string."""
    marks = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    escaped = (marks.get(mark) or _plain(mark) for mark in text)
    return '"' + "".join(escaped) + '"'


def _plain(mark: str) -> str:
    return mark if mark.isprintable() else f"\\u{ord(mark):04X}"


@dataclass(frozen=True, slots=True)
class Text:
    """Any text; with ``pattern`` only what matches it as a whole, which ``meaning`` describes."""

    meaning: str = "text"
    pattern: str = ""

    def parse(self, text: str) -> str:
        """Return the text itself."""
        if any(ord(mark) < ord(" ") for mark in text):
            msg = "a control character"
            raise ValueError(msg)
        if self.pattern and not re.fullmatch(self.pattern, text):
            msg = f"not {self.meaning}"
            raise ValueError(msg)
        return text

    def take(self, value: Any) -> str:
        """Return a TOML string."""
        return self.parse(typed(value, str, "a string"))

    def allowed(self) -> str:
        """Say what the text is."""
        return self.meaning

    def show(self, value: Any) -> str:
        """Return it quoted."""
        return quoted(value)


@dataclass(frozen=True, slots=True)
class Path(Text):
    """A path of a file or directory; ``~`` at its start is the home directory."""

    meaning: str = "a path"


@dataclass(frozen=True, slots=True)
class Choice(Text):
    """One of a few words."""

    words: tuple[str, ...] = ()

    def parse(self, text: str) -> str:
        """Return the word."""
        if text not in self.words:
            msg = "not one of them"
            raise ValueError(msg)
        return text

    def allowed(self) -> str:
        """List the words."""
        return ", ".join(self.words[:-1]) + " or " + self.words[-1]


@dataclass(frozen=True, slots=True)
class Switch:
    """Yes or no."""

    def parse(self, text: str) -> bool:
        """Return what the word means."""
        word = text.strip().lower()
        if word not in _TRUE | _FALSE:
            msg = "neither true nor false"
            raise ValueError(msg)
        return word in _TRUE

    def take(self, value: Any) -> bool:
        """Return a TOML boolean."""
        return bool(typed(value, bool, "true or false"))

    def allowed(self) -> str:
        """Say both."""
        return "true or false"

    def show(self, value: Any) -> str:
        """Return it as TOML says it."""
        return "true" if value else "false"


@dataclass(frozen=True, slots=True)
class Count:
    """A whole number within bounds."""

    low: int
    high: int

    def parse(self, text: str) -> int:
        """Return the number."""
        if not _WHOLE.fullmatch(text.strip()):
            msg = "not a whole number"
            raise ValueError(msg)
        return self.take(int(text))

    def take(self, value: Any) -> int:
        """Return a TOML integer."""
        return int(within(typed(value, int, "a whole number"), self.low, self.high))

    def allowed(self) -> str:
        """Say the bounds."""
        return f"{self.low} to {self.high}"

    def show(self, value: Any) -> str:
        """Return its digits."""
        return str(value)


@dataclass(frozen=True, slots=True)
class Many:
    """A list of texts: an array in TOML, a flag given several times, separated by commas."""

    each: Text

    def parse(self, text: str) -> tuple[str, ...]:
        """Return the texts between the commas."""
        return self.take([part.strip() for part in text.split(",") if part.strip()])

    def take(self, value: Any) -> tuple[str, ...]:
        """Return a TOML array of strings."""
        if not isinstance(value, list | tuple):
            msg = f"a {_name(value)}, not a list"
            raise ValueError(msg)  # noqa: TRY004  (wrong values have one kind of error here)
        return tuple(self.each.take(item) for item in value)

    def allowed(self) -> str:
        """Say what each is."""
        return f"list: {self.each.allowed()}"

    def show(self, value: Any) -> str:
        """Return it as a TOML array."""
        return "[" + ", ".join(quoted(item) for item in value) + "]"


def within(value: float, low: float, high: float) -> float:
    """Return the value if it is within bounds; raises ValueError."""
    if (isinstance(value, float) and math.isnan(value)) or not low <= value <= high:
        msg = "out of range"
        raise ValueError(msg)
    return value


def typed(value: Any, kind: Any, what: str) -> Any:
    """Return the value if it is of that kind; TOML's booleans are no numbers."""
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        msg = f"a {_name(value)}, not {what}"
        raise ValueError(msg)
    return value


def _name(value: Any) -> str:
    names = {str: "string", bool: "boolean", int: "number", float: "number", list: "list"}
    return names.get(type(value), "table" if isinstance(value, dict) else "date")
