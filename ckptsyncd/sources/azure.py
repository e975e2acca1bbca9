"""Azure's scheduled events: one document for a group of machines, of which we want our own part.

The first request switches the service on for this machine and may take two minutes. Events name the
machines that they are for; until we know our own name, every event counts as ours.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Mapping

from ckptsyncd.core.draining import deadlines
from ckptsyncd.core.draining.notices import Announcement, Poll
from ckptsyncd.core.facts import Instant
from ckptsyncd.sources.bodies import digest, json_of, shown, text_of
from ckptsyncd.sources.dates import wall_of
from ckptsyncd.sources.wire import ABSENT_SECONDS, Answer, Silence, Wire, found_out, unknown
from ckptsyncd.sources.wire import no_metadata as door

EVENTS = "/metadata/scheduledevents?api-version=2020-07-01"
COMPUTE = "/metadata/instance/compute?api-version=2021-02-01"
HEADERS = {"Metadata": "true"}
#: The first answer may take two minutes.
FIRST_SECONDS = 130.0
#: Below the documented 5 requests per second and machine, also after a 429.
AGAIN_SECONDS = 1.0
#: Reboots and the like are told 10 to 15 minutes ahead: those bind at once.
LEAST_LEAD_SECONDS = 900.0
#: Our request is wrong, or the service is not for us: nothing that a quick retry would change.
_HOPELESS = frozenset({400, 401, 403, 405})
#: The service is being renewed, or not there yet, or asked too often.
_AGAIN = frozenset({404, 410, 429})


class Azure:
    """The scheduled events of this machine.

    ``drained`` may be called from any thread; everything else belongs to the one that polls.
    """

    name = "azure"

    def __init__(
        self,
        wire: Wire,
        *,
        interval_seconds: float = 1.0,
        lead_seconds: float = LEAST_LEAD_SECONDS,
        first_seconds: float = FIRST_SECONDS,
        acknowledges: bool = False,
    ) -> None:
        """Poll through ``wire``; every second if we are alone on this machine, else every other.

        With ``acknowledges`` an event may start early once we have drained, if it names no other
        machine than ours.
        """
        self.interval_seconds = interval_seconds
        self._wire = wire
        self._lead_seconds = max(lead_seconds, LEAST_LEAD_SECONDS)
        self._first_seconds: float | None = first_seconds
        self._acknowledges = acknowledges
        self._names: frozenset[str] = frozenset()
        self._ours: dict[str, str] = {}
        self._drained: deque[str] = deque()

    def drained(self, notice_id: str) -> None:
        """Say that nothing of ours stands in an event's way any more; sent with the next poll."""
        self._drained.append(notice_id)

    def poll(self, now: Instant) -> Poll:
        """Ask once; the first time also for our own name."""
        del now  # events carry their own times
        self._acknowledge()
        answer = self._wire.exchange("GET", EVENTS, HEADERS, read_seconds=self._first_seconds)
        if isinstance(answer, Silence):
            return unknown(answer.text)
        return _refused(answer) or self._judged(answer)

    def _judged(self, answer: Answer) -> Poll:
        """Return what the document announces for us; its shape proves that this is Azure."""
        document = json_of(answer.body)
        events = document.get("Events") if isinstance(document, dict) else None
        if not isinstance(events, list):
            return _misshapen(answer)
        self._learn_names()
        ours = [event for event in events if self._is_ours(event)]
        found = tuple(_announcement(event, self._lead_seconds) for event in ours)
        self._remember_own(found, ours)
        return found_out(found, answer)

    def _learn_names(self) -> None:
        """Ask for our own name until it is known; from then on answers are quick."""
        self._first_seconds = None
        if self._names:
            return
        answer = self._wire.exchange("GET", COMPUTE, HEADERS)
        fields = json_of(answer.body) if isinstance(answer, Answer) else None
        if isinstance(fields, dict):
            names = (fields.get("name"), str(fields.get("resourceId", "")).rpartition("/")[2])
            self._names = frozenset(str(name).lower() for name in names if name)

    def _is_ours(self, event: object) -> bool:
        """Tell whether an event may be about this machine."""
        resources = event.get("Resources") if isinstance(event, dict) else None
        if not self._names or not isinstance(resources, list) or not resources:
            return True
        return any(str(resource).lower() in self._names for resource in resources)

    def _remember_own(self, found: Iterable[Announcement], ours: Iterable[object]) -> None:
        """Remember which events may be acknowledged: those that are about us alone."""
        self._ours.clear()
        for announcement, event in zip(found, ours, strict=True):
            if isinstance(event, dict) and self._is_about_us_alone(event):
                self._ours[announcement.notice_id] = str(event.get("EventId"))

    def _is_about_us_alone(self, event: Mapping[str, object]) -> bool:
        """Tell whether we are known by name and the event names nobody else."""
        resources = event.get("Resources")
        alone = isinstance(resources, list) and len(resources) == 1
        return alone and bool(self._names) and event.get("EventStatus") == "Scheduled"

    def _acknowledge(self) -> None:
        """Let drained events start; one that could not be sent is tried at the next poll."""
        for _ in range(len(self._drained)):
            notice_id = self._drained.popleft()
            number = self._ours.get(notice_id)
            if self._acknowledges and number and not self._sent(number):
                self._drained.append(notice_id)

    def _sent(self, number: str) -> bool:
        """Send one acknowledgement and tell whether it was taken (or never will be)."""
        body = json.dumps({"StartRequests": [{"EventId": number}]}).encode()
        answer = self._wire.exchange("POST", EVENTS, HEADERS, body=body)
        return isinstance(answer, Answer) and answer.status in {200, 400, 404}


def _refused(answer: Answer) -> Poll | None:
    """Return why an answer is no document."""
    if answer.status == 200:  # noqa: PLR2004
        return door(answer, "Azure")
    if answer.status in _HOPELESS:
        text = f"Azure answers {answer.status}: {shown(text_of(answer.body))}"
        return unknown(text, ABSENT_SECONDS)
    if answer.status in _AGAIN:
        return unknown(f"Azure answers {answer.status}", answer.wait_seconds or AGAIN_SECONDS)
    return door(answer, "Azure")


def _misshapen(answer: Answer) -> Poll:
    """Return what a document without a list of events means: half an event is still an event."""
    if b'"EventId"' not in answer.body:
        return unknown("Azure's answer has no list of events")
    text = "Azure announces an event in a form that cannot be read"
    name = f"azure:{digest(answer.body)}"
    allowance = deadlines.AZURE_PREEMPT
    return found_out((Announcement(name, "binding", text, None, allowance),), answer)


def _announcement(event: object, lead_seconds: float) -> Announcement:
    """Read one event. Its id stays the same when it starts, so a start only shortens."""
    fields = event if isinstance(event, dict) else {}
    kind, time = shown(fields.get("EventType")), shown(fields.get("NotBefore"))
    name = f"azure:{shown(fields.get('EventId')) or digest(repr(event).encode())}"
    started = fields.get("EventStatus") == "Started"
    when = "now" if started else f"at {time or 'an unknown time'}"
    text = f"Azure announces {kind or 'an event'} of this machine {when}"
    if kind == "Freeze":
        return Announcement(name, "pause", text)
    if kind == "Preempt":
        return Announcement(name, "binding", text, wall_of(time), deadlines.AZURE_PREEMPT)
    if started:
        return Announcement(name, "binding", text, None, deadlines.AZURE_STARTED)
    allowance = deadlines.AZURE_SCHEDULED
    return Announcement(name, "scheduled", text, wall_of(time), allowance, lead_seconds)
