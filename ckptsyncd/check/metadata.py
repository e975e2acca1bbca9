"""Interruption notices: which cloud this is, and whether it can be heard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timezone

from ckptsyncd.check.finding import Finding, ok, warn
from ckptsyncd.core.draining.notices import Announcement, Poll

_MANUAL = "SIGTERM, 'ckptsyncd drain' and a notice file still count"


def metadata(provider: str, evidence: str, polls: Sequence[tuple[str, Poll]]) -> list[Finding]:
    """Judge where notices come from, and each source by one poll of it."""
    if provider:
        first = ok("notices", f"this is {provider}, by {evidence}")
    elif polls:
        first = ok("notices", "no cloud was recognised; sources are named by the settings")
    else:
        first = ok("notices", f"no cloud was recognised, so none announces an end; {_MANUAL}")
    rows: list[Finding] = [first]
    told: dict[str, str] = {}
    for name, poll in polls:
        known = told.setdefault(poll.reason, name)
        if poll.state == "unknown" and known != name:
            poll = replace(poll, reason=f"the same as with {known}")  # noqa: PLW2901 - said shorter
        rows.append(source(name, poll))
    return rows


def source(name: str, poll: Poll) -> Finding:
    """Judge one source: heard, blind, or with a notice right now."""
    subject = f"notices: {name}"
    if poll.state == "unknown":
        return warn(subject, f"it cannot be heard: {poll.reason}", f"make it reachable; {_MANUAL}")
    due = [one for one in poll.announcements if _binds(one, poll.server_wall)]
    if due:
        text = "; ".join(one.text for one in due)
        return warn(subject, f"there is a notice now: {text}", "the daemon drains at once")
    if poll.announcements:
        known = "; ".join(_in_advance(one) for one in poll.announcements)
        return ok(subject, f"heard; nothing binds yet: {known}")
    return ok(subject, "heard; there is no notice")


def _binds(one: Announcement, wall: float | None) -> bool:
    """Return whether the daemon would drain for an announcement at once."""
    if one.severity != "scheduled" or one.at_wall is None or wall is None:
        return one.severity in ("binding", "scheduled")
    return one.at_wall - one.lead_seconds <= wall


def _in_advance(one: Announcement) -> str:
    if one.at_wall is None:
        return one.text
    at = datetime.fromtimestamp(one.at_wall, timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    return f"{one.text}, {at}"
