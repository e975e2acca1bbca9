"""Azure: one document for many machines, and which part of it is ours."""

from __future__ import annotations

import json
from concurrent.futures import TimeoutError  # noqa: A004 - not yet the built-in one in 3.10

import pytest

from ckptsyncd.core.messages import Noticed, Withdrawn
from ckptsyncd.sources.azure import Azure
from ckptsyncd.sources.pretend.azure import NAME
from tests.sources.bench import SILENCE_SECONDS, Bench, Listener

EVENTS = "/metadata/scheduledevents"


def azure(bench: Bench, *, acknowledges: bool = False) -> Azure:
    """Return the source of the pretended machine."""
    return Azure(bench.wire(), acknowledges=acknowledges)


def listen(bench: Bench) -> Listener:
    """Return a listener to the pretended machine's events."""
    return bench.listen(azure(bench))


def test_a_preemption_in_half_a_minute(bench: Bench) -> None:
    """Scenario 24: the deadline is Azure's NotBefore; a start with an empty one moves nothing."""
    listener = listen(bench)
    assert listener.is_quiet()
    assert listener.pause == 1.0
    bench.cloud.azure.schedule("Preempt", 30.0, "e1")
    notice = listener.notice()
    assert (notice.notice_id, notice.severity) == ("azure:e1", "binding")
    assert bench.left(notice) == 30.0
    bench.wait(5.0)
    bench.cloud.azure.start("e1")
    assert listener.is_quiet()


@pytest.mark.parametrize("resources", [("vmss-gpu_13",), ("vmss-gpu_1", "vmss-gpu_123")])
def test_an_event_of_another_machine(bench: Bench, resources: tuple[str, ...]) -> None:
    """Scenario 25: the group's other machines are none of our business."""
    bench.cloud.azure.schedule("Preempt", 30.0, "e1", *resources)
    assert listen(bench).is_quiet()


@pytest.mark.parametrize("resource", [NAME, NAME.upper()])
def test_our_name_in_either_case(bench: Bench, resource: str) -> None:
    """Names are compared without their case."""
    bench.cloud.azure.schedule("Preempt", 30.0, "e1", "vmss-gpu_13", resource)
    assert listen(bench).notice().severity == "binding"


def test_the_tail_of_our_resource_id_is_a_name_too(bench: Bench) -> None:
    """Machines whose name differs from their resource's are found by either."""
    bench.cloud.azure.compute["resourceId"] = "/subscriptions/s/virtualMachines/Node-7"
    bench.cloud.azure.schedule("Preempt", 30.0, "e1", "node-7")
    assert listen(bench).notice().severity == "binding"


def test_an_event_before_we_know_our_name(bench: Bench) -> None:
    """Until our name is known every event counts as ours; then it is withdrawn if it was not."""
    bench.cloud.faults.inject("status", "/metadata/instance/*", argument="500", count=1)
    bench.cloud.azure.schedule("Preempt", 30.0, "e1", "vmss-gpu_13")
    listener = listen(bench)
    notice = listener.notice()
    assert listener.turn() == [Withdrawn("azure", notice.notice_id)]


@pytest.mark.parametrize(("kind", "left"), [("Reboot", 0.0), ("Redeploy", 0.0), ("Preempt", 30.0)])
def test_an_event_that_starts_at_once(bench: Bench, kind: str, left: float) -> None:
    """Scenario 26: a hardware failure has no Scheduled phase; it binds, and now."""
    assert kind in ("Reboot", "Redeploy", "Preempt")
    bench.cloud.azure.start("e1", kind)  # type: ignore[arg-type]
    listener = listen(bench)
    notice = listener.notice()
    assert (notice.severity, bench.left(notice)) == ("binding", left)
    bench.wait(60.0)
    assert listener.is_quiet()


