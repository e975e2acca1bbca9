"""EC2: what its keys mean, over the whole way from the wire to the mind's messages."""

from __future__ import annotations

import json
from datetime import datetime, timezone

import pytest

from ckptsyncd.core.messages import Noticed, Withdrawn
from ckptsyncd.sources.aws import AwsKey, aws_keys
from ckptsyncd.sources.imds import Imds
from tests.sources.bench import Bench, Listener

SPOT_PATH = "*/spot/instance-action"
MAINTENANCE = "events/maintenance/scheduled"
TARGET = "autoscaling/target-lifecycle-state"


def keys(bench: Bench, lead_seconds: float = 600.0, hook_seconds: float = 0.0) -> dict[str, AwsKey]:
    """Return all keys of the pretended instance by their names."""
    found = aws_keys(
        Imds(bench.wire()), lead_seconds=lead_seconds, hook_seconds=hook_seconds, legacy=True
    )
    return {key.name: key for key in found}


def listen(bench: Bench, name: str = "aws-spot") -> Listener:
    """Return a listener to one key."""
    return bench.listen(keys(bench)[name])


def event_time(bench: Bench, seconds: float) -> str:
    """Return a time as EC2 writes it in scheduled events, the day without a zero."""
    time = datetime.fromtimestamp(bench.scene.now() + seconds, timezone.utc)
    return f"{time.day} {time.strftime('%b %Y %H:%M:%S')} GMT"


def events(bench: Bench, *fields: dict[str, str]) -> None:
    """Let EC2 list these scheduled events."""
    bench.cloud.aws.put(MAINTENANCE, json.dumps(list(fields)))


@pytest.mark.parametrize("action", ["terminate", "stop"])
def test_an_interruption_in_two_minutes(bench: Bench, action: str) -> None:
    """Scenarios 1, 2 and 7: nothing, then a binding notice with EC2's own time, told once."""
    listener = listen(bench)
    assert listener.is_quiet()
    assert listener.pause == 2.0
    bench.cloud.aws.interrupt(action)
    notice = listener.notice()
    assert (notice.source, notice.severity) == ("aws-spot", "binding")
    assert bench.left(notice) == 120.0
    assert action in notice.text
    bench.wait(2.0)
    assert listener.is_quiet()


def test_a_hibernation_may_begin_at_once(bench: Bench) -> None:
    """Scenario 3: a freeze can start with its notice, whatever time it names."""
    listener = listen(bench)
    bench.cloud.aws.interrupt("hibernate")
    assert bench.left(listener.notice()) == 0.0


def test_a_notice_that_is_there_already(bench: Bench) -> None:
    """Scenario 4: a daemon that starts within the window drains, with the same id as before."""
    bench.cloud.aws.interrupt()
    first = listen(bench).notice()
    bench.wait(50.0)
    again = listen(bench).notice()
    assert again.notice_id == first.notice_id
    assert bench.left(again) == 70.0


def test_a_recommendation_and_a_notice_later(bench: Bench) -> None:
    """Scenario 5: advice comes first, on a key of its own that the notice does not clear."""
    all_keys = keys(bench)
    advice, spot = bench.listen(all_keys["aws-rebalance"]), bench.listen(all_keys["aws-spot"])
    bench.cloud.aws.recommend()
    notice = advice.notice()
    assert (notice.severity, notice.deadline_boot) == ("advisory", None)
    assert spot.is_quiet()
    bench.wait(1200.0)
    bench.cloud.aws.interrupt()
    assert spot.notice().severity == "binding"
    assert advice.is_quiet()


def test_a_recommendation_alone_expires(bench: Bench) -> None:
    """Scenario 6: advice that was followed by nothing for half a day is withdrawn for good."""
    listener = listen(bench, "aws-rebalance")
    bench.cloud.aws.recommend()
    notice = listener.notice()
    bench.wait(12 * 3600.0 + 1.0)
    assert Withdrawn("aws-rebalance", notice.notice_id) in listener.turn()
    assert listener.is_quiet()
    assert listen(bench, "aws-rebalance").is_quiet()


def test_a_token_that_expires_within_the_window(bench: Bench) -> None:
    """Scenario 8: a 401 fetches one new token, and the poll does not notice."""
    bench.cloud.aws.tokens = "required"
    listener = listen(bench)
    assert listener.is_quiet()
    bench.cloud.aws.interrupt()
    bench.cloud.aws.forget_tokens()
    assert bench.left(listener.notice()) == 120.0
    assert sum(request.startswith("PUT") for request in bench.cloud.aws.requests) == 2


