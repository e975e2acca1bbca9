"""EC2's door, pretended: tokens as strict as the real ones, and times fixed when they are set."""

from __future__ import annotations

import base64
import json
import secrets
from datetime import datetime, timezone
from typing import Literal

from ckptsyncd.sources.pretend.exchange import SILENCE, Reply, Request, page, text
from ckptsyncd.sources.pretend.scene import Scene

DATA = "/latest/meta-data/"
LIFE = "x-aws-ec2-metadata-token-ttl-seconds"
TOKEN = "x-aws-ec2-metadata-token"  # noqa: S105 - a header's name
MOST_LIFE_SECONDS = 21600

#: ``required`` refuses requests without a token, ``absent`` is a service older than tokens, and
#: ``disabled`` forbids everything.
Tokens = Literal["optional", "required", "absent", "disabled"]

STATIC = {
    "instance-id": "i-0123456789abcdef0",
    "instance-life-cycle": "spot",
    "instance-type": "p4d.24xlarge",
    "instance-action": "none",
    "placement/region": "us-east-1",
    "placement/availability-zone": "us-east-1a",
    "events/maintenance/scheduled": "[]",
    "events/maintenance/history": "[]",
}


class PretendedAws:
    """EC2's metadata. ``is_beyond_hop_limit``: token answers never arrive."""

    def __init__(self, scene: Scene) -> None:
        """Start as a spot instance that nobody wants to interrupt."""
        self.tokens: Tokens = "optional"
        self.is_beyond_hop_limit = False
        self.items = dict(STATIC)
        self.requests: list[str] = []
        self._scene = scene
        self._alive: dict[str, float] = {}

    def put(self, path: str, body: str | None) -> None:
        """Let a key below ``meta-data/`` have this value, ``None`` to take it away."""
        with self._scene.changed:
            if body is None:
                self.items.pop(path, None)
            else:
                self.items[path] = body

    def interrupt(self, action: str = "terminate", seconds: float = 120.0) -> str:
        """Announce an interruption so many seconds from now and return its time."""
        time = datetime.fromtimestamp(self._scene.now() + seconds, timezone.utc)
        words = time.strftime("%Y-%m-%dT%H:%M:%SZ")
        self.put("spot/instance-action", json.dumps({"action": action, "time": words}))
        if action == "terminate":
            self.put("spot/termination-time", words)
        return words

    def recommend(self) -> None:
        """Announce an elevated risk."""
        time = datetime.fromtimestamp(self._scene.now(), timezone.utc)
        body = json.dumps({"noticeTime": time.strftime("%Y-%m-%dT%H:%M:%SZ")})
        self.put("events/recommendations/rebalance", body)

    def forget_tokens(self) -> None:
        """Make every token that was given out invalid, as on another machine."""
        with self._scene.changed:
            self._alive.clear()

    def answer(self, request: Request) -> Reply:
        """Answer as EC2 would."""
        with self._scene.changed:
            self.requests.append(f"{request.method} {request.path}")
            if request.method == "PUT":
                return self._grant(request)
            return self._locked(request) or self._item(request)

    def _grant(self, request: Request) -> Reply:
        if self.tokens == "absent":
            return page(404)
        if request.path != "/latest/api/token" or "x-forwarded-for" in request.headers:
            return page(403)
        if self.tokens == "disabled":
            return page(403)
        life = request.headers.get(LIFE, "")
        if not (life.isdecimal() and 1 <= int(life) <= MOST_LIFE_SECONDS):
            return page(400)
        if self.is_beyond_hop_limit:
            return SILENCE
        token = base64.b64encode(secrets.token_bytes(40)).decode()
        self._alive[token] = self._scene.now() + int(life)
        return text(token, **{LIFE: life, "Server": "EC2ws"})

    def _locked(self, request: Request) -> Reply | None:
        if self.tokens == "disabled":
            return page(403)
        token = request.headers.get(TOKEN)
        if token is None:
            return page(401) if self.tokens == "required" else None
        return None if self._life(token) > 0 else page(401)

    def _life(self, token: str | None) -> float:
        return self._alive.get(token or "", 0.0) - self._scene.now()

    def _item(self, request: Request) -> Reply:
        life = self._life(request.headers.get(TOKEN))
        headers = {"Server": "EC2ws", **({LIFE: str(int(life))} if life > 0 else {})}
        if request.path == "/latest/dynamic/instance-identity/document":
            return text(self._identity(), **headers)
        name = request.path.removeprefix(DATA)
        if not request.path.startswith(DATA):
            return page(404)
        if name in self.items:
            return text(self.items[name], **headers)
        below = self._below(name if not name or name.endswith("/") else name + "/")
        return text("\n".join(below), **headers) if below else page(404)

    def _below(self, folder: str) -> list[str]:
        rests = [key.removeprefix(folder) for key in self.items if key.startswith(folder)]
        return sorted({rest.split("/")[0] + ("/" if "/" in rest else "") for rest in rests})

    def _identity(self) -> str:
        fields = {
            "instanceId": self.items["instance-id"],
            "instanceType": self.items["instance-type"],
            "region": self.items["placement/region"],
            "availabilityZone": self.items["placement/availability-zone"],
            "accountId": "123456789012",
            "architecture": "x86_64",
            "version": "2017-09-30",
        }
        return json.dumps(fields, indent=2)
