"""One log line for each thing that moved: words on a terminal, JSON lines elsewhere.

A tap: it reads what the mind says of a turn and changes nothing. Events are named after the states
(``checkpoint.safe``, ``daemon.draining``). What fails again and again is told once, then at most
once a minute with a count, and once when it works again. Names from the disk cannot forge a line,
secrets are hidden.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TextIO

from ckptsyncd.core.facts import Instant
from ckptsyncd.core.moves import Complained, DaemonMoved, Move, Moved, Recovered, Said
from ckptsyncd.core.snapshot import Snapshot
from ckptsyncd.report.log_lines import adopt_libraries, logger
from ckptsyncd.report.outlet import outlet

Level = Literal["debug", "info", "warning", "error"]

#: A failure that goes on is told at most this often.
REPEAT_SECONDS = 60.0
#: A subject that has not failed for so long is forgotten without a word (guessed).
_FORGET_SECONDS = 3600.0
_LEVEL_OF: dict[str, Level] = {
    "writing": "debug",
    "settled": "info",
    "sealing": "debug",
    "parked": "warning",
    "vanished": "warning",
    "draining": "warning",
    "fenced": "error",
}
_LEVEL_OF_EVENT: dict[str, Level] = {
    "drain.planned": "warning",
    "drain.nothing_fits": "error",
    "drain.reported": "warning",
    "trainer.told": "warning",
}
_OVER = ("safe", "superseded", "vanished")


@dataclass(slots=True)
class _Failing:
    """A subject that fails: when it was last told, and how often it failed since."""

    told_at: float
    since: int = 0


class Logs:
    """Writes one line for each move. ``turn`` is the tap and belongs to one thread.

    The other methods may be called by any thread.
    """

    def __init__(
        self,
        file: TextIO | None = None,
        *,
        form: str = "auto",
        level: str = "info",
        secrets: Sequence[str] = (),
    ) -> None:
        """Write to ``file`` (standard error) as ``human``, ``json``, or by what the file is.

        ``secrets`` are texts that are hidden wherever they turn up.
        """
        self._made = (file or outlet(sys.stderr), form, secrets)
        self._log = self._logger(level)
        self._failing: dict[str, _Failing] = {}
        self._moved_at: dict[str, float] = {}
        self._lost = 0

    def turn(self, moves: Sequence[Move], now: Instant, snapshot: Snapshot) -> None:
        """Write the lines of one turn; the snapshot is not looked at."""
        del snapshot
        for move in moves:
            if isinstance(move, Moved):
                self._moved(move, now)
            elif isinstance(move, DaemonMoved):
                level = _LEVEL_OF.get(move.new, "info")
                self._say(level, f"daemon.{move.new}", now, was=move.old, reason=move.reason)
            elif isinstance(move, Complained):
                self._complained(move, now)
            elif isinstance(move, Recovered):
                self._recovered(move, now)
            else:
                self._said(move, now)

    def say(self, level: Level, event: str, now: Instant, **fields: Any) -> None:
        """Write one line of somebody else's, such as the start of the program."""
        self._say(level, event, now, **fields)

    def set_level(self, level: str) -> None:
        """Write lines of this level and above from now on."""
        self._log = self._logger(level)

    def adopt_libraries(self) -> logging.Handler:
        """Let libraries warn through this log; the handler is to be removed at the end."""
        return adopt_libraries(self._log)

    def _logger(self, level: str) -> Any:
        file, form, secrets = self._made
        return logger(file, form, level, secrets)

    def _moved(self, move: Moved, now: Instant) -> None:
        before = self._moved_at.pop(move.checkpoint, None)
        if move.new not in _OVER:
            self._moved_at[move.checkpoint] = now.boot
        self._say(
            _LEVEL_OF.get(move.new, "info"),
            f"checkpoint.{move.new}",
            now,
            checkpoint=move.checkpoint,
            edition=move.edition,
            step=move.step,
            reason=move.reason,
            bytes=move.bytes,
            seconds=None if before is None else round(now.boot - before, 3),
            was=move.old,
        )

    def _complained(self, move: Complained, now: Instant) -> None:
        known = self._failing.get(move.subject)
        if known is None:
            self._forget_old(now)
            self._failing[move.subject] = _Failing(now.boot)
            self._say(
                "warning",
                "trouble.began",
                now,
                subject=move.subject,
                text=move.text,
                hint=move.hint,
            )
            return
        known.since += 1
        if now.boot - known.told_at >= REPEAT_SECONDS:
            self._say(
                "warning",
                "trouble.continues",
                now,
                subject=move.subject,
                text=move.text,
                hint=move.hint,
                failures=known.since,
            )
            known.told_at, known.since = now.boot, 0

    def _recovered(self, move: Recovered, now: Instant) -> None:
        self._failing.pop(move.subject, None)
        self._say("info", "trouble.ended", now, subject=move.subject, failures=move.count)

    def _forget_old(self, now: Instant) -> None:
        """Keep no more subjects than fail at present, however long the program runs."""
        old = now.boot - _FORGET_SECONDS
        for subject in [name for name, it in self._failing.items() if it.told_at < old]:
            del self._failing[subject]

    def _said(self, move: Said, now: Instant) -> None:
        level = _LEVEL_OF_EVENT.get(move.event, "info")
        self._say(level, move.event, now, **dict(move.fields))

    def _say(self, level: Level, event: str, now: Instant, **fields: Any) -> None:
        """Write a line; a log that cannot be written (a full disk) does not stop the daemon."""
        kept = {name: value for name, value in fields.items() if value not in (None, "")}
        try:
            if self._lost:
                self._log.warning("log.lost", at=now.wall, lines=self._lost)
                self._lost = 0
            getattr(self._log, level)(event, at=now.wall, **kept)
        except OSError:
            self._lost += 1
