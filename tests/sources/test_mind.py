"""What the mind makes of what the ears tell: promotion, the shortest deadline, coming back."""

from __future__ import annotations

from dataclasses import replace

from ckptsyncd.core.ending import OUTLIVED_SECONDS, Ending
from ckptsyncd.core.facts import Notice
from ckptsyncd.core.policy import Policy
from ckptsyncd.core.turn import Notebook

FAR = Notice("azure", "azure:e1", "scheduled", 100_000.0)
SPOT = Notice("aws-spot", "aws-spot:1", "binding", 1120.0)


def ending(*notices: Notice) -> Ending:
    """Return a mind's end that has heard these notices."""
    made = Ending(Policy(), {})
    for notice in notices:
        made.notice(notice)
    return made


def test_a_scheduled_notice_becomes_binding() -> None:
    """The promotion counts although the deadline is the same, or a little later."""
    for deadline in (100_000.0, 100_003.0):
        made = ending(FAR, replace(FAR, severity="binding", deadline_boot=deadline))
        assert made.deadline() == deadline


def test_a_scheduled_notice_moves_away() -> None:
    """A time that was put right, or put off, replaces the old one."""
    made = ending(FAR, replace(FAR, deadline_boot=200_000.0))
    assert made.binding() is None
    assert made.notices["azure:e1"].deadline_boot == 200_000.0


def test_two_sources_with_different_deadlines() -> None:
    """Scenario 43: the shorter deadline wins, and without it the longer one stands."""
    other = Notice("aws-autoscaling", "aws-autoscaling:Terminated", "binding", 1060.0)
    made = ending(SPOT, other)
    assert made.deadline() == 1060.0
    made.withdraw(other.notice_id)
    assert made.deadline() == 1120.0


def test_a_notice_that_was_outlived_and_withdrawn_counts_again() -> None:
    """Sources whose notices have one name for ever can warn a second time."""
    made = ending(SPOT)
    made._outlive(1120.0 + OUTLIVED_SECONDS + 1.0, Notebook())
    made.notice(SPOT)
    assert made.binding() is None
    made.withdraw(SPOT.notice_id)
    made.notice(SPOT)
    assert made.binding() == SPOT
