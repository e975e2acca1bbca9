"""What the mind makes of what the ears tell: promotion, the shortest deadline, coming back."""

from __future__ import annotations

from dataclasses import replace

from ckptsyncd.core.draining.ending import OUTLIVED_SECONDS, Ending
from ckptsyncd.core.facts import Notice
from ckptsyncd.core.orders import Forget, Remember
from ckptsyncd.core.records.memory import handled_notices, handled_row
from ckptsyncd.core.rules.policy import Policy
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


def lived_before(*notices: Notice) -> Ending:
    """Return a mind's end after a restart, before which these notices were outlived."""
    rows: dict[str, str] = {}
    before = ending(*notices)
    before.boot_id = "boot"
    before._outlive(2000.0, Notebook())
    for row in before.rows:
        assert isinstance(row, Remember)
        rows[row.key] = row.value
    handled, others = handled_notices(rows, "boot")
    assert others == []
    return Ending(Policy(), handled, "boot")


def test_an_outlived_notice_is_not_drained_after_a_restart() -> None:
    """The ledger knows its name and its boot; a source that still tells it changes nothing."""
    made = lived_before(SPOT)
    made.notice(SPOT)
    made.heard(SPOT.source, "")
    assert made.binding() is None
    made.notice(replace(SPOT, notice_id="aws-spot:2"))
    assert made.binding() is not None


def test_a_source_that_tells_nothing_after_a_restart_may_warn_again() -> None:
    """What it did not repeat is over: its next notice of the same name is a new one."""
    made = lived_before(SPOT)
    made.heard("gcp-preempted", "")
    made.heard(SPOT.source, "no answer")
    assert SPOT.notice_id in made.handled
    made.heard(SPOT.source, "")
    assert made.rows == [Forget("daemon", "notice aws-spot:1")]
    made.notice(SPOT)
    assert made.binding() == SPOT


def test_notices_of_another_boot_are_forgotten() -> None:
    """After a reboot the same name means another end; damaged rows count as old."""
    row = handled_row("aws-spot:1", "aws-spot", "the boot before")
    rows = {row.key: row.value, "notice x": "damaged", "fenced": "no notice"}
    assert handled_notices(rows, "boot") == ({}, ["aws-spot:1", "x"])


def test_a_notice_that_was_outlived_and_withdrawn_counts_again() -> None:
    """Sources whose notices have one name for ever can warn a second time."""
    made = ending(SPOT)
    made._outlive(1120.0 + OUTLIVED_SECONDS + 1.0, Notebook())
    made.notice(SPOT)
    assert made.binding() is None
    made.withdraw(SPOT.notice_id)
    made.notice(SPOT)
    assert made.binding() == SPOT
