"""Google's keys: hanging requests that return when a value changes, and a slow look at the rest.

The entity tag of the last answer goes with every request, so a change between two of them is never
missed. Values are compared and not returns: a request that timed out brings the same value again.
Reading ``maintenance-event`` all the time is what makes Google give its minute of warning.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import quote

from ckptsyncd.core.draining.notices import Announcement, Poll
from ckptsyncd.core.facts import Instant
from ckptsyncd.sources import gcp_values
from ckptsyncd.sources.bodies import text_of
from ckptsyncd.sources.wire import Answer, Silence, Wire, found_out, no_metadata, unknown

ROOT = "/computeMetadata/v1/instance/"
FLAVOUR = "Metadata-Flavor"
HEADERS = {FLAVOUR: "Google"}

#: What Google's own agent uses; the client waits ten seconds longer than the server.
HANG_SECONDS = 60
HANG_MARGIN_SECONDS = 10.0
#: No entity tag looks like this, so the first request returns at once.
NO_TAG = "NONE"
#: A key that this type of machine does not have is asked for again this often.
MISSING_SECONDS = 60.0
#: Google answers 503 at any moment, above all during maintenance; a longer pause would eat a
#: twenty-fifth of the notice for each second.
AGAIN_SECONDS = 1.0
_AGAIN = frozenset({408, 429, 500, 502, 503, 504})

Reader = Callable[[bytes], tuple[Announcement, ...]]


@dataclass(frozen=True, slots=True)
class Key:
    """A key below ``instance/``, how its value is read, and how it may be asked for.

    ``missing_is_none``: not to have the key means "nothing" (a feature that is not in use).
    """

    name: str
    path: str
    reader: Reader
    hangs: bool = True
    missing_is_none: bool = False


class GcpKey:
    """One key of Google's metadata server; one hanging request at a time."""

    def __init__(
        self, wire: Wire, key: Key, *, interval_seconds: float = 1.0, blocked: str = ""
    ) -> None:
        """Ask ``wire`` for ``key``; ``blocked`` is why nothing may be asked at all."""
        self.name = key.name
        self.interval_seconds = interval_seconds
        self._wire = wire
        self._key = key
        self._blocked = blocked
        self._tag = NO_TAG

    def poll(self, now: Instant) -> Poll:
        """Ask once; hangs for up to a minute where the key allows it and nothing changes."""
        del now  # no value of Google's has a meaning that depends on when it is asked for
        if self._blocked:
            return unknown(self._blocked, MISSING_SECONDS)
        answer = self._asked()
        if isinstance(answer, Silence):
            return unknown(answer.text)
        if answer.status in _AGAIN:
            reason = f"Google's metadata server answers {answer.status}"
            return unknown(reason, answer.wait_seconds or AGAIN_SECONDS)
        if FLAVOUR.lower() not in answer.headers:
            return unknown("what answers is not Google's metadata server")
        return self._missing(answer) or self._judged(answer)

    def _asked(self) -> Answer | Silence:
        """Send the request, hanging or plain."""
        path = ROOT + self._key.path
        if not self._key.hangs:
            return self._wire.exchange("GET", path, HEADERS)
        query = f"wait_for_change=true&last_etag={quote(self._tag)}&timeout_sec={HANG_SECONDS}"
        wait = HANG_SECONDS + HANG_MARGIN_SECONDS
        return self._wire.exchange("GET", f"{path}?{query}", HEADERS, read_seconds=wait)

    def _missing(self, answer: Answer) -> Poll | None:
        """Return what a missing key means."""
        if answer.status != 404:  # noqa: PLR2004
            return None
        self._tag = NO_TAG
        if self._key.missing_is_none:
            return Poll("none", wait_seconds=MISSING_SECONDS, server_wall=answer.server_wall)
        return unknown(f"this machine does not offer {self._key.path}", MISSING_SECONDS)

    def _judged(self, answer: Answer) -> Poll:
        """Return what a value means; the tag is kept only with a value that was read."""
        doubt = no_metadata(answer, "Google's metadata server")
        if doubt is not None:
            return doubt
        if not text_of(answer.body):
            return unknown("Google's metadata server answers with nothing", AGAIN_SECONDS)
        self._tag = answer.headers.get("etag") or NO_TAG
        return self._read(answer)

    def _read(self, answer: Answer) -> Poll:
        """Return what the value announces."""
        return found_out(self._key.reader(answer.body), answer)


class GcpStop(GcpKey):
    """The graceful stop: a state, and two more keys that tell until when."""

    def _read(self, answer: Answer) -> Poll:
        """Ask for the two times only when a stop is pending."""
        state = text_of(answer.body)
        if state in gcp_values.NOT_STOPPING:
            return found_out((), answer)
        since, duration = self._value("request-timestamp"), self._value("max-duration")
        return found_out((gcp_values.stopping(state, since, duration),), answer)

    def _value(self, leaf: str) -> str:
        """Return a neighbouring key's value, empty if it cannot be had."""
        path = f"{ROOT}shutdown-details/{leaf}"
        answer = self._wire.exchange("GET", path, HEADERS)
        good = isinstance(answer, Answer) and answer.status == 200  # noqa: PLR2004
        return text_of(answer.body) if isinstance(answer, Answer) and good else ""


def gcp_keys(
    wire: Wire,
    *,
    preemption_seconds: float,
    terminate_seconds: float,
    lead_seconds: float,
    blocked: str = "",
) -> tuple[GcpKey, ...]:
    """Return the keys of one machine.

    ``preemption_seconds`` is the configured notice duration (0 or 120: it cannot be read from the
    guest), ``terminate_seconds`` the warning before host maintenance (60; about 3600 with GPUs).
    """
    preempted = gcp_values.preempted_reader(preemption_seconds)
    event = gcp_values.maintenance_reader(terminate_seconds)
    upcoming = gcp_values.upcoming_reader(lead_seconds)
    later = Key(
        "gcp-upcoming-maintenance",
        "upcoming-maintenance?alt=json",
        upcoming,
        hangs=False,
        missing_is_none=True,
    )
    stop = Key("gcp-stop", "shutdown-details/stop-state", lambda _body: (), missing_is_none=True)
    return (
        GcpKey(wire, Key("gcp-preempted", "preempted", preempted), blocked=blocked),
        GcpKey(wire, Key("gcp-maintenance-event", "maintenance-event", event), blocked=blocked),
        GcpKey(wire, later, interval_seconds=60.0, blocked=blocked),
        GcpStop(wire, stop, blocked=blocked),
    )
