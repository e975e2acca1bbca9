"""Nights with a notice: what is safe when the machine goes, against what could have been.

The other planner knows how fast the link will be, tries every set of checkpoints, and wastes
nothing. What it reaches from the same moment, less one piece for each hand and a tenth of the time
(what a drain that must measure the link cannot know), is reached by the daemon.
"""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ckptsyncd.core import orders
from ckptsyncd.core.messages import Failed
from tests.simulation.drains import (
    GB,
    REQUESTS,
    SETTLED_SECONDS,
    WEATHERS,
    Weather,
    announce,
    begin,
    judge,
    lane_speed,
    reachable,
    saves_of,
)
from tests.simulation.link import MIB, S3, STREAM

#: So many pieces tell how fast a hand is that has the link for itself (guessed).
PIECES_ALONE = 2


@settings(max_examples=60, deadline=None)
@given(weather=WEATHERS)
def test_a_steady_link_saves_what_could_be_saved(weather: Weather) -> None:
    """With up to six checkpoints, any notice and any speed: as good as trying everything."""
    night = begin(weather)
    saves = saves_of(night)
    deadline = announce(night, weather.notice)
    night.run(deadline)
    speed, seconds = weather.speed, weather.notice
    if weather.limits is STREAM:
        speed = lane_speed(night, speed)
        # How fast one hand is alone can be known only once some of its pieces went alone.
        seconds -= PIECES_ALONE * night.policy.piece_bytes / speed
    judge(night, saves, reachable(night, seconds, speed, weather.notice))


@settings(max_examples=40, deadline=None)
@given(
    weather=WEATHERS.filter(lambda w: w.notice >= 15.0 and w.limits is S3),
    factor=st.sampled_from((0.05, 0.3, 3.0, 20.0)),
    share=st.floats(0.05, 0.6),
)
def test_after_the_link_has_changed_what_then_can_be_saved_is_saved(
    weather: Weather, factor: float, share: float
) -> None:
    """Some seconds after a change mid-drain, the rest is as good as trying everything."""
    night = begin(weather)
    deadline = announce(night, weather.notice)
    night.run(night.now + share * weather.notice)
    speed = min(max(weather.speed * factor, 10e6), 3 * GB)
    night.set_speed(speed)
    # Pieces that are on their way tell the new speed only when they arrive.
    pieces = 3 * night.policy.hands * night.policy.piece_bytes / speed
    night.run(min(night.now + SETTLED_SECONDS + pieces, deadline))
    left = deadline - night.now
    saves = saves_of(night)
    night.run(deadline)
    judge(night, saves, reachable(night, left, speed, left))


@settings(max_examples=60, deadline=None)
@given(weather=WEATHERS.filter(lambda w: w.notice >= 15.0), seed=st.integers(0, 1000))
def test_throttling_slows_a_drain_down_and_does_not_spoil_it(weather: Weather, seed: int) -> None:
    """While a third of all requests are refused, the newest that fits twice over is saved."""
    night = begin(weather)
    chance = Random(seed)

    def throttle(order: orders.HandOrder, _now: float) -> Failed | None:
        if chance.random() < 0.33:
            return Failed(order.errand, "again", "slow down", wait_seconds=0.5)
        return None

    night.throttle = throttle
    saves = saves_of(night)
    deadline = announce(night, weather.notice)
    night.run(deadline)
    # A piece waits half a second in a third of all cases; so do the requests before and after.
    lane = lane_speed(night, weather.speed)
    a_piece = night.policy.piece_bytes / lane
    slowed = lane * a_piece / (a_piece + 0.5)
    usable = weather.notice - 1.0 - REQUESTS * (0.75 + night.latency)
    judge(night, saves, usable * slowed / 2 - night.policy.hands * night.policy.piece_bytes)


@pytest.mark.parametrize("speed", [10e6, 100e6, 3 * GB])
@pytest.mark.parametrize("count", [1, 4, 20])
@pytest.mark.parametrize("notice", [0.0, 5.0, 15.0, 30.0, 120.0])
def test_of_a_long_backlog_the_newest_that_fits_is_safe(
    speed: float, count: int, notice: float
) -> None:
    """Up to twenty checkpoints of ten seconds each: whatever fits, the newest is among it."""
    weather = Weather((int(speed * 10 / MIB),) * count, ("run",) * count, notice, speed)
    night = begin(weather)
    newest = f"run/step={100 + count - 1}.ckpt"
    rest = {save.name: save.cost for save in saves_of(night)}[newest]
    deadline = announce(night, notice)
    night.run(deadline)
    if rest <= reachable(night, notice, speed, notice):
        assert newest in night.committed
    assert night.is_over is None
    assert night.state() == ("draining" if night.brain.editions.open else "drained")
