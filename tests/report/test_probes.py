"""The probes: when the program counts as alive, as ready, and as in step with the trainer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ckptsyncd.core.snapshot import Snapshot
from ckptsyncd.edge.clock import FakeClock
from ckptsyncd.report.probes import HEALTHY_SECONDS, NAMES, Probes
from tests.report.examples import CALM, view


def probes(clock: FakeClock, snapshot: Snapshot = CALM) -> Probes:
    """Return probes that saw one turn, with a limit of five minutes."""
    made = Probes(clock.now, 300.0)
    made.turn((), clock.now(), snapshot)
    return made


def of(clock: FakeClock, **changes: Any) -> Snapshot:
    """Return a calm snapshot of now with changes."""
    return replace(CALM, taken_at=clock.now().wall, **changes)


def test_nothing_is_good_before_the_first_turn() -> None:
    """A program that has not turned yet passes no probe, and an unknown probe has no answer."""
    made = Probes(FakeClock().now, 300.0)
    verdicts = [made.ask(name) for name in NAMES]
    assert [verdict is not None and verdict.is_good for verdict in verdicts] == [False] * 3
    assert made.ask("livez") is None


def test_a_loop_that_stands_is_not_healthy() -> None:
    """Health ends when the loop has not turned for too long, and comes back with the next turn."""
    clock = FakeClock()
    made = probes(clock)
    assert made.healthz().is_good
    clock.advance(HEALTHY_SECONDS + 1)
    assert made.healthz() == replace(made.healthz(), is_good=False, text="the loop turned 31 s ago")
    made.turn((), clock.now(), CALM)
    assert made.healthz().is_good


def test_a_loop_that_stands_is_not_ready_and_knows_nothing() -> None:
    """What such a daemon saw last may be old: it neither would upload nor is it in step."""
    clock = FakeClock()
    made = probes(clock)
    clock.advance(HEALTHY_SECONDS)
    for verdict in (made.readyz(), made.synced()):
        assert not verdict.is_good
        assert "the loop turned 30 s ago" in verdict.text


def test_a_disk_that_is_silent_is_not_in_step() -> None:
    """Where nobody knows what was saved, nobody can say that all of it is safe."""
    clock = FakeClock()
    verdict = probes(clock, of(clock, disk_failing="the disk is silent")).synced()
    assert (verdict.is_good, verdict.text) == (False, "not known: the disk is silent")


def test_setting_the_wall_clock_does_not_make_it_ill() -> None:
    """Health is reckoned on the boot clock: an operator's new time changes nothing."""
    clock = FakeClock()
    made = probes(clock)
    clock.jump_wall(86400.0)
    assert made.healthz().is_good


@pytest.mark.parametrize(
    ("changes", "is_good", "text"),
    [
        ({}, True, "the store can be written"),
        ({"state": "starting"}, False, "not answered yet"),
        ({"state": "fenced", "reason": "a newer daemon"}, False, "fenced: a newer daemon"),
        ({"store_failing": "HTTP 503\n"}, False, "the store fails: HTTP 503\\n"),
        ({"disk_failing": "the watch root's disk has not answered"}, False, "has not answered"),
        ({"state": "draining"}, True, "can be written"),
    ],
)
def test_ready_means_that_the_store_can_be_written(
    changes: dict[str, Any],
    is_good: bool,  # noqa: FBT001 - a table
    text: str,
) -> None:
    """Ready is everything but starting, fenced, or a store that fails; the reason is one line."""
    verdict = probes(FakeClock(), replace(CALM, **changes)).readyz()
    assert verdict.is_good == is_good
    assert text in verdict.text


def test_synced_counts_from_the_last_byte() -> None:
    """A finished checkpoint may wait for the limit; then the answer names its series and age."""
    clock = FakeClock()
    saved_at = clock.now().wall
    waiting = view(4300, "uploading", is_ahead=True, saved_at=saved_at)
    made = probes(clock, of(clock, checkpoints=(waiting,)))
    assert made.synced().is_good
    clock.advance(301.0)
    verdict = made.synced()
    assert (verdict.is_good, verdict.text) == (False, "llama is behind for 5 min 1 s")
    made.turn((), clock.now(), of(clock))
    assert made.synced().is_good


def test_faster_saves_do_not_hide_that_nothing_gets_through() -> None:
    """Where each save takes the place of the one before, the age is that of the first of them."""
    clock = FakeClock()
    made = probes(clock)
    for step in range(10):
        saved_at = clock.advance(60.0).wall
        waiting = view(step, "settled", is_ahead=True, saved_at=saved_at)
        made.turn((), clock.now(), of(clock, checkpoints=(waiting,)))
    assert not made.synced().is_good
    assert made.behind() == {"llama": pytest.approx(clock.now().wall - 540.0)}


def test_what_is_older_than_the_recovery_point_is_no_lag() -> None:
    """A parked checkpoint behind a newer safe one is at risk, and yet the series is in step."""
    clock = FakeClock()
    made = probes(clock, of(clock, checkpoints=(view(10, "parked"), view(20, "safe"))))
    clock.advance(1000.0)
    made.turn((), clock.now(), of(clock, checkpoints=(view(10, "parked"), view(20, "safe"))))
    assert made.synced().is_good


def test_not_known_is_not_synced() -> None:
    """A daemon that has not read disk and store yet cannot say that all is safe."""
    clock = FakeClock()
    assert not probes(clock, of(clock, state="starting")).synced().is_good
