"""Say in the log that the loop stands: it cannot say so itself.

Whatever holds up a turn holds up everything: nothing is uploaded, and nothing is told. Nothing that
is known does so for long, so this is for what is not. A tap, and a thread that looks after it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Protocol

from ckptsyncd.core.facts import Instant
from ckptsyncd.core.moves import Move
from ckptsyncd.core.snapshot import Snapshot
from ckptsyncd.core.words import duration_words
from ckptsyncd.report.logs import Level
from ckptsyncd.report.probes import HEALTHY_SECONDS

#: It is looked this often (guessed).
LOOK_SECONDS = 5.0
#: What goes on is told again so often.
REPEAT_SECONDS = 60.0
#: Looks that lie so far apart were held up as the loop was (guessed): the process was stopped, or
#: the machine slept.
ASLEEP_SECONDS = 15.0

_HINT = "nothing is uploaded until it turns; please report it with what 'py-spy dump' shows"


class Write(Protocol):
    """Whoever writes a line of the log."""

    def __call__(self, level: Level, event: str, fields: dict[str, str | int], /) -> None:
        """Write it; from any thread."""
        ...


class Standing:
    """Tells when the loop has not turned for ``HEALTHY_SECONDS``, and when it turns again."""

    def __init__(self, now: Callable[[], Instant], write: Write) -> None:
        """Begin to look."""
        self._now = now
        self._write = write
        self._turned_at = self._looked_at = now().boot
        self._told_at: float | None = None
        self._closing = threading.Event()
        threading.Thread(target=self._run, name="standing", daemon=True).start()

    def turn(self, moves: Sequence[Move], now: Instant, snapshot: Snapshot) -> None:
        """Note that the loop turned."""
        del moves, snapshot
        self._turned_at = now.boot

    def close(self, seconds: float) -> bool:
        """Look no more."""
        del seconds
        self._closing.set()
        return True

    def look(self) -> None:
        """Look once, and tell what is to be told."""
        now = self._now().boot
        if now - self._looked_at > ASLEEP_SECONDS:
            self._turned_at = now
        self._looked_at = now
        stood = now - self._turned_at
        if stood < HEALTHY_SECONDS:
            if self._told_at is not None:
                self._write("warning", "loop.turns", {"text": "the loop turns again"})
            self._told_at = None
        elif self._told_at is None or now - self._told_at >= REPEAT_SECONDS:
            self._told_at = now
            text = f"the loop has not turned for {duration_words(stood)}"
            self._write("error", "loop.stands", {"text": text, "hint": _HINT})

    def _run(self) -> None:
        while not self._closing.wait(LOOK_SECONDS):
            self.look()
