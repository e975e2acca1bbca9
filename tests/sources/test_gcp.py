"""Google: hanging requests, entity tags, and what each value means."""

from __future__ import annotations

import json

import pytest

from ckptsyncd.core.messages import Noticed, Withdrawn
from ckptsyncd.sources.gcp import GcpKey, gcp_keys
from tests.sources.bench import Bench, Listener

PREEMPTED = "instance/preempted"
EVENT = "instance/maintenance-event"
UPCOMING = "instance/upcoming-maintenance"
STOP = "instance/shutdown-details/stop-state"
WINDOW = "2025-06-16T15:06:40Z"  # 86,400 s after the start of the bench's clock


def keys(
    bench: Bench, *, preemption_seconds: float = 0.0, terminate_seconds: float = 60.0
) -> dict[str, GcpKey]:
    """Return all keys of the pretended machine by their names."""
    found = gcp_keys(
        bench.wire(),
        preemption_seconds=preemption_seconds,
        terminate_seconds=terminate_seconds,
        lead_seconds=600.0,
    )
    return {key.name: key for key in found}


def listen(bench: Bench, name: str, **given: float) -> Listener:
    """Return a listener to one key."""
    return bench.listen(keys(bench, **given)[name])


@pytest.mark.parametrize(("configured", "left"), [(0.0, 25.0), (120.0, 120.0)])
def test_preempted_while_we_hang(bench: Bench, configured: float, left: float) -> None:
    """Scenarios 17 and 18: the hang ends with the change; time counts from when it ended."""
    listener = listen(bench, "gcp-preempted", preemption_seconds=configured)
    assert listener.is_quiet()
    assert listener.pause == 1.0
    turn = listener.begin()
    bench.scene.await_held()
    bench.wait(40.0)
    bench.cloud.gcp.preempt()
    message = turn.result(10.0)[0]
    assert isinstance(message, Noticed)
    assert message.notice.severity == "binding"
    assert bench.left(message.notice) == left


def test_a_hang_that_ends_without_a_change(bench: Bench) -> None:
    """A request that timed out brings the same value: nothing is told, and the next hangs again."""
    listener = listen(bench, "gcp-preempted")
    listener.turn()
    for _ in range(2):
        turn = listener.begin()
        bench.scene.await_held()
        bench.wait(60.0)
        assert not [message for message in turn.result(10.0) if isinstance(message, Noticed)]
        assert listener.pause == 0.0


def test_google_is_not_well_in_the_middle_of_a_hang(bench: Bench) -> None:
    """Scenario 19: a 503 is unknown, is followed by a pause of a second, and loses nothing."""
    listener = listen(bench, "gcp-preempted")
    listener.turn()
    turn = listener.begin()
    bench.scene.await_held()
    bench.cloud.gcp.break_hangs()
    turn.result(10.0)
    assert listener.pause == 1.0
    bench.cloud.gcp.preempt()
    assert listener.notice().severity == "binding"


def test_a_change_between_two_requests(bench: Bench) -> None:
    """Scenario 20: the last tag goes with the request, so it returns at once."""
    listener = listen(bench, "gcp-preempted")
    listener.turn()
    bench.cloud.gcp.preempt()
    assert bench.left(listener.notice()) == 25.0


def test_a_tag_that_does_not_move(bench: Bench) -> None:
    """A value counts although its tag says that nothing changed."""
    bench.cloud.faults.inject("etag", "*/preempted", argument="0000000000000000")
    listener = listen(bench, "gcp-preempted")
    listener.turn()
    bench.cloud.gcp.preempt()
    assert listener.notice().severity == "binding"


def test_a_tag_that_moves_alone(bench: Bench) -> None:
    """A new tag with the old value is no change."""
    listener = listen(bench, "gcp-preempted")
    bench.cloud.gcp.preempt()
    listener.notice()
    bench.cloud.gcp.preempt()
    assert listener.is_quiet()


def test_a_preemption_that_is_taken_back(bench: Bench) -> None:
    """FALSE again withdraws the notice; another key's NONE does not."""
    all_keys = keys(bench)
    preempted = bench.listen(all_keys["gcp-preempted"])
    event = bench.listen(all_keys["gcp-maintenance-event"])
    bench.cloud.gcp.preempt()
    notice = preempted.notice()
    assert event.is_quiet()
    bench.cloud.gcp.put(PREEMPTED, "FALSE")
    assert preempted.turn() == [Withdrawn("gcp-preempted", notice.notice_id)]


