"""Notices that people and scripts write: a number, a time, JSON, or nothing at all.

=====================================  ======================================================
nothing                                a notice without a time
``120``, ``120s``                      so many seconds after it was written
``2026-12-01T01:02:00Z``               until then (also the other spellings of ``dates``)
``deadline=`` and one of the above     the same
a JSON object                          ``deadline`` (as above) or ``seconds``, and if wanted
                                       ``severity`` and ``text``
=====================================  ======================================================

Anything else is a notice without a time: whoever wrote it meant something.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ckptsyncd.core.draining.deadlines import Allowance
from ckptsyncd.core.draining.notices import Announcement, Severity
from ckptsyncd.sources.bodies import json_of, shown, text_of
from ckptsyncd.sources.dates import wall_of

#: Nobody means more by a number of seconds.
MOST_SECONDS = 366 * 86400.0
#: A notice without a time is taken for the shortest that any big cloud gives.
DEFAULT_SECONDS = 30.0

_SEVERITIES: dict[object, Severity] = {
    "binding": "binding",
    "advisory": "advisory",
    "scheduled": "scheduled",
    "pause": "pause",
}


@dataclass(frozen=True, slots=True)
class Reading:
    """How a text becomes a notice: its warning where it names no time, and when it binds."""

    default_seconds: float = DEFAULT_SECONDS
    lead_seconds: float = 900.0


@dataclass(frozen=True, slots=True)
class Written:
    """What a text says; ``seconds`` are counted from when it was written."""

    at_wall: float | None = None
    seconds: float | None = None
    severity: Severity = "binding"
    text: str = ""


def written(body: bytes) -> Written:
    """Return what a text says; never raises."""
    text = text_of(body)
    fields = json_of(body) if text.startswith("{") else None
    if isinstance(fields, dict):
        return _of_fields(fields)
    return _of_text(text.removeprefix("deadline=").strip())


def _of_fields(fields: dict[str, object]) -> Written:
    """Return what a JSON object says."""
    time = fields.get("deadline", fields.get("seconds"))
    found = _of_text(str(time)) if isinstance(time, str | int | float) else Written()
    severity = _SEVERITIES.get(shown(fields.get("severity")), "binding")
    return Written(found.at_wall, found.seconds, severity, shown(fields.get("text")))


def _of_text(text: str) -> Written:
    """Return what a bare time or number of seconds says."""
    if match := re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,9})?) ?s?", text):
        return Written(seconds=min(float(match[1]), MOST_SECONDS))
    return Written(wall_of(text))


def announced(
    name: str, said: Written, since_wall: float, text: str, reading: Reading
) -> Announcement:
    """Return the notice that was written at ``since_wall``; ``text`` where it has none itself."""
    at_wall = said.at_wall if said.seconds is None else since_wall + said.seconds
    text = said.text or text
    if said.severity in ("advisory", "pause"):
        return Announcement(name, said.severity, text)
    allowance = Allowance(reading.default_seconds)
    return Announcement(name, said.severity, text, at_wall, allowance, reading.lead_seconds)
