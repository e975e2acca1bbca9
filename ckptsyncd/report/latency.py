"""How long it takes from a checkpoint's last byte to ``safe``, as a histogram.

A tap that computes it from the moves of the mind; nothing else counts anything.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from ckptsyncd.core.facts import Instant
from ckptsyncd.core.moves import Move, Moved
from ckptsyncd.core.snapshot import CheckpointView, Snapshot

#: Upper bounds in seconds: from a small file to a large model over a slow link.
BOUNDS = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0)

#: What settled so long after its last byte was copied here with its old times, or lay here when the
#: program started; it is measured from when it settled. Longer than every rule's wait (guessed).
MOST_SETTLING_SECONDS = 300.0

#: More than can be under way (guessed); the oldest is forgotten first.
MOST_PENDING = 10_000

_OVER = ("superseded", "vanished", "writing")
_Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts of observations below or at each bound of ``BOUNDS`` and beyond, and their sum."""

    counts: tuple[int, ...] = (0,) * (len(BOUNDS) + 1)
    sum: float = 0.0

    def with_one(self, seconds: float) -> Histogram:
        """Return the histogram with one more observation."""
        place = bisect_left(BOUNDS, seconds)
        counts = tuple(count + (at == place) for at, count in enumerate(self.counts))
        return Histogram(counts, self.sum + seconds)


class CommitLatency:
    """``turn`` is the tap; ``histogram`` is replaced as a whole and may be read by any thread.

    Only checkpoints that this program uploaded and sealed are observed.
    """

    def __init__(self) -> None:
        """Begin with nothing observed."""
        self.histogram = Histogram()
        self._closed: dict[_Key, float] = {}
        self._newest: dict[str, float] = {}

    def seconds_of(self, series: str) -> float | None:
        """Return what the newest safe checkpoint of a series took, if one was observed."""
        return self._newest.get(series)

    def turn(self, moves: Sequence[Move], now: Instant, snapshot: Snapshot) -> None:
        """Take in one turn's moves."""
        for move in moves:
            if isinstance(move, Moved):
                self._moved(move, now, snapshot)

    def _moved(self, move: Moved, now: Instant, snapshot: Snapshot) -> None:
        key = (move.checkpoint, move.edition)
        if move.new == "settled" and move.old == "writing":
            self._closed[key] = _closed_at(key, now, snapshot)
            if len(self._closed) > MOST_PENDING:
                del self._closed[next(iter(self._closed))]
        elif move.new == "safe":
            closed = self._closed.pop(key, None)
            if closed is not None and move.old == "sealing":
                self._observed(move.series, max(now.boot - closed, 0.0))
        elif move.new in _OVER:
            self._closed.pop(key, None)

    def _observed(self, series: str, seconds: float) -> None:
        self.histogram = self.histogram.with_one(seconds)
        self._newest.pop(series, None)
        self._newest[series] = seconds
        if len(self._newest) > MOST_PENDING:
            del self._newest[next(iter(self._newest))]


def _closed_at(key: _Key, now: Instant, snapshot: Snapshot) -> float:
    """Return when the last byte was written (boot seconds), as far as the file's times tell."""
    seen = [view for view in snapshot.checkpoints if (view.checkpoint, view.edition) == key]
    age = max((_age(view, now) for view in seen), default=0.0)
    return now.boot - age if age <= MOST_SETTLING_SECONDS else now.boot


def _age(view: CheckpointView, now: Instant) -> float:
    return max(now.wall - view.saved_at, 0.0) if view.saved_at is not None else 0.0
