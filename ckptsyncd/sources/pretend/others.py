"""The smaller doors, pretended: Alibaba's, Tencent's (in UTC+8) and Oracle's."""

from __future__ import annotations

import secrets
from datetime import datetime, timedelta, timezone

from ckptsyncd.sources.pretend.exchange import Reply, Request, document, page, text
from ckptsyncd.sources.pretend.scene import Scene

ALIBABA_LIFE = "x-aliyun-ecs-metadata-token-ttl-seconds"
ALIBABA_TOKEN = "x-aliyun-ecs-metadata-token"  # noqa: S105 - a header's name
ALIBABA_KEY = "/latest/meta-data/instance/spot/termination-time"
TENCENT_KEY = "/latest/meta-data/spot/termination-time"
MOST_LIFE_SECONDS = 21600


class PretendedAlibaba:
    """Alibaba's metadata; ``value`` is the release time, empty, or ``None`` for a 404."""

    def __init__(self, scene: Scene) -> None:
        """Start safe, with optional tokens."""
        self.value: str | None = None
        self.requires_token = False
        self._scene = scene
        self._alive: dict[str, float] = {}

    def release(self, seconds: float = 300.0) -> None:
        """Announce the release of the instance so many seconds from now."""
        time = datetime.fromtimestamp(self._scene.now() + seconds, timezone.utc)
        self.value = time.strftime("%Y-%m-%dT%H:%M:%SZ")

    def answer(self, request: Request) -> Reply:
        """Answer as Alibaba would."""
        if request.method == "PUT" and request.path == "/latest/api/token":
            return self._grant(request.headers.get(ALIBABA_LIFE, ""))
        token = request.headers.get(ALIBABA_TOKEN)
        is_dead = self._alive.get(token or "", 0.0) <= self._scene.now()
        if is_dead and (token is not None or self.requires_token):
            return page(401)
        if request.path != ALIBABA_KEY or self.value is None:
            return page(404)
        return text(self.value)

    def _grant(self, life: str) -> Reply:
        if not (life.isdecimal() and 1 <= int(life) <= MOST_LIFE_SECONDS):
            return page(400)
        token = secrets.token_urlsafe(40)
        self._alive[token] = self._scene.now() + int(life)
        return text(token)


class PretendedTencent:
    """Tencent's metadata; the time is UTC+8 and does not say so."""

    def __init__(self, scene: Scene) -> None:
        """Start safe."""
        self.value: str | None = None
        self._scene = scene

    def release(self, seconds: float = 120.0) -> None:
        """Announce the release of the instance so many seconds from now."""
        zone = timezone(timedelta(hours=8))
        time = datetime.fromtimestamp(self._scene.now() + seconds, zone)
        self.value = time.strftime("%Y-%m-%d %H:%M:%S")

    def answer(self, request: Request) -> Reply:
        """Answer as Tencent would."""
        if request.path != TENCENT_KEY or self.value is None:
            return page(404)
        return text(self.value)


class PretendedOracle:
    """Oracle's metadata, which says nothing of interruptions."""

    def answer(self, request: Request) -> Reply:
        """Answer as Oracle would."""
        if request.headers.get("authorization") != "Bearer Oracle":
            return page(403)
        if request.path.rstrip("/") != "/opc/v2/instance":
            return page(404)
        return document({"id": "ocid1.instance.oc1..pretended", "canonicalRegionName": "eu-1"})
