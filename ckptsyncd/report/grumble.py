"""What fails again and again outside, told once when it begins and once when it is over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

#: How a line is written: level, event, fields.
Write = Callable[[Literal["info", "warning"], str, dict[str, str | int]], object]


class Grumble:
    """Hears of every attempt and writes of few of them. ``heard`` belongs to one thread."""

    def __init__(self, subject: str, write: Write) -> None:
        """Write events named after the subject: ``SUBJECT.failed``, ``SUBJECT.recovered``."""
        self._subject = subject
        self._write = write
        self._failures = 0

    def heard(self, reason: str) -> None:
        """Take in how an attempt went: why it failed, or nothing."""
        if reason and not self._failures:
            self._write("warning", f"{self._subject}.failed", {"text": reason})
        elif not reason and self._failures:
            self._write("info", f"{self._subject}.recovered", {"failures": self._failures})
        self._failures = self._failures + 1 if reason else 0