def test_a_freeze_is_a_pause(bench: Bench) -> None:
    """Scenario 27: a freeze loses nothing, scheduled or started, however long it is listed."""
    listener = listen(bench)
    bench.cloud.azure.schedule("Freeze", 900.0, "e1")
    notice = listener.notice()
    assert (notice.severity, notice.deadline_boot) == ("pause", None)
    bench.cloud.azure.start("e1")
    for _ in range(3):
        bench.wait(5.0)
        assert listener.is_quiet()


def test_a_reboot_that_is_cancelled(bench: Bench) -> None:
    """Scenario 28: an event that vanishes before it started is withdrawn."""
    listener = listen(bench)
    bench.cloud.azure.schedule("Reboot", 900.0, "e1")
    notice = listener.notice()
    assert (notice.severity, bench.left(notice)) == ("binding", 900.0)
    bench.cloud.azure.remove("e1")
    assert listener.turn() == [Withdrawn("azure", "azure:e1")]


def test_a_reboot_that_starts_early(bench: Bench) -> None:
    """Somebody else's approval may start an event: its deadline is then now."""
    listener = listen(bench)
    bench.cloud.azure.schedule("Redeploy", 600.0, "e1")
    listener.notice()
    bench.wait(10.0)
    bench.cloud.azure.start("e1")
    assert bench.left(listener.notice()) == 0.0


def test_a_failure_that_is_predicted_for_days_ahead(bench: Bench) -> None:
    """A date days ahead is armed, and binds a quarter of an hour before."""
    listener = listen(bench)
    bench.cloud.azure.schedule("Redeploy", 5 * 86400.0, "e1")
    assert listener.notice().severity == "scheduled"
    bench.wait(5 * 86400.0 - 901.0)
    assert listener.is_quiet()
    bench.wait(1.0)
    assert listener.notice().severity == "binding"


def test_eight_pollers_on_one_machine(bench: Bench) -> None:
    """Scenario 29: a 429 is unknown, never "nothing", and is followed by at least a second."""
    bench.cloud.azure.is_limited = True
    listeners = [listen(bench) for _ in range(8)]
    reasons = [listener.blind() for listener in listeners]
    assert "Azure answers 429" in reasons
    assert all(listener.pause >= 1.0 for listener in listeners)
    for _ in range(20):
        bench.wait(1.0)
        reasons = [listener.blind() for listener in listeners[:4]]
    assert reasons == [""] * 4


def test_the_first_answer_takes_two_minutes(bench: Bench) -> None:
    """Scenario 30: the first request waits as long as Azure may need to switch itself on."""
    bench.cloud.azure.first_seconds = 120.0
    bench.cloud.azure.schedule("Preempt", 150.0, "e1")
    listener = bench.listen(Azure(bench.wire(read_seconds=SILENCE_SECONDS)))
    turn = listener.begin()
    bench.scene.await_held()
    with pytest.raises(TimeoutError):
        turn.result(2 * SILENCE_SECONDS)
    bench.wait(120.0)
    message = turn.result(10.0)[0]
    assert isinstance(message, Noticed)
    assert bench.left(message.notice) == 30.0
    assert listener.is_quiet()


def test_two_events_in_one_document(bench: Bench) -> None:
    """Scenario 31: every event of a document counts in the same poll."""
    bench.cloud.azure.schedule("Freeze", 900.0, "e1")
    bench.cloud.azure.schedule("Preempt", 30.0, "e2")
    told = [message for message in listen(bench).turn() if isinstance(message, Noticed)]
    assert [message.notice.severity for message in told] == ["pause", "binding"]


@pytest.mark.parametrize("acknowledges", [True, False])
def test_an_acknowledgement(bench: Bench, *, acknowledges: bool) -> None:
    """Scenario 32: sent once, only if wanted, and only after the drain."""
    source = azure(bench, acknowledges=acknowledges)
    listener = bench.listen(source)
    bench.cloud.azure.schedule("Preempt", 30.0, "e1")
    notice = listener.notice()
    listener.turn()
    assert bench.cloud.azure.approved == []
    source.drained(notice.notice_id)
    listener.turn()
    listener.turn()
    assert bench.cloud.azure.approved == (["e1"] if acknowledges else [])