def test_metadata_is_down_for_half_of_the_window(bench: Bench) -> None:
    """Scenario 9: an outage is waited out with pauses of at most 5 s, and the rest is used."""
    listener = listen(bench)
    assert listener.is_quiet()
    bench.cloud.aws.interrupt()
    bench.cloud.refuse()
    pauses: list[float] = []
    while sum(pauses) < 60.0:
        assert "cannot be reached" in listener.blind()
        pauses.append(listener.pause)
        bench.wait(listener.pause)
    assert pauses[0] == 1.0
    assert max(pauses) == 5.0
    bench.cloud.listen()
    assert 54.0 <= bench.left(listener.notice()) <= 60.0


def test_an_event_in_a_fortnight_that_is_cancelled(bench: Bench) -> None:
    """Scenario 12: an event weeks ahead is armed and nothing more; cancelled, it is withdrawn."""
    listener = listen(bench, "aws-maintenance")
    fields = {
        "NotBefore": event_time(bench, 14 * 86400.0),
        "Code": "system-reboot",
        "Description": "scheduled reboot",
        "EventId": "instance-event-1",
        "State": "active",
    }
    events(bench, fields)
    notice = listener.notice()
    assert notice.severity == "scheduled"
    assert bench.left(notice) == 14 * 86400.0
    assert listener.pause == 60.0
    events(bench, {**fields, "Description": "[Canceled] scheduled reboot"})
    assert listener.turn()[0] == Withdrawn("aws-maintenance", notice.notice_id)


@pytest.mark.parametrize("state", ["completed", "canceled"])
def test_an_event_that_is_over_is_none(bench: Bench, state: str) -> None:
    """An event's state counts, not its being listed."""
    events(bench, {"NotBefore": event_time(bench, 60.0), "Code": "instance-stop", "State": state})
    assert listen(bench, "aws-maintenance").is_quiet()


def test_one_event_id_with_two_times(bench: Bench) -> None:
    """Scenario 13: EC2 uses an EventId again; another time is another notice, and may be later."""
    listener = listen(bench, "aws-maintenance")
    fields = {"Code": "system-reboot", "EventId": "instance-event-1", "State": "active"}
    events(bench, {**fields, "NotBefore": event_time(bench, 300.0)})
    first = listener.notice()
    assert first.severity == "binding"
    events(bench, {**fields, "NotBefore": event_time(bench, 90000.0)})
    told = listener.turn()
    assert isinstance(told[0], Noticed)
    assert bench.left(told[0].notice) == 90000.0
    assert told[1] == Withdrawn("aws-maintenance", first.notice_id)


def test_network_maintenance_is_a_pause(bench: Bench) -> None:
    """Nothing is lost by a pause: it never binds."""
    fields = {"Code": "system-maintenance", "EventId": "e", "NotBefore": event_time(bench, 60.0)}
    events(bench, fields)
    notice = listen(bench, "aws-maintenance").notice()
    assert (notice.severity, notice.deadline_boot) == ("pause", None)


def test_an_event_with_a_date_that_cannot_be_read(bench: Bench) -> None:
    """A parse failure never drops a notice."""
    events(bench, {"Code": "instance-stop", "EventId": "e", "NotBefore": "when Mars is high"})
    notice = listen(bench, "aws-maintenance").notice()
    assert (notice.severity, bench.left(notice)) == ("binding", 120.0)


@pytest.mark.parametrize(("hook_seconds", "left"), [(0.0, 0.0), (300.0, 300.0)])
def test_an_auto_scaling_group_wants_us_gone(
    bench: Bench, hook_seconds: float, left: float
) -> None:
    """Scenario 14: the time is what the configured hook gives; polls do not make new notices."""
    listener = bench.listen(keys(bench, hook_seconds=hook_seconds)["aws-autoscaling"])
    assert listener.is_quiet()
    bench.cloud.aws.put(TARGET, "InService")
    assert listener.is_quiet()
    bench.cloud.aws.put(TARGET, "Terminated")
    notice = listener.notice()
    assert bench.left(notice) == left
    bench.wait(5.0)
    assert listener.is_quiet()
    bench.cloud.aws.put(TARGET, "Standby")
    assert listener.turn() == [Withdrawn("aws-autoscaling", notice.notice_id)]


@pytest.mark.parametrize("body", ["", "none", "n/a", "not yet"])
def test_the_old_key_says_something_that_is_no_time(bench: Bench, body: str) -> None:
    """Scenario 15: under termination-time, a body that is no time means "nothing"."""
    bench.cloud.aws.put("spot/termination-time", body)
    assert listen(bench, "aws-termination-time").is_quiet()


