"""One HTTP exchange with a metadata service: bounded in time and size, and nothing in between.

No proxies (urllib3 alone never reads the environment), no redirects, no retries, at most 64 KiB of
body. A connection is kept for the next poll, and closed where an answer was not read to its end.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from urllib3 import BaseHTTPResponse, HTTPConnectionPool, HTTPSConnectionPool, Timeout
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    NewConnectionError,
    ReadTimeoutError,
)

from ckptsyncd.core.draining.notices import Announcement, Poll, PollState
from ckptsyncd.core.words import printable
from ckptsyncd.errors import UsageError
from ckptsyncd.sources.bodies import is_page
from ckptsyncd.sources.dates import wall_of

CONNECT_SECONDS = 1.0
READ_SECONDS = 2.0
MOST_BYTES = 64 * 1024
#: A service that is switched off on purpose is asked again this often, for ever.
ABSENT_SECONDS = 30.0
#: However long a service asks us to stay away: a 30 s notice would be missed.
MOST_WAIT_SECONDS = 5.0

_BLOCK = 4096
_OK = 200
_REDIRECT = range(300, 400)

SilenceKind = Literal["refused", "connect time-out", "read time-out", "broken"]


@dataclass(frozen=True, slots=True)
class Silence:
    """No usable answer came; ``text`` says why, in words that stay the same from poll to poll."""

    kind: SilenceKind
    text: str


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer that was read to its end; the names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def server_wall(self) -> float | None:
        """The clock of whoever answered, from its Date header."""
        return wall_of(self.headers.get("date"))

    @property
    def wait_seconds(self) -> float | None:
        """How long it asked us to stay away, within what a notice allows."""
        text = self.headers.get("retry-after", "")
        seconds = float(text) if text.isascii() and text.isdecimal() else None
        return None if seconds is None else min(max(seconds, 1.0), MOST_WAIT_SECONDS)


class Wire:
    """The way to one metadata service. ``exchange`` may be called from several threads at once."""

    def __init__(
        self,
        base_url: str,
        *,
        connect_seconds: float = CONNECT_SECONDS,
        read_seconds: float = READ_SECONDS,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare connections to ``base_url`` (scheme, host, port, a path in front of all paths).

        ``monotonic`` bounds the whole of an answer's body, which a read time-out does not. Raises
        UsageError where ``base_url`` is no URL.
        """
        self.address, self._prefix, self._pool = _opened(base_url)
        self._connect_seconds = connect_seconds
        self._read_seconds = read_seconds
        self._monotonic = monotonic

    def exchange(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        *,
        body: bytes | None = None,
        read_seconds: float | None = None,
    ) -> Answer | Silence:
        """Send one request and return what came; never raises for what the network did.

        ``read_seconds`` overrides the read time-out for a request that is known to hang.
        """
        wait = self._read_seconds if read_seconds is None else read_seconds
        end = self._monotonic() + self._connect_seconds + wait
        try:
            response = self._pool.urlopen(
                method,
                self._prefix + path,
                body=body,
                headers={"User-Agent": "ckptsyncd", **headers},
                retries=False,
                redirect=False,
                timeout=Timeout(connect=self._connect_seconds, read=wait),
                preload_content=False,
            )
            return self._read(response, end)
        except HTTPError as error:
            return self._silence(error)

    def close(self) -> None:
        """Close the connections that are kept."""
        self._pool.close()

    def _read(self, response: BaseHTTPResponse, end: float) -> Answer | Silence:
        """Read the whole body, or close the connection where it is too long or too slow."""
        body = bytearray()
        while block := response.read1(_BLOCK):
            body += block
            if len(body) > MOST_BYTES:
                response.close()
                return Silence("broken", f"{self.address} sent more than {MOST_BYTES} bytes")
            if self._monotonic() > end:
                response.close()
                return Silence("read time-out", f"{self.address} sends its answer too slowly")
        response.release_conn()
        headers = {name.lower(): value for name, value in response.headers.items()}
        return Answer(response.status, headers, bytes(body))

    def _silence(self, error: HTTPError) -> Silence:
        """Classify what urllib3 raised."""
        if isinstance(error, ConnectTimeoutError) and not isinstance(error, NewConnectionError):
            return Silence("connect time-out", f"{self.address} does not take connections")
        if isinstance(error, NewConnectionError):
            return Silence("refused", f"{self.address} cannot be reached")
        if isinstance(error, ReadTimeoutError):
            return Silence("read time-out", f"{self.address} took the request and does not answer")
        return Silence("broken", f"the answer of {self.address} broke off ({type(error).__name__})")


def _opened(base_url: str) -> tuple[str, str, HTTPConnectionPool]:
    """Return the address for people, the path in front of all paths, and the connections."""
    try:
        parts = urlsplit(base_url if "://" in base_url else f"http://{base_url}")
        kind = {"http": HTTPConnectionPool, "https": HTTPSConnectionPool}[parts.scheme]
        pool = kind(parts.hostname or "", parts.port, maxsize=4)
    except (ValueError, KeyError, HTTPError):
        msg = f"{printable(base_url)} is no URL of a metadata service"
        raise UsageError(msg, hint="it looks like http://169.254.169.254") from None
    return f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/"), pool


def unknown(reason: str, wait_seconds: float | None = None) -> Poll:
    """Return a poll that found out nothing."""
    return Poll("unknown", reason=printable(reason), wait_seconds=wait_seconds)


def no_metadata(answer: Answer, service: str) -> Poll | None:
    """Return why an answer of this service's door is no metadata, ``None`` if it may be.

    404 is for the caller to judge: on some clouds it is the word for "nothing".
    """
    if answer.status in _REDIRECT:
        return unknown(f"{service} redirects: a proxy answers in its place")
    if answer.status == _OK and is_page(answer.body):
        return unknown(f"{service} answers with a web page: a proxy answers in its place")
    if answer.status not in (_OK, 404):
        return unknown(f"{service} answers {answer.status}", answer.wait_seconds)
    return None


def found_out(announcements: tuple[Announcement, ...], answer: Answer) -> Poll:
    """Return what an answer said, with the clock of whoever answered."""
    state: PollState = "notice" if announcements else "none"
    return Poll(state, announcements, server_wall=answer.server_wall)
