"""What trackers are given: which numbers, of which series, and how often."""

from __future__ import annotations

from dataclasses import replace

from ckptsyncd.core.facts import Instant
from ckptsyncd.core.moves import Moved
from ckptsyncd.core.snapshot import RecoveryPoint
from ckptsyncd.report.readings import MOST_SERIES, Reading, Readings
from tests.report.examples import BUSY, CALM, GIB, NOW, view

SAFE = Moved("llama/checkpoint-4200", "llama", 1, "sealing", "safe", "", 10, 4200)


def at(seconds: float) -> Instant:
    """Return a moment so many seconds after the first."""
    return Instant(100.0 + seconds, NOW + seconds)


def unknown(_: str) -> None:
    """Know no latency of any series."""


def test_a_reading_holds_what_is_plotted() -> None:
    """Safe step and bytes, latency and unsynced bytes, at the newest step that was seen."""
    found: list[Reading] = []
    Readings(found.append, 10.0, {"llama": 7.5}.get).turn([], at(0), BUSY)
    (one,) = found
    assert (one.series, one.at, one.step) == ("llama", NOW, 4400)
    assert one.values() == {
        "safe_step": 4200.0,
        "safe_bytes": 10.0 * GIB,
        "commit_latency_seconds": 7.5,
        "unsynced_bytes": 10.0 * GIB - int(6.11 * GIB),
    }


def test_what_is_not_known_is_left_out() -> None:
    """Before anything is safe there is neither a safe step nor a latency, and no zero for them."""
    found: list[Reading] = []
    nothing = replace(CALM, recovery_points=(), checkpoints=(view(1, "writing"),))
    Readings(found.append, 10.0, unknown).turn([], at(0), nothing)
    assert found[0].values() == {"unsynced_bytes": 0.0}


def test_only_changes_are_written_and_not_too_often() -> None:
    """Calm costs nothing, changes at most one reading an interval; safe is written at once."""
    found: list[Reading] = []
    readings = Readings(found.append, 10.0, unknown)
    for seconds in (0, 1, 9, 10, 20, 30):
        readings.turn([], at(seconds), CALM)
    assert len(found) == 1
    readings.turn([], at(39.9), BUSY)
    assert len(found) == 1
    readings.turn([], at(40), BUSY)
    assert len(found) == 2
    readings.turn([SAFE], at(41), CALM)
    assert len(found) == 3


def test_the_number_of_series_is_bounded() -> None:
    """A sweep of thousands of runs does not become thousands of files."""
    found: list[Reading] = []
    points = tuple(
        RecoveryPoint(f"run-{number}", "c", 1, number, NOW, 1) for number in range(MOST_SERIES + 50)
    )
    readings = Readings(found.append, 10.0, unknown)
    readings.turn([], at(0), replace(CALM, recovery_points=points, checkpoints=()))
    assert len(found) == MOST_SERIES
