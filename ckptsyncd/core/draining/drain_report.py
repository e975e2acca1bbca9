"""What became of a drain: a frozen value, and the JSON of ``docs/drain-report.md``."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Literal

VERSION = 1

#: ``drained``: everything finished is safe. ``deadline``: time is up and something is not.
#: ``withdrawn``, ``outlived``: the notice was taken back, or came to nothing. ``stopped``: the
#: program ends.
Outcome = Literal["drained", "deadline", "withdrawn", "outlived", "stopped"]


@dataclass(frozen=True, slots=True)
class LeftBehind:
    """A finished checkpoint that is not safe: what is lost with this machine."""

    checkpoint: str
    series: str
    edition: int
    step: int | None
    bytes: int
    bytes_stored: int
    reason: str


@dataclass(frozen=True, slots=True)
class DrainReport:
    """One drain as it stood at ``ended_at``. Times are wall seconds.

    ``source`` is that of the notice with the shortest deadline, or ``stop``. ``points`` are the
    recovery points of all series, as ``checkpoint@edition``; ``made_safe`` what became safe in the
    drain; ``writing`` what was not finished. ``trainer`` is what became of telling it.
    """

    source: str
    notice_id: str
    text: str
    outcome: Outcome
    began_at: float
    ended_at: float
    deadline_at: float | None
    points: tuple[str, ...] = ()
    made_safe: tuple[str, ...] = ()
    left: tuple[LeftBehind, ...] = ()
    writing: tuple[str, ...] = ()
    bytes_sent: int = 0
    bytes_per_second: float = 0.0
    trainer: str = ""
    host: str = ""

    @property
    def bytes_left(self) -> int:
        """How many bytes of finished checkpoints are not in the store."""
        return sum(left.bytes - left.bytes_stored for left in self.left)

    def encode(self) -> bytes:
        """Return the report as JSON, one line."""
        row = {"version": VERSION, **asdict(self), "bytes_left": self.bytes_left}
        return json.dumps(row, separators=(",", ":")).encode() + b"\n"
