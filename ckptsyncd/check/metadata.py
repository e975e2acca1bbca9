"""Interruption notices: which cloud this is, and whether it can be heard."""

from __future__ import annotations

from collections.abc import Sequence

from ckptsyncd.check.finding import Finding, ok, warn
from ckptsyncd.core.draining.notices import Poll

_MANUAL = "SIGTERM, 'ckptsyncd drain' and a notice file still count"


def metadata(provider: str, evidence: str, polls: Sequence[tuple[str, Poll]]) -> list[Finding]:
    """Judge where notices come from, and each source by one poll of it."""
    if provider:
        first = ok("notices", f"this is {provider}, by {evidence}")
    elif polls:
        first = ok("notices", "no cloud was recognised; sources are named by the settings")
    else:
        first = ok("notices", f"no cloud was recognised, so none announces an end; {_MANUAL}")
    return [first, *(source(name, poll) for name, poll in polls)]


def source(name: str, poll: Poll) -> Finding:
    """Judge one source: heard, blind, or with a notice right now."""
    subject = f"notices: {name}"
    if poll.state == "unknown":
        return warn(subject, f"it cannot be heard: {poll.reason}", f"make it reachable; {_MANUAL}")
    if poll.state == "notice":
        text = "; ".join(one.text for one in poll.announcements)
        return warn(subject, f"there is a notice now: {text}", "the daemon drains at once")
    return ok(subject, "heard; there is no notice")