def test_the_old_key_has_a_time(bench: Bench) -> None:
    """The old key's bare time is a notice like the new key's."""
    bench.cloud.aws.interrupt("terminate", 100.0)
    assert bench.left(listen(bench, "aws-termination-time").notice()) == 100.0


def test_a_time_long_past_on_a_machine_that_lives(bench: Bench) -> None:
    """Scenario 16: EC2 leaves the item where it failed to act; it does not drain us again."""
    bench.cloud.aws.interrupt("terminate", -700.0)
    assert listen(bench).is_quiet()


@pytest.mark.parametrize("skew", [3600.0, -3600.0, 50.0, -50.0])
def test_our_clock_is_wrong(bench: Bench, skew: float) -> None:
    """EC2's Date header tells how wrong our clock is; all two minutes are used."""
    bench.clock.jump_wall(skew)
    bench.cloud.aws.interrupt()
    assert bench.left(listen(bench).notice()) == 120.0


@pytest.mark.parametrize("skew", [3600.0, -3600.0])
def test_only_the_date_header_is_wrong(bench: Bench, skew: float) -> None:
    """A Date that makes the time impossible is not believed."""
    bench.cloud.aws.interrupt()
    bench.cloud.faults.inject("date", SPOT_PATH, argument=bench.scene.date(skew))
    assert bench.left(listen(bench).notice()) == 120.0


@pytest.mark.parametrize("kind", ["truncated", "bom", "doubled", "extra", "chunked", "gzip"])
def test_a_notice_in_an_odd_form_is_a_notice(bench: Bench, kind: str) -> None:
    """What can still be read is read; what cannot is a notice with the usual two minutes."""
    bench.cloud.aws.interrupt()
    bench.cloud.faults.inject(kind, SPOT_PATH)
    notice = listen(bench).notice()
    assert (notice.severity, bench.left(notice)) == ("binding", 120.0)
    assert ("names no time" in notice.text) == (kind == "truncated")


@pytest.mark.parametrize(
    ("kind", "argument", "reason"),
    [
        ("status", "500", "answers 500"),
        ("status", "503", "answers 503"),
        ("status", "410", "answers 410"),
        ("status", "403", "refuses our token (403)"),
        ("throttled", "", "answers 429"),
        ("portal", "", "web page"),
        ("empty", "", "answers with nothing"),
        ("big", "", "more than"),
        ("reset", "", "broke off"),
        ("redirect", "http://127.0.0.1:9/", "redirects"),
    ],
)
def test_what_is_neither_a_notice_nor_none(
    bench: Bench, kind: str, argument: str, reason: str
) -> None:
    """Everything but EC2's own 200 and 404 is unknown, keeps the notice, and says why."""
    listener = listen(bench)
    bench.cloud.aws.interrupt()
    listener.notice()
    bench.cloud.faults.inject(kind, SPOT_PATH, argument=argument)
    assert reason in listener.blind()
    bench.cloud.faults.clear()
    assert listener.is_quiet()
    bench.cloud.aws.put("spot/instance-action", None)
    assert isinstance(listener.turn()[0], Withdrawn)


def test_a_withdrawn_notice(bench: Bench) -> None:
    """Scenario 44: a notice that is gone is withdrawn, once."""
    listener = listen(bench)
    bench.cloud.aws.interrupt()
    notice = listener.notice()
    bench.wait(30.0)
    bench.cloud.aws.put("spot/instance-action", None)
    assert Withdrawn("aws-spot", notice.notice_id) in listener.turn()
    assert listener.is_quiet()


def test_not_found_from_a_proxy_is_not_none(bench: Bench) -> None:
    """A proxy that passes only what it knows makes its own 404, which says nothing about us."""
    bench.cloud.aws.put("instance-id", "proxy")
    assert "does not know this instance's id" in listen(bench).blind()


def test_a_full_house_stays_within_the_rate(bench: Bench) -> None:
    """All keys together ask EC2 less than twice a second."""
    rate = sum(1.0 / key.interval_seconds for key in keys(bench).values())
    assert rate < 2.0


def test_each_source_keeps_a_deadline_of_its_own(bench: Bench) -> None:
    """Scenario 43: two sources tell two notices; the shorter one wins in the mind."""
    all_keys = keys(bench, hook_seconds=60.0)
    spot, group = bench.listen(all_keys["aws-spot"]), bench.listen(all_keys["aws-autoscaling"])
    bench.cloud.aws.interrupt()
    bench.cloud.aws.put(TARGET, "Terminated")
    notices = [spot.notice(), group.notice()]
    assert len({notice.notice_id for notice in notices}) == 2
    assert [bench.left(notice) for notice in notices] == [120.0, 60.0]
