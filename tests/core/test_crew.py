"""How many hands are of use."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count

import pytest

from ckptsyncd.core.sending.crew import FIRST_HANDS, LEAST_HANDS, REST_SECONDS, Crew

MIB = 1024 * 1024
PIECE = 16 * MIB
#: How long a piece takes while so many are under way.
Link = Callable[[int], float]


def far(hands: int) -> float:
    """Take 30 ms to answer and carry 90 MB/s for each hand, 1.4 GB/s for all."""
    return 0.03 + PIECE / min(90e6, 1.4e9 / hands)


def near(hands: int) -> float:
    """Carry 1.4 GB/s at once, however many share it; each hand costs a little."""
    return hands * PIECE / 1.4e9 * (1.0 + 0.02 * hands)


def worked(link: Link, seconds: float, crew: Crew, *, most: int = 32) -> Crew:
    """Let a crew send pieces one after the other for some time."""
    now, under_way, numbers = 0.0, list[tuple[float, int, float]](), count()
    while now < seconds:
        while len(under_way) < crew.hands(most):
            number = next(numbers)  # no two end at the same moment
            duration = link(crew.hands(most)) * (1.0 + number % 17 * 1e-3)
            heapq.heappush(under_way, (now + duration, number, now))
        now, _, given_at = heapq.heappop(under_way)
        crew.did(PIECE, given_at, now, most=most, busy=len(under_way))
    return crew


def test_latency_gets_more_hands_within_two_seconds() -> None:
    """A link on which each hand waits for itself is filled, and quickly."""
    assert worked(far, 2.0, Crew()).hands(32) >= 16


def test_a_fast_link_gets_no_more_than_it_can_use() -> None:
    """Where hands share one processor they are not many."""
    assert worked(near, 5.0, Crew()).hands(32) == LEAST_HANDS


def test_what_was_found_out_is_found_out_again() -> None:
    """After a rest it is tried anew: links change."""
    crew = worked(near, 5.0, Crew())
    crew.rest_until = 0.0
    crew.since = float("-inf")
    assert worked(far, 3.0, crew).hands(32) >= 16
    assert crew.rest_until <= 3.0 + REST_SECONDS


def slow(hands: int) -> float:
    """Carry 16 MB/s in all: a piece takes seconds, whoever shares the link."""
    return 0.03 + hands * PIECE / 16e6


def test_a_slow_link_is_not_filled_with_what_cannot_be_called_back() -> None:
    """Where a piece takes over a second, more under way would only stand before a notice."""
    crew = Crew()
    sizes = {worked(slow, seconds, crew).hands(32) for seconds in (5.0, 20.0, 60.0)}
    assert max(sizes) <= FIRST_HANDS


def test_a_notice_in_the_middle_of_a_try_keeps_what_was_proved() -> None:
    """Twice as many hands that nobody has measured yet are no help against a deadline."""
    crew = worked(far, 0.3, Crew())
    assert (crew.tried_from, crew.size) == (FIRST_HANDS, 2 * FIRST_HANDS)
    crew.steady(0.3, on=True)
    assert crew.hands(32) == FIRST_HANDS


@pytest.mark.parametrize("most", [1, 2, 3, 7])
def test_never_more_than_allowed(most: int) -> None:
    """The setting is a bound, whatever more would carry."""
    assert 1 <= worked(far, 3.0, Crew(), most=most).hands(most) <= most


def test_idle_hands_teach_nothing() -> None:
    """Transfers that do not fill the hands change nothing."""
    crew = Crew()
    for turn in range(100):
        crew.did(PIECE, turn, turn + 0.2, most=32, busy=FIRST_HANDS - 2)
    assert crew == Crew()


def test_nothing_is_tried_while_time_is_short() -> None:
    """A drain finds at least as many hands as before it, and they stay."""
    crew = worked(near, 0.3, Crew())
    crew.steady(0.3, on=True)
    size = crew.hands(32)
    assert size >= FIRST_HANDS
    assert worked(far, 5.0, crew).hands(32) == size
