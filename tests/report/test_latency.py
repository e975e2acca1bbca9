"""The histogram of commit latencies, computed from moves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ckptsyncd.core.moves import Moved
from ckptsyncd.edge.clock import FakeClock
from ckptsyncd.report import latency
from ckptsyncd.report.latency import BOUNDS, CommitLatency, Histogram
from tests.report.examples import CALM, view


def move(step: int, old: Any, new: Any) -> Moved:
    """Return a move of one of the examples' checkpoints."""
    return Moved(f"llama/checkpoint-{step}", "llama", 1, old, new, "", 10, step)


def told(
    clock: FakeClock, one: CommitLatency, *moves: Moved, saved_at: float | None = None
) -> None:
    """Tell the tap of moves of now, with a snapshot that shows one checkpoint."""
    shown = replace(CALM, checkpoints=(view(1, "settled", saved_at=saved_at),))
    one.turn(moves, clock.now(), shown)


def test_from_the_last_byte_to_safe() -> None:
    """What settled 4 s after its last byte and was safe 3 s later took 7 s."""
    clock, one = FakeClock(), CommitLatency()
    told(clock, one, move(1, "writing", "settled"), saved_at=clock.now().wall - 4.0)
    clock.advance(3.0)
    told(clock, one, move(1, "sealing", "safe"))
    assert one.histogram.sum == 7.0
    assert one.histogram.counts[BOUNDS.index(10.0)] == 1


def test_old_times_are_not_believed() -> None:
    """A file that was copied here with last year's time is measured from when it settled."""
    clock, one = FakeClock(), CommitLatency()
    told(clock, one, move(1, "writing", "settled"), saved_at=clock.now().wall - 3e7)
    clock.advance(3.0)
    told(clock, one, move(1, "sealing", "safe"))
    assert one.histogram.sum == 3.0


def test_what_was_not_uploaded_is_not_measured() -> None:
    """Adopted, superseded, vanished and rewritten checkpoints leave no trace."""
    clock, one = FakeClock(), CommitLatency()
    told(clock, one, move(1, "writing", "settled"))
    told(clock, one, move(1, "settled", "safe"))
    for end in ("superseded", "vanished", "writing"):
        told(clock, one, move(2, "writing", "settled"), move(2, "settled", end))
        told(clock, one, move(2, "sealing", "safe"))
    assert one.histogram == Histogram()
    assert not one._closed


def test_memory_is_bounded() -> None:
    """However many checkpoints settle and never end, no more than a fixed number is remembered."""
    clock, one = FakeClock(), CommitLatency()
    moves = [move(step, "writing", "settled") for step in range(latency.MOST_PENDING + 5)]
    told(clock, one, *moves)
    assert len(one._closed) == latency.MOST_PENDING


@given(st.lists(st.floats(0, 1e5), max_size=30))
def test_every_observation_is_counted_once(seconds: list[float]) -> None:
    """Counts add up, and each lies in the first bucket whose bound it does not exceed."""
    made = Histogram()
    for one in seconds:
        made = made.with_one(one)
    assert sum(made.counts) == len(seconds)
    for place, bound in enumerate(BOUNDS):
        assert sum(made.counts[: place + 1]) == sum(one <= bound for one in seconds)
