"""Times as providers write them: three spellings, read without the machine's locale or zone."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

#: ``2026-12-01T01:02:00Z``, with a space, a fraction, an offset or no zone at all.
_ISO = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})[T ](\d{1,2}):(\d{2})(?::(\d{2})(?:\.\d+)?)?\s*"
    r"(Z|UTC|GMT|[+-]\d{2}:?\d{2})?",
    re.IGNORECASE,
)
#: ``Tue, 01 Dec 2026 01:02:00 GMT``, and EC2's ``2 Jan 2019 09:00:43 GMT`` with a bare day.
_MAIL = re.compile(
    r"(?:[a-z]{3,9},\s*)?(\d{1,2})[ -]([a-z]{3})[ -](\d{4})\s+(\d{1,2}):(\d{2}):(\d{2})\s*"
    r"(Z|UTC|GMT|[+-]\d{2}:?\d{2})?",
    re.IGNORECASE,
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def wall_of(text: object, *, naive_hours: float = 0.0) -> float | None:
    """Return a written time as seconds since the epoch, or ``None`` if it cannot be read.

    ``naive_hours`` is the offset from UTC of a time without a zone; the machine's own zone never
    counts.
    """
    if not isinstance(text, str):
        return None
    if iso := _ISO.fullmatch(text.strip()):
        year, month, day, *rest = iso.groups()
    elif mail := _MAIL.fullmatch(text.strip()):
        day, month, year, *rest = mail.groups()
    else:
        return None
    hour, minute, second, zone = rest
    try:
        date = datetime(int(year), _month(month), int(day), tzinfo=_zone(zone, naive_hours))
        return date.replace(hour=int(hour), minute=int(minute), second=int(second or 0)).timestamp()
    except (ValueError, OverflowError):
        return None


def _month(text: str) -> int:
    """Return a month's number from its digits or its English name; ValueError if it is neither."""
    return int(text) if text.isdecimal() else _MONTHS.index(text.lower()) + 1


def _zone(text: str | None, naive_hours: float) -> timezone:
    """Return the zone that was written, or the one of times without."""
    if text is None:
        return timezone(timedelta(hours=naive_hours))
    if not text.startswith(("+", "-")):
        return timezone.utc
    offset = timedelta(hours=int(text[1:3]), minutes=int(text[-2:]))
    return timezone(-offset if text.startswith("-") else offset)
