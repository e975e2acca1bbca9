"""When the daemon drains and when it ends: every circumstance has its state and its exit code."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ckptsyncd.core.draining.ending import OUTLIVED_SECONDS, Circumstances, Ending
from ckptsyncd.core.facts import Notice
from ckptsyncd.core.lifecycle import DaemonState
from ckptsyncd.core.rules.policy import Policy
from ckptsyncd.core.turn import Notebook

CALM = Circumstances(
    ready=True,
    at_risk=False,
    in_progress=False,
    writing=False,
    will_settle=False,
    fenced="",
    last_event_at=0.0,
)
RISK = replace(CALM, at_risk=True, in_progress=True)
BINDING = Notice("spot", "n1", "binding", 1100.0, "to be reclaimed")


def ending(state: DaemonState = "running", **other: object) -> Ending:
    """Return the end of a daemon in this state."""
    made = Ending(Policy(), {}, state=state)
    for name, value in other.items():
        setattr(made, name, value)
    return made


def settled(one: Ending, seen: Circumstances = CALM, now: float = 1000.0) -> DaemonState:
    """Return the state after a turn."""
    one.settle(now, seen, Notebook())
    return one.state


def test_a_quiet_that_has_passed_does_not_hide_the_deadline() -> None:
    """Where the last event is long ago, the next turn of a stop is the one at its deadline."""
    one = ending(stop_at=1008.0)
    settled(one, RISK)
    assert one.next_alarm(10.0, 1000.0) == 1008.0 - Policy().stop_margin_seconds
    settled(one, RISK, 1008.0)
    assert one.next_alarm(10.0, 1008.0) == float("inf")


@pytest.mark.parametrize(
    ("state", "seen", "noticed", "then"),
    [
        ("starting", replace(CALM, ready=False), False, "starting"),
        ("starting", CALM, False, "running"),
        ("starting", RISK, True, "draining"),
        ("running", CALM, False, "running"),
        ("running", CALM, True, "draining"),
        ("running", RISK, True, "draining"),
        ("draining", RISK, True, "draining"),
        ("draining", CALM, True, "drained"),
        ("draining", replace(CALM, will_settle=True), True, "draining"),
        ("draining", replace(CALM, awaiting=True), True, "draining"),
        ("draining", replace(CALM, ready=False), True, "draining"),
        ("drained", RISK, True, "draining"),
        ("drained", CALM, True, "drained"),
        ("drained", CALM, False, "running"),
        ("draining", RISK, False, "running"),
        ("running", replace(CALM, fenced="replaced"), False, "fenced"),
        ("draining", replace(RISK, fenced="replaced"), True, "fenced"),
    ],
)
def test_the_state_follows_from_the_circumstances(
    state: DaemonState, seen: Circumstances, *, noticed: bool, then: DaemonState
) -> None:
    """A notice drains, nothing at risk ends the drain, and a replaced daemon is fenced."""
    one = ending(state)
    if noticed:
        one.notice(BINDING)
    assert settled(one, seen) == then


@pytest.mark.parametrize("severity", ["advisory", "scheduled", "pause"])
def test_only_a_binding_notice_drains(severity: str) -> None:
    """Lesser notices change nothing by themselves."""
    one = ending()
    one.notice(replace(BINDING, severity=severity))  # type: ignore[arg-type]
    assert settled(one) == "running"


def test_the_shortest_deadline_wins() -> None:
    """Of several notices and a stop the first end counts, and one notice's end only shrinks."""
    one = ending()
    one.notice(BINDING)
    one.notice(replace(BINDING, notice_id="n2", deadline_boot=None))
    assert one.deadline() == 1100.0
    one.notice(replace(BINDING, deadline_boot=1200.0))
    assert one.deadline() == 1100.0
    one.notice(replace(BINDING, deadline_boot=1050.0))
    one.stop(1500.0)
    assert one.deadline() == 1050.0
    one.stop(1010.0)
    assert one.deadline() == 1010.0


