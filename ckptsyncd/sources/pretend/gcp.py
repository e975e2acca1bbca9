"""Google's metadata server, pretended: entity tags, hanging requests, and the flavour header."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

from ckptsyncd.sources.pretend.exchange import Reply, Request, document, page, text
from ckptsyncd.sources.pretend.scene import Scene

ROOT = "/computeMetadata/v1/"
EVENT = "instance/maintenance-event"
HEADERS = {
    "Metadata-Flavor": "Google",
    "Server": "Metadata Server for VM",
    "X-XSS-Protection": "0",
    "X-Frame-Options": "SAMEORIGIN",
}
#: What a hanging request waits for without ``timeout_sec``.
FOREVER_SECONDS = 10.0**9
WARNING_SECONDS = 60.0

STATIC = {
    "instance/id": "1234567890123456789",
    "instance/name": "trainer",
    "instance/zone": "projects/123456789012/zones/us-central1-a",
    "instance/machine-type": "projects/123456789012/machineTypes/a3-highgpu-8g",
    "instance/preempted": "FALSE",
    EVENT: "NONE",
    "instance/upcoming-maintenance": "NONE",
    "instance/scheduling/on-host-maintenance": "TERMINATE",
    "instance/scheduling/preemptible": "TRUE",
    "instance/scheduling/automatic-restart": "FALSE",
    "instance/virtual-clock/drift-token": "0",
    "project/project-id": "pretended",
}


class PretendedGcp:
    """Google's metadata; keys are below ``computeMetadata/v1/``."""

    def __init__(self, scene: Scene) -> None:
        """Start as a preemptible machine that nobody wants back."""
        self.requests: list[str] = []
        self._scene = scene
        self._items = dict(STATIC)
        self._changes = 0
        self._tags = {key: self._next_tag() for key in self._items}
        self._outages = 0
        self._was_asked = False

    def put(self, key: str, value: str | None) -> None:
        """Let a key have this value, ``None`` to take it away; hanging requests return."""
        with self._scene.changed:
            self._tags[key] = self._next_tag()
            if value is None:
                self._items.pop(key, None)
            else:
                self._items[key] = value
            self._scene.changed.notify_all()

    def preempt(self) -> None:
        """Take the machine back."""
        self.put("instance/preempted", "TRUE")

    def maintain(self, value: str = "TERMINATE_ON_HOST_MAINTENANCE") -> float:
        """Announce host maintenance and return the seconds of warning that it comes with.

        None at all if nobody has asked since the last one.
        """
        with self._scene.changed:
            seconds = WARNING_SECONDS if self._was_asked else 0.0
            self._was_asked = False
        self.put(EVENT, value)
        return seconds

    def break_hangs(self) -> None:
        """Let every hanging request return with 503."""
        with self._scene.changed:
            self._outages += 1
            self._scene.changed.notify_all()

    def answer(self, request: Request) -> Reply:
        """Answer as Google would."""
        with self._scene.changed:
            self.requests.append(f"{request.method} {request.path}")
        flavour = request.headers.get("metadata-flavor")
        if "x-forwarded-for" in request.headers or (flavour is None and request.path != "/"):
            return page(403)
        if flavour not in (None, "Google"):
            return page(404)
        reply = self._read(request)
        return replace(reply, headers={**reply.headers, **HEADERS})

    def _read(self, request: Request) -> Reply:
        key = request.path.removeprefix(ROOT)
        if request.asks("wait_for_change").lower() == "true":
            seconds = request.asks("timeout_sec") or str(FOREVER_SECONDS)
            if not seconds.replace(".", "").isdecimal():
                return page(400)
            if not self._has_changed(key, request.asks("last_etag"), float(seconds)):
                return page(503)
        with self._scene.changed:
            return self._value(key, request)

    def _has_changed(self, key: str, seen: str, seconds: float) -> bool:
        """Wait for another tag than ``seen`` and tell whether no outage came between."""
        outages = self._outages
        seen = seen or self._tags.get(key, "")
        self._scene.hold(
            lambda: self._tags.get(key, "") != seen or self._outages != outages, seconds
        )
        return self._outages == outages

    def _value(self, key: str, request: Request) -> Reply:
        self._was_asked = self._was_asked or key == EVENT
        if key in self._items:
            value = self._items[key]
            kind = "application/json" if request.asks("alt") == "json" else "application/text"
            return text(value, ETag=self._tags[key], **{"Content-Type": kind})
        folder = key if key.endswith("/") or not key else key + "/"
        below = {name: v for name, v in self._items.items() if name.startswith(folder)}
        if not below:
            return page(404)
        if folder != key:
            return Reply(301, headers={"Location": f"{request.path}/"})
        if request.asks("recursive") == "true":
            return document(_tree(below, folder))
        names = {name.removeprefix(folder).partition("/") for name in below}
        return text("\n".join(sorted({head + slash for head, slash, _ in names})))

    def _next_tag(self) -> str:
        self._changes += 1
        return f"{0x411261CA6C9E0000 + self._changes:016x}"


def _tree(items: Mapping[str, str], folder: str) -> dict[str, object]:
    """Return what lies below a folder as nested objects with names in camel case."""
    root: dict[str, object] = {}
    for name, value in items.items():
        *folders, leaf = [_camel(part) for part in name.removeprefix(folder).split("/")]
        place = root
        for part in folders:
            inner = place.setdefault(part, {})
            place = inner if isinstance(inner, dict) else place
        place[leaf] = json.loads(value) if value.startswith(("{", "[")) else value
    return root


def _camel(name: str) -> str:
    """Return ``maintenance-event`` as ``maintenanceEvent``."""
    first, *rest = name.split("-")
    return first + "".join(part.capitalize() for part in rest)