@pytest.mark.parametrize("value", ["PERHAPS", "TRUE\n", "true"])
def test_a_value_that_is_not_false(bench: Bench, value: str) -> None:
    """Any other value is a notice: we fail towards draining."""
    bench.cloud.gcp.put(PREEMPTED, value)
    assert listen(bench, "gcp-preempted").notice().severity == "binding"


def test_a_migration_is_a_pause(bench: Bench) -> None:
    """Scenario 21: a machine that is moved loses nothing."""
    listener = listen(bench, "gcp-maintenance-event")
    listener.turn()
    assert bench.cloud.gcp.maintain("MIGRATE_ON_HOST_MAINTENANCE") == 60.0
    notice = listener.notice()
    assert (notice.severity, notice.deadline_boot) == ("pause", None)
    bench.cloud.gcp.put(EVENT, "NONE")
    assert listener.turn() == [Withdrawn("gcp-maintenance-event", notice.notice_id)]


@pytest.mark.parametrize("value", ["TERMINATE_ON_HOST_MAINTENANCE", "SHUTDOWN_ON_HOST_MAINTENANCE"])
@pytest.mark.parametrize("seconds", [60.0, 3600.0])
def test_host_maintenance_ends_the_machine(bench: Bench, value: str, seconds: float) -> None:
    """Scenario 22: a minute's warning, or the hour that GPU machines are configured for."""
    bench.cloud.gcp.put(EVENT, value)
    notice = listen(bench, "gcp-maintenance-event", terminate_seconds=seconds).notice()
    assert (notice.severity, bench.left(notice)) == ("binding", seconds)


def test_the_minute_is_earned_by_asking(bench: Bench) -> None:
    """The key is read at start and again after each event, so each one comes with its warning."""
    listener = listen(bench, "gcp-maintenance-event")
    for value in ("MIGRATE_ON_HOST_MAINTENANCE", "NONE", "TERMINATE_ON_HOST_MAINTENANCE"):
        listener.turn()
        assert bench.cloud.gcp.maintain(value) == 60.0
    assert bench.cloud.gcp.maintain() == 0.0


@pytest.mark.parametrize(
    "value",
    [
        "NONE",
        "{}",
        "{ }",
        '{ "error": "no notifications have been received yet, try again later" }',
        None,
        '{"maintenanceStatus": "COMPLETE", "windowStartTime": "2025-06-15T00:00:00Z"}',
    ],
)
def test_no_upcoming_maintenance(bench: Bench, value: str | None) -> None:
    """Scenario 23: every spelling of "nothing", a missing key included."""
    bench.cloud.gcp.put(UPCOMING, value)
    listener = listen(bench, "gcp-upcoming-maintenance")
    assert listener.is_quiet()
    assert listener.blind() == ""
    assert listener.pause == 60.0


@pytest.mark.parametrize(
    "fields",
    [
        {"windowStartTime": WINDOW, "maintenanceStatus": "PENDING", "canReschedule": True},
        {"window_start_time": WINDOW, "maintenance_status": "PENDING", "can_reschedule": "TRUE"},
        {"Upcoming maintenance": {"window_start_time": WINDOW, "type": "SCHEDULED"}},
        {"startTime": WINDOW},
        {"latest_window_start_time": WINDOW},
    ],
)
def test_upcoming_maintenance(bench: Bench, fields: dict[str, object]) -> None:
    """Scenario 23: either style of names, wrapped or not, armed for the start of the window."""
    bench.cloud.gcp.put(UPCOMING, json.dumps(fields))
    notice = listen(bench, "gcp-upcoming-maintenance").notice()
    assert (notice.severity, bench.left(notice)) == ("scheduled", 86400.0)


