"""Azure's metadata, pretended: a slow first answer, five requests a second, events for a group."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Literal

from ckptsyncd.sources.pretend.exchange import Reply, Request, document, text
from ckptsyncd.sources.pretend.scene import Scene

EVENTS = "/metadata/scheduledevents"
COMPUTE = "/metadata/instance/compute"
VERSIONS = ("2020-07-01", "2019-08-01", "2019-04-01", "2019-01-01", "2017-11-01", "2017-08-01")
COMPUTE_VERSIONS = ("2021-02-01", "2020-12-01", "2019-03-11")
REQUESTS_A_SECOND = 5.0
NAME = "vmss-gpu_12"

Kind = Literal["Freeze", "Reboot", "Redeploy", "Preempt", "Terminate"]


@dataclass(frozen=True, slots=True)
class Event:
    """One scheduled event; ``not_before`` is empty once it has started."""

    number: str
    kind: str
    not_before: str
    status: Literal["Scheduled", "Started"] = "Scheduled"
    resources: tuple[str, ...] = field(default=(NAME,))

    def fields(self) -> dict[str, object]:
        """Return it as Azure writes it."""
        return {
            "EventId": self.number,
            "EventStatus": self.status,
            "EventType": self.kind,
            "ResourceType": "VirtualMachine",
            "Resources": list(self.resources),
            "NotBefore": self.not_before,
            "Description": "",
            "EventSource": "Platform",
            "DurationInSeconds": -1,
        }


class PretendedAzure:
    """The scheduled events and the name of one machine of a scale set."""

    def __init__(self, scene: Scene) -> None:
        """Start without events, with quick answers, and without a limit of requests."""
        self.first_seconds = 0.0
        self.is_limited = False
        self.compute = {"name": NAME, "location": "westeurope", "priority": "Spot", "vmId": "1-2-3"}
        self.approved: list[str] = []
        self.requests: list[str] = []
        self._scene = scene
        self._events: dict[str, Event] = {}
        self._incarnation = 1
        self._is_armed = False
        self._tokens = REQUESTS_A_SECOND
        self._filled_at = scene.now()

    def schedule(self, kind: Kind, seconds: float, number: str, *resources: str) -> None:
        """Announce an event so many seconds from now, for us or for the machines named."""
        event = Event(number, kind, self._scene.date(seconds), resources=resources or (NAME,))
        self.change(event)

    def start(self, number: str, kind: Kind | None = None) -> None:
        """Let an event begin; ``kind`` for one that was never scheduled."""
        event = Event(number, kind, "") if kind else self._events[number]
        self.change(replace(event, status="Started", not_before=""))

    def change(self, event: Event) -> None:
        """Put an event, new or changed, into the document."""
        with self._scene.changed:
            self._events[event.number] = event
            self._incarnation += 1

    def remove(self, number: str) -> None:
        """Take an event out: it was cancelled, or is over."""
        with self._scene.changed:
            del self._events[number]
            self._incarnation += 1

    def answer(self, request: Request) -> Reply:
        """Answer as Azure would."""
        with self._scene.changed:
            self.requests.append(f"{request.method} {request.path}")
        if request.headers.get("metadata") != "true" or "x-forwarded-for" in request.headers:
            return _bad("Required metadata header not specified")
        if len({key for key, _ in request.query}) != len(request.query):
            return _bad("duplicate query parameters")
        if self._is_over_limit():
            return Reply(429, b'{"error":"Too many requests"}')
        if request.path.startswith(COMPUTE):
            return self._compute(request)
        return self._scheduled(request) if request.path == EVENTS else Reply(404)

    def _is_over_limit(self) -> bool:
        with self._scene.changed:
            now = self._scene.now()
            gained = (now - self._filled_at) * REQUESTS_A_SECOND
            self._tokens = min(self._tokens + gained, REQUESTS_A_SECOND) - 1.0
            self._filled_at = now
            short = self._tokens < 0.0
            self._tokens = max(self._tokens, 0.0)
        return self.is_limited and short

    def _compute(self, request: Request) -> Reply:
        if request.asks("api-version") not in COMPUTE_VERSIONS:
            return _bad_version(COMPUTE_VERSIONS)
        leaf = request.path.removeprefix(COMPUTE).strip("/")
        if not leaf:
            return document(self.compute)
        if request.asks("format") != "text":
            return _bad("a leaf has only the format text")
        return text(self.compute[leaf]) if leaf in self.compute else Reply(404)

    def _scheduled(self, request: Request) -> Reply:
        if request.asks("api-version") not in VERSIONS:
            return _bad_version(VERSIONS)
        if request.method == "POST":
            return self._approve(request.body)
        if not self._is_armed and self.first_seconds:
            self._scene.hold(lambda: False, self.first_seconds)
        with self._scene.changed:
            self._is_armed = True
            events = [event.fields() for event in self._events.values()]
            return document({"DocumentIncarnation": self._incarnation, "Events": events})

    def _approve(self, body: bytes) -> Reply:
        try:
            numbers = [str(part["EventId"]) for part in json.loads(body)["StartRequests"]]
        except (ValueError, KeyError, TypeError):
            return _bad("the body is malformed")
        if not all(number in self._events for number in numbers):
            return _bad("there is no such event")
        for number in numbers:
            self.approved.append(number)
            if self._events[number].status == "Scheduled":
                self.start(number)
        return Reply(200)


def _bad(why: str) -> Reply:
    return document({"error": f"Bad request. {why}"}, 400)


def _bad_version(versions: tuple[str, ...]) -> Reply:
    why = "Bad request. api-version is invalid or was not specified in the request."
    return document({"error": why, "newest-versions": list(versions[:3])}, 400)
