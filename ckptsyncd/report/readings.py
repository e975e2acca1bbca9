"""What trackers plot: for each series, as it stands, the numbers that belong beside its curves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from ckptsyncd.core.facts import Instant
from ckptsyncd.core.moves import Move, Moved
from ckptsyncd.core.snapshot import Snapshot

#: So many series are plotted, the first ones of the life of a program (guessed: a sweep).
MOST_SERIES = 100


@dataclass(frozen=True, slots=True)
class Reading:
    """One series at one moment (wall time).

    ``step`` is the newest step that was seen of it, finished or not: the place on the axis of the
    training curves. What is not known is ``None``. ``latency_seconds`` is that of the newest safe
    checkpoint of this process, from its last byte to safe.
    """

    series: str
    at: float
    step: int | None
    safe_step: int | None
    safe_bytes: int | None
    latency_seconds: float | None
    unsynced_bytes: int

    def values(self) -> dict[str, float]:
        """Return what is known of it, by the names that trackers show."""
        named = {
            "safe_step": self.safe_step,
            "safe_bytes": self.safe_bytes,
            "commit_latency_seconds": self.latency_seconds,
            "unsynced_bytes": self.unsynced_bytes,
        }
        return {name: float(value) for name, value in named.items() if value is not None}


class Readings:
    """A tap that gives ``write`` a reading of every series in which something changed.

    At most every ``seconds``, and at once when a checkpoint becomes safe. ``latency`` returns what
    the newest safe checkpoint of a series took.
    """

    def __init__(
        self,
        write: Callable[[Reading], object],
        seconds: float,
        latency: Callable[[str], float | None],
    ) -> None:
        """Begin with nothing read."""
        self._write = write
        self._seconds = seconds
        self._latency = latency
        self._read_at = float("-inf")
        self._last: dict[str, Reading] = {}

    def turn(self, moves: Sequence[Move], now: Instant, snapshot: Snapshot) -> None:
        """Write what is due."""
        is_safe = any(isinstance(move, Moved) and move.new == "safe" for move in moves)
        if not is_safe and now.boot - self._read_at < self._seconds:
            return
        self._read_at = now.boot
        for reading in _readings(snapshot, now.wall, self._latency):
            last = self._last.get(reading.series)
            if last is None and len(self._last) >= MOST_SERIES:
                continue
            if last is None or replace(last, at=reading.at) != reading:
                self._last[reading.series] = reading
                self._write(reading)


def _readings(
    snapshot: Snapshot, wall: float, latency: Callable[[str], float | None]
) -> Iterator[Reading]:
    points = {point.series: point for point in snapshot.recovery_points}
    for series in dict.fromkeys([*points, *(view.series for view in snapshot.checkpoints)]):
        point = points.get(series)
        views = [view for view in snapshot.checkpoints if view.series == series]
        steps = [view.step for view in views if view.step is not None]
        if point is not None and point.step is not None:
            steps.append(point.step)
        yield Reading(
            series=series,
            at=wall,
            step=max(steps, default=None),
            safe_step=None if point is None else point.step,
            safe_bytes=None if point is None else point.bytes,
            latency_seconds=latency(series),
            unsynced_bytes=sum(view.bytes - view.bytes_stored for view in views if view.at_risk),
        )
