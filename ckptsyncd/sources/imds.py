"""EC2's metadata door: the token handshake, and a verdict in words for each way it can fail.

One door serves all keys of one machine. A token is renewed at three quarters of its life and after
a 401. Without a token (an old service, a hop limit that swallows the answer) the old way is used
where that is allowed, and the token is asked for again later: the options of a running machine can
change.
"""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass, replace

from ckptsyncd.core.draining.notices import Poll
from ckptsyncd.core.facts import Instant
from ckptsyncd.sources.bodies import text_of
from ckptsyncd.sources.wire import ABSENT_SECONDS, Answer, Silence, Wire, no_metadata, unknown

TOKEN_PATH = "/latest/api/token"  # noqa: S105 - a path
IDENTITY_PATH = "/latest/meta-data/instance-id"
LIFE_HEADER = "X-aws-ec2-metadata-token-ttl-seconds"
TOKEN_HEADER = "X-aws-ec2-metadata-token"  # noqa: S105 - a header's name
#: The longest life that EC2 grants.
LIFE_SECONDS = 21600
RENEW_AT = 0.75
#: How long the old way is used before a token is asked for again (guessed: asking costs a read
#: time-out where the hop limit is too small).
WITHOUT_SECONDS = 300.0

_INSTANCE_ID = re.compile("i-[0-9a-f]{8,}")
_HOP_LIMIT = (
    "EC2's answer to the token request does not arrive: the hop limit is too small for a container;"
    " set it to 2 or more, or use the host's network"
)
_NO_TOKEN = {
    403: "EC2 forbids the token request: metadata is switched off, or a proxy adds X-Forwarded-For",
    404: "this service has no tokens",
    405: "this service has no tokens",
}


@dataclass(frozen=True, slots=True)
class _Access:
    """A token and its times on the boot clock; without one, why there is none."""

    token: str
    why: str
    renew_boot: float
    expires_boot: float


class Imds:
    """The way to EC2's metadata. ``get`` may be called from several threads at once."""

    def __init__(self, wire: Wire, *, v1_fallback: bool = True, disabled: bool = False) -> None:
        """Use ``wire``; ``v1_fallback`` allows requests without a token where none can be had."""
        self._wire = wire
        self._v1_fallback = v1_fallback
        self._disabled = disabled
        self._lock = threading.Lock()
        self._held: _Access | None = None
        self._proven_boot = 0.0

    def get(self, path: str, now: Instant) -> Answer | Poll:
        """Return EC2's own 200 or 404, or an unknown poll with the verdict.

        A 404 counts only where the instance's identity can be read: proxies make their own.
        """
        if self._disabled:
            return unknown("switched off by AWS_EC2_METADATA_DISABLED", ABSENT_SECONDS)
        access = self._access(now)
        if isinstance(access, Poll):
            return access
        answer = self._asked(path, access)
        if access.token and isinstance(answer, Answer) and answer.status == 401:  # noqa: PLR2004
            access = self._renewed(access, now)
            if isinstance(access, Poll):
                return access
            answer = self._asked(path, access)
        return self._judged(answer, access, now)

    def _asked(self, path: str, access: _Access) -> Answer | Silence:
        """Send one request; a header is sent with a token or not at all."""
        headers = {TOKEN_HEADER: access.token} if access.token else {}
        return self._wire.exchange("GET", path, headers)

    def _access(self, now: Instant) -> _Access | Poll:
        """Return how to ask now; a token that cannot be renewed serves until it expires."""
        with self._lock:
            held = self._held
            if held is not None and now.boot < held.renew_boot:
                return held
            got = self._fetched(now)
            alive = held is not None and held.token and now.boot < held.expires_boot
            if held is not None and alive and not (isinstance(got, _Access) and got.token):
                got = replace(held, renew_boot=now.boot + ABSENT_SECONDS)
            self._held = None if isinstance(got, Poll) else got
            return got

    def _renewed(self, refused: _Access, now: Instant) -> _Access | Poll:
        """Drop a token that was refused, whatever its clock says, and get another one."""
        with self._lock:
            if self._held is refused:
                self._held = None
        return self._access(now)

    def _fetched(self, now: Instant) -> _Access | Poll:
        """Ask for a token once."""
        answer = self._wire.exchange("PUT", TOKEN_PATH, {LIFE_HEADER: str(LIFE_SECONDS)})
        if isinstance(answer, Silence):
            if answer.kind == "read time-out":
                return self._without(_HOP_LIMIT, now)
            return unknown(f"{answer.text}: not EC2, or a firewall or network policy is in the way")
        if answer.status in _NO_TOKEN:
            return self._without(_NO_TOKEN[answer.status], now)
        if answer.status == 400:  # noqa: PLR2004
            text = "EC2 calls our token request malformed (400): please report this"
            return unknown(text, ABSENT_SECONDS)
        return no_metadata(answer, "EC2's token request") or self._token_of(answer, now)

    def _without(self, why: str, now: Instant) -> _Access | Poll:
        """Go on without a token where that is allowed."""
        if not self._v1_fallback:
            return unknown(f"{why} (requests without a token are not allowed)", ABSENT_SECONDS)
        until = now.boot + WITHOUT_SECONDS
        return _Access("", why, until, until)

    def _token_of(self, answer: Answer, now: Instant) -> _Access | Poll:
        """Return a granted token; the echo of its life proves that this is EC2."""
        token = text_of(answer.body)
        life = answer.headers.get(LIFE_HEADER.lower(), "")
        if not (re.fullmatch("[!-~]+", token) and re.fullmatch("[0-9]{1,6}", life)):
            return unknown("what answers the token request is not EC2")
        seconds = float(life)
        return _Access(token, "", now.boot + RENEW_AT * seconds, now.boot + seconds)

    def _judged(self, answer: Answer | Silence, access: _Access, now: Instant) -> Answer | Poll:
        """Return an answer that may be believed, or why there is none."""
        if isinstance(answer, Silence):
            return unknown(answer.text)
        if answer.status in (401, 403):
            return self._locked_out(answer, access, now)
        doubt = no_metadata(answer, "EC2")
        if doubt is not None:
            return doubt
        if answer.status == 404 and not self._is_ec2(access, now):  # noqa: PLR2004
            text = "'not found' came from something that does not know this instance's id"
            return unknown(text)
        if not text_of(answer.body):
            return unknown("EC2 answers with nothing")
        return answer

    def _locked_out(self, answer: Answer, access: _Access, now: Instant) -> Poll:
        """Say why we are refused, and ask for a token anew at the next poll."""
        with self._lock:
            if self._held is access:
                self._held = replace(access, renew_boot=now.boot, expires_boot=now.boot)
        if access.token:
            return unknown(f"EC2 refuses our token ({answer.status})", answer.wait_seconds)
        if access.why == _HOP_LIMIT:
            return unknown(f"{access.why} (this instance requires tokens)", ABSENT_SECONDS)
        return unknown(f"{access.why} ({answer.status} without one)", ABSENT_SECONDS)

    def _is_ec2(self, access: _Access, now: Instant) -> bool:
        """Tell whether the service knows an instance id; proved again every few minutes."""
        if now.boot < self._proven_boot:
            return True
        answer = self._asked(IDENTITY_PATH, access)
        if not (isinstance(answer, Answer) and answer.status == 200):  # noqa: PLR2004
            return False
        if not _INSTANCE_ID.fullmatch(text_of(answer.body)):
            return False
        self._proven_boot = now.boot + WITHOUT_SECONDS
        return True
