"""A store that throttles is asked ever less: the promised bound, on pretended nights."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ckptsyncd.core import orders
from ckptsyncd.core.messages import Failed
from ckptsyncd.core.rules.policy import Policy
from tests.simulation.link import MIB, Night

HANDS = 8


def throttled(night: Night, holds: Callable[[int], bool]) -> list[float]:
    """Throttle requests whose number (in order) this says; return the times of all of them."""
    times: list[float] = []

    def answer(order: orders.HandOrder, now: float) -> Failed | None:
        times.append(now)
        if not holds(len(times)):
            return None
        return Failed(order.errand, "again", "slow down", throttled=True)

    night.throttle = answer
    return times


def begun(pieces: int) -> Night:
    """Return a night in which a file of many pieces is on its way."""
    night = Night(policy=Policy(companions=False, hands=HANDS, piece_bytes=5 * MIB))
    night.save("run/step-1.pt", pieces * 5 * MIB)
    night.run(night.now + 15.0)
    assert night.brain.pieces_stored > HANDS
    return night


def test_a_store_that_throttles_for_good_is_asked_ever_less() -> None:
    """With thousands of pieces waiting: two rounds of hands, then one request in each pause."""
    night = begun(pieces=5000)
    started = night.now
    times = throttled(night, lambda _: True)
    night.run(started + 3600.0)
    since = [time - started for time in times]
    first = sum(time <= 1.0 for time in since)
    assert HANDS <= first <= 2 * HANDS + 2
    assert sum(time <= 60.0 for time in since) <= 2 * HANDS + 10
    # One request in 30 to 60 s at the end; each may be followed by the answers of none.
    assert sum(1800.0 < time <= 3600.0 for time in since) <= 1800 / 30 + 1
    assert sum(1800.0 < time <= 3600.0 for time in since) >= 1800 / 60 - 1


def test_once_the_store_is_well_again_all_hands_come_back() -> None:
    """After the throttling ends everything is sent, with all hands at once in the end."""
    night = begun(pieces=1000)
    count = 60
    throttled(night, lambda number: number <= count)
    night.run(night.now + 4000.0)
    assert list(night.committed) == ["run/step-1.pt"]
    assert night.brain.outstanding.throttle.most is None


@pytest.mark.parametrize("every", [2, 5, 20])
def test_a_store_that_throttles_now_and_then_is_still_used(every: int) -> None:
    """Where one request in so many is throttled, the checkpoint is safe all the same."""
    night = begun(pieces=400)
    throttled(night, lambda number: number % every == 0)
    night.run(night.now + 3000.0)
    assert list(night.committed) == ["run/step-1.pt"]
