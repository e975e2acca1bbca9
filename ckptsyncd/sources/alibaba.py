"""Alibaba Cloud: one key with a time, and a token where the machine asks for one."""

from __future__ import annotations

import re

from ckptsyncd.core.draining import deadlines
from ckptsyncd.core.draining.notices import Announcement, Poll
from ckptsyncd.core.facts import Instant
from ckptsyncd.sources.bodies import digest, shown, text_of
from ckptsyncd.sources.dates import wall_of
from ckptsyncd.sources.wire import Answer, Silence, Wire, found_out, no_metadata, unknown

KEY = "/latest/meta-data/instance/spot/termination-time"
TOKEN_PATH = "/latest/api/token"  # noqa: S105 - a path
LIFE_HEADER = "X-aliyun-ecs-metadata-token-ttl-seconds"
TOKEN_HEADER = "X-aliyun-ecs-metadata-token"  # noqa: S105 - a header's name
LIFE_SECONDS = 21600
RENEW_AT = 0.75
UNAUTHORIZED = 401


class Alibaba:
    """The release time of a preemptible instance: five minutes ahead."""

    name = "alibaba"
    interval_seconds = 5.0

    def __init__(self, wire: Wire) -> None:
        """Poll through ``wire``; tokens are optional there, and fetched when one is asked for."""
        self._wire = wire
        self._token = ""
        self._renew_boot = 0.0

    def poll(self, now: Instant) -> Poll:
        """Ask once; 404 means "nothing", and so does an empty answer (older machines)."""
        if self._token and now.boot >= self._renew_boot:
            self._fetch_token(now)
        answer = self._asked()
        if isinstance(answer, Answer) and answer.status == UNAUTHORIZED:
            self._fetch_token(now)
            answer = self._asked()
        if isinstance(answer, Silence):
            return unknown(answer.text)
        return no_metadata(answer, "Alibaba's metadata service") or _judged(answer)

    def _asked(self) -> Answer | Silence:
        """Send one request; a header is sent with a token or not at all."""
        headers = {TOKEN_HEADER: self._token} if self._token else {}
        return self._wire.exchange("GET", KEY, headers)

    def _fetch_token(self, now: Instant) -> None:
        """Replace the token; without a new one go on without."""
        answer = self._wire.exchange("PUT", TOKEN_PATH, {LIFE_HEADER: str(LIFE_SECONDS)})
        good = isinstance(answer, Answer) and answer.status == 200  # noqa: PLR2004
        token = text_of(answer.body) if isinstance(answer, Answer) and good else ""
        self._token = token if re.fullmatch("[!-~]+", token) else ""
        self._renew_boot = now.boot + RENEW_AT * LIFE_SECONDS


def _judged(answer: Answer) -> Poll:
    """Return what an answer announces; a time that cannot be read is one all the same."""
    time = text_of(answer.body)
    if answer.status == 404 or not time:  # noqa: PLR2004
        return found_out((), answer)
    wall = wall_of(time)
    name = f"alibaba:{shown(time) if wall is not None else digest(answer.body)}"
    text = f"Alibaba will release this instance at {shown(time)}"
    return found_out((Announcement(name, "binding", text, wall, deadlines.ALIBABA_SPOT),), answer)
