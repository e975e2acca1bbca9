"""Waiting after failures: longer each time, spread at random, never over the cap."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckptsyncd.core.rules.policy import Policy
from ckptsyncd.core.sending.retry import Wait, after_failure, wait_seconds

POLICY = Policy()


@pytest.mark.parametrize(
    ("attempts", "draining", "widest"),
    [
        (1, False, 0.5),
        (2, False, 1.0),
        (5, False, 8.0),
        (8, False, 60.0),
        (10_000, False, 60.0),
        (8, True, 5.0),
    ],
)
def test_the_widest_pause_doubles_up_to_the_cap(
    attempts: int, *, draining: bool, widest: float
) -> None:
    """With the largest random number the pause is the whole span."""
    pause = wait_seconds(attempts, POLICY, 1.0, asked=None, draining=draining)
    assert pause == widest


@pytest.mark.parametrize(
    ("asked", "draining", "pause"),
    [(3.0, False, 3.0), (300.0, False, 60.0), (30.0, True, 5.0), (-1.0, False, 0.0)],
)
def test_what_the_store_asks_for_is_honoured(asked: float, *, draining: bool, pause: float) -> None:
    """A Retry-After counts as it is, up to the cap, whatever the random number."""
    assert wait_seconds(1, POLICY, 0.1, asked=asked, draining=draining) == pause


@given(
    attempts=st.integers(1, 100),
    random=st.floats(0, 1, exclude_max=True),
    draining=st.booleans(),
)
def test_a_pause_is_never_negative_or_over_the_cap(
    attempts: int, random: float, *, draining: bool
) -> None:
    """Full jitter stays within its span."""
    cap = POLICY.retry_drain_seconds if draining else POLICY.retry_last_seconds
    assert 0 <= wait_seconds(attempts, POLICY, random, asked=None, draining=draining) <= cap


def test_failures_in_a_row_are_counted() -> None:
    """A rest knows how often it came to this, until when it lasts and why."""
    first = after_failure(None, 100.0, 2.0, "slow down")
    assert first == Wait(1, 102.0, "slow down")
    assert after_failure(first, 200.0, 4.0, "again") == Wait(2, 204.0, "again")
