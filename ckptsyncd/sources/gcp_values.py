"""What Google's values mean, as announcements.

Values in a known spelling of "nothing" announce nothing; every other value announces something,
also one that nobody has seen yet.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from ckptsyncd.core.draining import deadlines
from ckptsyncd.core.draining.deadlines import Allowance
from ckptsyncd.core.draining.notices import Announcement
from ckptsyncd.sources.bodies import digest, json_of, shown, text_of
from ckptsyncd.sources.dates import wall_of

Reader = Callable[[bytes], tuple[Announcement, ...]]

NOT_STOPPING = frozenset(
    {"UNSPECIFIED", "UNKNOWN", "NONE", "STOP_STATE_UNSPECIFIED", "STOP_STATE_UNKNOWN"}
)
_NOT_UPCOMING = frozenset({"NONE", "null", "[]", '""', '"NONE"'})
_STARTS = ("windowstarttime", "starttime", "latestwindowstarttime")


def preempted_reader(notice_seconds: float) -> Reader:
    """Return the reader of ``preempted``; ``notice_seconds`` is what the machine was made with."""
    early = notice_seconds > 0
    allowance = deadlines.GCP_PREEMPTED_EARLY if early else deadlines.GCP_PREEMPTED

    def preempted(body: bytes) -> tuple[Announcement, ...]:
        value = text_of(body)
        if value.upper() == "FALSE":
            return ()
        text = "Google is taking this machine back"
        if value.upper() != "TRUE":
            text = f"Google says something new about preemption: {shown(value)}"
        name = f"gcp-preempted:{shown(value)}"
        return (Announcement(name, "binding", text, None, allowance),)

    return preempted


def maintenance_reader(terminate_seconds: float) -> Reader:
    """Return the reader of ``maintenance-event``; a migration is only a pause."""
    allowance = Allowance(terminate_seconds, deadlines.GCP_TERMINATE_MOST_SECONDS)

    def maintenance(body: bytes) -> tuple[Announcement, ...]:
        value = text_of(body)
        if value.upper() == "NONE":
            return ()
        name = f"gcp-maintenance-event:{shown(value)}"
        if value.upper().startswith("MIGRATE"):
            text = "Google is about to move this machine to another host"
            return (Announcement(name, "pause", text),)
        text = f"host maintenance stops this machine ({shown(value)})"
        return (Announcement(name, "binding", text, None, allowance),)

    return maintenance


def upcoming_reader(lead_seconds: float) -> Reader:
    """Return the reader of ``upcoming-maintenance``, in all its spellings."""

    def upcoming(body: bytes) -> tuple[Announcement, ...]:
        if text_of(body) in _NOT_UPCOMING:
            return ()
        fields = _flat(json_of(body))
        if fields is None:
            return (_unreadable(body),)
        status = str(fields.get("maintenancestatus", "")).upper()
        if not fields or set(fields) == {"error"} or status == "COMPLETE":
            return ()
        return (_window(fields, status, body, lead_seconds),)

    return upcoming


def _window(
    fields: Mapping[str, object], status: str, body: bytes, lead_seconds: float
) -> Announcement:
    """Return one window; one that has begun binds, whenever it was to begin."""
    start = next((shown(fields[name]) for name in _STARTS if fields.get(name)), "")
    name = f"gcp-upcoming-maintenance:{start or digest(body)}"
    text = f"Google has scheduled maintenance of this host at {start or 'an unknown time'}"
    if status == "ONGOING":
        text = f"maintenance of this host has begun (scheduled for {start or 'an unknown time'})"
        return Announcement(name, "binding", text, None, deadlines.GCP_UPCOMING)
    allowance = deadlines.GCP_UPCOMING
    return Announcement(name, "scheduled", text, wall_of(start), allowance, lead_seconds)


def _unreadable(body: bytes) -> Announcement:
    """Return the notice for a value that is no JSON object."""
    text = "Google announces maintenance in a form that cannot be read"
    name = f"gcp-upcoming-maintenance:{digest(body)}"
    return Announcement(name, "binding", text, None, deadlines.GCP_UPCOMING)


def _flat(value: object) -> Mapping[str, object] | None:
    """Return an object's fields with names in one spelling, without the wrapper it may come in."""
    if not isinstance(value, dict):
        return None
    if len(value) == 1 and isinstance(inner := next(iter(value.values())), dict):
        value = inner
    return {re.sub("[-_ ]", "", str(name)).lower(): field for name, field in value.items()}


def stopping(state: str, since: str, duration: str) -> Announcement:
    """Return the notice of a graceful stop that was asked for at ``since``."""
    start, seconds = _moment(since), _seconds(duration)
    at_wall = None
    if state.upper() == "PENDING_STOP" and start is not None and seconds is not None:
        at_wall = start + seconds
    name = f"gcp-stop:{shown(since)}"
    text = f"this machine is being stopped ({shown(state)})"
    return Announcement(name, "binding", text, at_wall, deadlines.GCP_STOPPING)


def _moment(text: str) -> float | None:
    """Return a time, written out or as seconds since the epoch."""
    return wall_of(text) if wall_of(text) is not None else _seconds(text)


def _seconds(text: str) -> float | None:
    """Return a duration such as ``600``, ``600s`` or ``600.5s``."""
    match = re.fullmatch(r"([0-9]{1,12}(?:\.[0-9]{1,9})?) ?s?", text.strip())
    return float(match[1]) if match else None
