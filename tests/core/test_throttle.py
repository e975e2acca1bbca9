"""Fewer hands while the store asks for fewer requests, and no more requests than was promised."""

from __future__ import annotations

import pytest

from ckptsyncd.core.rules.policy import Policy
from ckptsyncd.core.sending.throttle import Throttle

POLICY = Policy(hands=8)


def slowed(
    made: Throttle, given_at: float, now: float, *, asked: float | None = None, hasty: bool = False
) -> None:
    """Throttle an order that was given at a time."""
    made.slowed(given_at, now, POLICY, asked=asked, draining=hasty)


def test_nothing_is_held_back_before_the_store_asks() -> None:
    """Without a throttled answer all hands work and nothing rests."""
    made = Throttle(lambda: 0.5)
    made.eased(1.0, 8)
    assert made.hands(8) == 8
    assert not made.is_resting(1.0)


def test_each_round_of_throttled_answers_halves_the_hands() -> None:
    """Eight, four, two, one; the other answers of the same round change nothing."""
    made = Throttle(lambda: 0.5)
    found = []
    for round_at in (1.0, 2.0, 3.0):
        for _ in range(8):
            slowed(made, round_at, round_at + 0.5)
        found.append(made.hands(8))
    assert found == [4, 2, 1]
    assert made.total == 24
    assert not made.is_resting(3.5)


def test_one_hand_more_after_each_round_of_answers() -> None:
    """From one hand two come back after one answer, three after two more, until nothing is held."""
    made = Throttle(lambda: 0.5)
    for time in (1.0, 2.0, 3.0):
        slowed(made, time, time)
    seen = []
    while made.most is not None:
        seen.append(made.hands(8))
        made.eased(4.0, 8)
    assert seen == sorted(seen)
    assert seen[0] == 1
    assert set(seen) == {1, 2, 3, 4, 5, 6, 7}
    assert len(seen) >= 1 + 2 + 3 + 4 + 5 + 6
    assert made.hands(8) == 8


def test_answers_from_before_the_cut_bring_no_hand_back() -> None:
    """What succeeded before the store complained does not speak for what came after."""
    made = Throttle(lambda: 0.5)
    slowed(made, 1.0, 2.0)
    for _ in range(20):
        made.eased(1.5, 8)
    assert made.hands(8) == 4


@pytest.mark.parametrize(("hasty", "longest"), [(False, 60.0), (True, 5.0)])
@pytest.mark.parametrize("chance", [0.0, 0.999])
def test_where_one_hand_is_too_much_all_rest_longer_each_time(
    chance: float,
    longest: float,
    hasty: bool,  # noqa: FBT001
) -> None:
    """The pauses double from the first to the last, and are never shorter than half of that."""
    made, now = Throttle(lambda: chance), 10.0
    for _ in range(3):
        now += 1.0
        slowed(made, now, now, hasty=hasty)
    wide = [min(0.5 * 2.0**number, longest) for number in range(12)]
    for widest in wide:
        slowed(made, now, now, hasty=hasty)
        assert widest / 2 <= made.until - now <= widest
        assert made.is_resting(made.until - 0.001)
        now = made.until
        assert not made.is_resting(now)
    made.eased(now, 8)
    slowed(made, now, now, hasty=hasty)
    assert not made.is_resting(now)  # a hand had come back, and is cut first


def test_what_the_store_asks_for_is_honoured_up_to_the_cap() -> None:
    """A longer pause than our own is kept, and no store can silence us for a day."""
    for asked, pause in ((7.0, 7.0), (0.01, 0.25), (86_400.0, 60.0)):
        made = Throttle(lambda: 0.0)
        for time in (1.0, 2.0, 3.0, 4.0):
            slowed(made, time, time, asked=asked)
        assert made.until == 4.0 + pause