def test_no_acknowledgement_for_others(bench: Bench) -> None:
    """An event that names another machine too is never approved by us."""
    source = azure(bench, acknowledges=True)
    listener = bench.listen(source)
    bench.cloud.azure.schedule("Reboot", 900.0, "e1", NAME, "vmss-gpu_13")
    source.drained(listener.notice().notice_id)
    listener.turn()
    assert bench.cloud.azure.approved == []


def test_an_acknowledgement_that_did_not_arrive(bench: Bench) -> None:
    """One that was not taken is sent again with the next poll."""
    source = azure(bench, acknowledges=True)
    listener = bench.listen(source)
    bench.cloud.azure.schedule("Preempt", 30.0, "e1")
    source.drained(listener.notice().notice_id)
    bench.cloud.faults.inject("status", EVENTS, argument="500", count=2)
    listener.turn()
    assert bench.cloud.azure.approved == []
    listener.turn()
    assert bench.cloud.azure.approved == ["e1"]


@pytest.mark.parametrize("not_before", ["2025-06-15T15:07:10Z", "Sun, 15 Jun 2025 15:07:10 GMT"])
def test_dates_in_either_spelling(bench: Bench, not_before: str) -> None:
    """The documented spelling and the one of Microsoft's own mock server are read."""
    event = {"EventId": "e1", "EventType": "Preempt", "NotBefore": not_before, "Resources": [NAME]}
    body = json.dumps({"DocumentIncarnation": 2, "Events": [event]})
    bench.cloud.faults.inject("body", EVENTS, argument=body)
    assert bench.left(listen(bench).notice()) == 30.0


@pytest.mark.parametrize(
    "body",
    [
        '{"DocumentIncarnation": 2, "Events": [{"EventId": "e1", "EventType": "Preem',
        '{"DocumentIncarnation": 2, "Events": [{"EventId": "e1"}]}',
        '{"DocumentIncarnation": 2, "Events": ["e1"]}',
        '{"DocumentIncarnation": 2, "Events": [{"EventType": "Preempt", "NotBefore": "soon"}]}',
        '{"Events": [{"EventId": 5, "EventType": "Meteor", "NotBefore": "", "Resources": []}]}',
    ],
)
def test_an_event_that_cannot_be_read_is_an_event(bench: Bench, body: str) -> None:
    """Half an event, a new kind of event, or one without a date has half a minute."""
    bench.cloud.faults.inject("body", EVENTS, argument=body)
    listener = listen(bench)
    notice = listener.notice()
    assert (notice.severity, bench.left(notice)) == ("binding", 30.0)
    assert listener.is_quiet()


@pytest.mark.parametrize(
    ("kind", "argument", "reason", "pause"),
    [
        ("status", "410", "answers 410", 1.0),
        ("status", "404", "answers 404", 1.0),
        ("status", "500", "answers 500", 1.0),
        ("status", "400", "answers 400", 30.0),
        ("throttled", "3", "answers 429", 3.0),
        ("portal", "", "web page", 1.0),
        ("empty", "", "no list of events", 1.0),
        ("body", '{"DocumentIncarnation": 1, "Ev', "no list of events", 1.0),
        ("body", "[]", "no list of events", 1.0),
        ("reset", "", "broke off", 1.0),
    ],
)
def test_what_is_no_document(
    bench: Bench, kind: str, argument: str, reason: str, pause: float
) -> None:
    """Only a list of events that lacks us means "nothing"; all else clears nothing."""
    listener = listen(bench)
    bench.cloud.azure.schedule("Preempt", 30.0, "e1")
    listener.notice()
    bench.cloud.faults.inject(kind, EVENTS, argument=argument)
    assert reason in listener.blind()
    assert listener.pause == pause
    bench.cloud.faults.clear()
    assert listener.is_quiet()