@pytest.mark.parametrize(
    "value",
    ['{"windowStartTime": "soon"}', '{"windowStartTime": "2025-06-', '["something"]',
     '{"maintenanceStatus": "ONGOING", "windowStartTime": "2025-06-15T00:00:00Z"}'],
)  # fmt: skip
def test_maintenance_that_binds_at_once(bench: Bench, value: str) -> None:
    """A window that has begun, or whose start cannot be read, is a notice with the usual minute."""
    bench.cloud.gcp.put(UPCOMING, value)
    notice = listen(bench, "gcp-upcoming-maintenance").notice()
    assert (notice.severity, bench.left(notice)) == ("binding", 60.0)


@pytest.mark.parametrize("state", [None, "UNSPECIFIED", "UNKNOWN"])
def test_nobody_stops_us(bench: Bench, state: str | None) -> None:
    """A machine without a graceful stop is asked slowly, or hangs on the idle state."""
    bench.cloud.gcp.put(STOP, state)
    listener = listen(bench, "gcp-stop")
    assert listener.is_quiet()
    assert listener.pause == (60.0 if state is None else 1.0)


@pytest.mark.parametrize(
    ("duration", "since", "left"),
    [("600s", "2025-06-15T15:06:00Z", 560.0), ("600", "1749999960", 560.0), ("long", "", 25.0)],
)
def test_a_graceful_stop(bench: Bench, duration: str, since: str, left: float) -> None:
    """The deadline is when the stop was asked for plus what it may take; else the usual 25 s."""
    bench.cloud.gcp.put("instance/shutdown-details/request-timestamp", since)
    bench.cloud.gcp.put("instance/shutdown-details/max-duration", duration)
    bench.cloud.gcp.put(STOP, "PENDING_STOP")
    listener = listen(bench, "gcp-stop")
    notice = listener.notice()
    assert (notice.severity, bench.left(notice)) == ("binding", left)
    bench.cloud.gcp.put(STOP, "STOPPING")
    told = [message for message in listener.turn() if isinstance(message, Noticed)]
    assert [bench.left(message.notice) for message in told] == ([] if left == 25.0 else [25.0])


@pytest.mark.parametrize(
    ("kind", "argument", "reason", "pause"),
    [
        ("status", "503", "answers 503", 1.0),
        ("status", "500", "answers 500", 1.0),
        ("throttled", "2", "answers 429", 2.0),
        ("headless", "Metadata-Flavor", "not Google's", 1.0),
        ("portal", "", "web page", 1.0),
        ("empty", "", "answers with nothing", 1.0),
        ("reset", "", "broke off", 1.0),
    ],
)
def test_what_is_neither_true_nor_false(
    bench: Bench, kind: str, argument: str, reason: str, pause: float
) -> None:
    """Whatever is not signed by Google, or not a value, is unknown and clears nothing."""
    listener = listen(bench, "gcp-preempted")
    bench.cloud.gcp.preempt()
    listener.notice()
    bench.cloud.faults.inject(kind, "*/preempted", argument=argument)
    bench.cloud.gcp.preempt()
    assert reason in listener.blind()
    assert listener.pause == pause
    bench.cloud.faults.clear()
    bench.cloud.gcp.preempt()
    assert listener.is_quiet()


def test_a_machine_without_the_key(bench: Bench) -> None:
    """Not to have "preempted" is no good news: unknown, and asked again in a minute."""
    bench.cloud.gcp.put(PREEMPTED, None)
    listener = listen(bench, "gcp-preempted")
    assert "does not offer preempted" in listener.blind()
    assert listener.pause == 60.0


def test_one_hanging_request_for_each_key(bench: Bench) -> None:
    """Each key has one connection, and uses it again."""
    all_keys = keys(bench)
    listeners = [bench.listen(all_keys[name]) for name in ("gcp-preempted", "gcp-stop")]
    bench.cloud.gcp.put(STOP, "UNSPECIFIED")
    for listener in listeners:
        listener.turn()
    turns = [listener.begin() for listener in listeners]
    bench.scene.await_held(2)
    bench.wait(60.0)
    for turn in turns:
        turn.result(10.0)
    assert bench.cloud.connections == 2


def test_tls_that_is_demanded_is_said(bench: Bench) -> None:
    """What cannot be spoken is named, and nothing is sent."""
    found = gcp_keys(
        bench.wire(), preemption_seconds=0, terminate_seconds=60, lead_seconds=0, blocked="TLS"
    )
    assert bench.listen(found[0]).blind() == "TLS"
    assert bench.cloud.gcp.requests == []