def test_a_withdrawn_notice_ends_the_drain() -> None:
    """What was announced and taken back is over."""
    one = ending("draining")
    one.notice(BINDING)
    one.withdraw("n1")
    assert settled(one, RISK) == "running"


def test_a_machine_that_outlives_its_notice_goes_back_to_work() -> None:
    """That notice is over, and is not drained for again."""
    one = ending("draining")
    one.notice(BINDING)
    end = 1100.0 + OUTLIVED_SECONDS
    assert one.next_alarm(0.0, 1000.0) == end
    assert settled(one, RISK, end - 1) == "draining"
    assert settled(one, RISK, end) == "running"
    one.notice(BINDING)
    assert settled(one, RISK, end + 1) == "running"


STOPS: list[tuple[str, Circumstances, float, int | None]] = [
    ("nothing to wait for", CALM, 1000.0, 0),
    ("something just happened", replace(CALM, last_event_at=998.0), 1000.0, None),
    ("bytes are left", RISK, 1000.0, None),
    ("somebody writes", replace(CALM, writing=True), 1000.0, None),
    ("something may be whole soon", replace(CALM, will_settle=True), 1000.0, None),
    ("the store did not answer yet", replace(CALM, ready=False), 1000.0, None),
    ("the deadline, bytes left", RISK, 1099.5, 6),
    ("the deadline, all safe", replace(CALM, writing=True), 1099.5, 0),
    ("the deadline, replaced", replace(RISK, fenced="replaced"), 1099.5, 7),
]


@pytest.mark.parametrize(("what", "seen", "now", "code"), STOPS, ids=[row[0] for row in STOPS])
def test_a_stop_ends_the_program_when_nothing_is_left(
    what: str, seen: Circumstances, now: float, code: int | None
) -> None:
    """Within the deadline it waits for what is not safe, and its code tells what was left."""
    del what
    one = ending()
    one.stop(1100.0)
    assert one.exit_code(now, seen) == code


@pytest.mark.parametrize(
    ("seen", "code"),
    [
        (CALM, 0),
        (replace(RISK, in_progress=False), 6),
        (RISK, None),
        (replace(CALM, will_settle=True), None),
        (replace(CALM, ready=False), None),
        (replace(CALM, ready=False, hopeless=True), 5),
        (replace(CALM, fenced="replaced"), 7),
    ],
)
def test_one_pass_ends_when_nothing_moves_any_more(seen: Circumstances, code: int | None) -> None:
    """A single pass does not linger, and gives up on a store that never answers."""
    one = ending(one_pass=True)
    one.stop(float("inf"))
    assert one.exit_code(1000.0, replace(seen, last_event_at=999.9)) == code


@pytest.mark.parametrize(
    ("state", "leaves", "now", "code"),
    [
        ("drained", True, 1000.0, 0),
        ("draining", True, 1000.0, None),
        ("draining", True, 1099.5, 6),
        ("drained", False, 1000.0, None),
    ],
)
def test_a_drained_daemon_stays_unless_told_to_leave(
    state: DaemonState, *, leaves: bool, now: float, code: int | None
) -> None:
    """By default it uploads on until it is killed."""
    one = ending(state, exit_when_drained=leaves)
    one.notice(BINDING)
    assert one.exit_code(now, RISK if state == "draining" else CALM) == code


@pytest.mark.parametrize(
    ("state", "stopping", "one_pass", "hasty"),
    [
        ("running", False, False, False),
        ("draining", False, False, True),
        ("drained", False, False, True),
        ("running", True, False, True),
        ("running", True, True, False),
    ],
)
def test_haste_is_known(state: DaemonState, *, stopping: bool, one_pass: bool, hasty: bool) -> None:
    """Draining and stopping cut waits short; a single pass is in no hurry."""
    one = ending(state, one_pass=one_pass)
    if stopping:
        one.stop(2000.0)
    assert one.is_hasty == hasty
