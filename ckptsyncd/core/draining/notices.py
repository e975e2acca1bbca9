"""What a poll of a notice source says, and what becomes of it: notices, their change and their end.

A source answers in three states. *None* is only the provider's exact word for "nothing". *Notice*
brings announcements. Everything else is *unknown*: it leaves what was known before as it was.

Each source has a ``Heard`` of its own, so that "nothing" on one key never clears another. A time is
put on the boot clock once, when it is first seen. From then on a binding deadline of the same id
can only come nearer; a scheduled one is recomputed at every poll until it is so near that it
binds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, Protocol, runtime_checkable

from ckptsyncd.core.draining.deadlines import Allowance, Remaining, remaining
from ckptsyncd.core.facts import Instant, Notice
from ckptsyncd.core.messages import Noticed, SourceHeard, Withdrawn
from ckptsyncd.core.words import duration_words

Severity = Literal["binding", "advisory", "scheduled", "pause"]
PollState = Literal["none", "unknown", "notice"]
NoticeMessage = Noticed | Withdrawn | SourceHeard

#: A deadline that moved by less is not told again (a Date header has whole seconds).
MOVED_SECONDS = 2.0
#: A healthy source says so at least this often, for "seconds since the last good poll" (guessed).
HEARTBEAT_SECONDS = 30.0
#: The first retry comes after a second, and no pause is longer than this where warnings are short:
#: a longer one would eat a good part of a 30 s notice.
FIRST_RETRY_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 5.0
#: The same for a source that was never heard: most likely it is not there.
LONGEST_ABSENT_SECONDS = 30.0
#: Pollers of one machine must not meet at the same moment for ever.
JITTER = 0.1


@dataclass(frozen=True, slots=True)
class Announcement:
    """What a source announced, before anybody looked at our clocks.

    ``notice_id`` is stable over polls and restarts of the daemon. ``at_wall`` is the named time.
    ``allowance`` stands in where that is missing or cannot be; without an allowance there is no
    deadline at all (advice, a pause). A scheduled one binds from ``lead_seconds`` before its time,
    or at once if it has no usable time. It is no longer worth acting on ``expires_seconds`` after
    it was first seen.
    """

    notice_id: str
    severity: Severity
    text: str
    at_wall: float | None = None
    allowance: Allowance | None = None
    lead_seconds: float = 0.0
    expires_seconds: float = math.inf


@dataclass(frozen=True, slots=True)
class Poll:
    """What one poll found out.

    ``reason`` says why it is unknown. ``wait_seconds`` is how long the source wants to be left
    alone, ``None`` for its interval. ``server_wall`` is the clock of whoever answered.
    """

    state: PollState
    announcements: tuple[Announcement, ...] = ()
    reason: str = ""
    wait_seconds: float | None = None
    server_wall: float | None = None


class Source(Protocol):
    """Something that may know of an interruption.

    ``interval_seconds`` is from the start of one poll to the start of the next.
    """

    name: str
    interval_seconds: float

    def poll(self, now: Instant) -> Poll:
        """Ask once and return what was found out; no loop, no pause, no thread.

        May block as long as its own time-outs (a hanging request: about a minute). ``now`` is the
        moment before the poll; nothing in the answer depends on how long it took.
        """
        ...


@runtime_checkable
class Acknowledges(Protocol):
    """A source that wants to know when nothing stands in its notice's way any more."""

    def drained(self, notice_id: str) -> None:
        """Say so; sent with the next poll. May be called from any thread."""
        ...


@dataclass(frozen=True, slots=True)
class Standing:
    """A notice in force, what it was made from, and when (boot clock) it loses its meaning."""

    announcement: Announcement
    notice: Notice
    expires_boot: float
    expired: bool = False


@dataclass(frozen=True, slots=True)
class Heard:
    """Everything that is remembered of one source.

    ``failures`` are those in a row; ``ever`` tells whether it was heard at all.
    """

    source: str
    standing: tuple[Standing, ...] = ()
    blind: str = "not heard yet"
    failures: int = 0
    ever: bool = False
    told_boot: float = -math.inf

    def find(self, notice_id: str) -> Standing | None:
        """Return what is known under this id."""
        return next((s for s in self.standing if s.notice.notice_id == notice_id), None)


def listened(before: Heard, poll: Poll, now: Instant) -> tuple[Heard, tuple[NoticeMessage, ...]]:
    """Return what is known after a poll that ended ``now``, and what the mind must be told.

    New and changed notices come first, then withdrawn ones, then whether the source was heard: a
    changed notice never leaves a gap, and a source that is first heard (``blind`` empty) without a
    notice before has none.
    """
    if poll.state == "unknown":
        after = replace(before, failures=before.failures + 1)
        return _told(after, poll.reason or "it gave no reason", now, ())
    standing = _standing(before, poll, now)
    after = replace(before, standing=standing, failures=0, ever=True)
    return _told(after, "", now, (*_noticed(before, standing), *_withdrawn(before, standing)))


def _told(
    after: Heard, blind: str, now: Instant, messages: tuple[NoticeMessage, ...]
) -> tuple[Heard, tuple[NoticeMessage, ...]]:
    """Add whether the source was heard, where that is new or was not said for a while."""
    due = not blind and now.boot - after.told_boot >= HEARTBEAT_SECONDS
    if blind == after.blind and not due:
        return after, messages
    after = replace(after, blind=blind, told_boot=now.boot)
    return after, (*messages, SourceHeard(after.source, blind))


def _standing(before: Heard, poll: Poll, now: Instant) -> tuple[Standing, ...]:
    """Return every notice in force after this poll."""
    unique = {a.notice_id: a for a in poll.announcements}
    found = (_stood(before, a, now, poll.server_wall) for a in unique.values())
    return tuple(s for s in found if s is not None)


def _stood(
    before: Heard, announcement: Announcement, now: Instant, server_wall: float | None
) -> Standing | None:
    """Return one announcement as a notice, ``None`` if its time is long past."""
    old = before.find(announcement.notice_id)
    if old is not None and old.announcement == announcement and old.notice.severity != "scheduled":
        return replace(old, expired=now.boot >= old.expires_boot)
    left = None
    if announcement.allowance is not None:
        left = remaining(announcement.at_wall, announcement.allowance, now.wall, server_wall)
        if left is None:
            return old
    expires = now.boot + announcement.expires_seconds if old is None else old.expires_boot
    notice = _made(before.source, announcement, old, left, now)
    if old is not None and not _differs(old.notice, notice):
        notice = old.notice
    return Standing(announcement, notice, expires, expired=now.boot >= expires)


def _made(
    source: str,
    announcement: Announcement,
    old: Standing | None,
    left: Remaining | None,
    now: Instant,
) -> Notice:
    """Return the notice: its severity by how near it is, its deadline on the boot clock."""
    severity, text = announcement.severity, announcement.text
    if left is None:
        return Notice(source, announcement.notice_id, severity, None, text)
    deadline = now.boot + left.seconds
    was_binding = old is not None and old.notice.severity == "binding"
    near = left.basis != "notice" or left.seconds <= announcement.lead_seconds
    if was_binding or (severity == "scheduled" and near):
        severity = "binding"
    if old is not None and was_binding and old.notice.deadline_boot is not None:
        deadline = min(deadline, old.notice.deadline_boot)
    return Notice(source, announcement.notice_id, severity, deadline, text + _basis(left))


def _basis(left: Remaining) -> str:
    """Say where a deadline comes from if it is not the notice's own."""
    if left.basis == "notice":
        return ""
    fault = "names no time" if left.basis == "default" else "names a time that cannot be"
    return f" ({fault}; {duration_words(left.seconds)} from when it was seen)"


def _noticed(before: Heard, standing: tuple[Standing, ...]) -> tuple[Noticed, ...]:
    """Return what is new, or became binding, or moved."""
    known = {s.notice for s in before.standing}
    return tuple(Noticed(s.notice) for s in standing if not s.expired and s.notice not in known)


def _differs(old: Notice, new: Notice) -> bool:
    """Tell whether the mind must hear of this notice again."""
    if old.severity != new.severity:
        return True
    if old.deadline_boot is None or new.deadline_boot is None:
        return old.deadline_boot is not new.deadline_boot
    return abs(old.deadline_boot - new.deadline_boot) > MOVED_SECONDS


def _withdrawn(before: Heard, standing: tuple[Standing, ...]) -> tuple[Withdrawn, ...]:
    """Return what was in force and is no longer."""
    still = {s.notice.notice_id for s in standing if not s.expired}
    gone = (s for s in before.standing if not s.expired)
    ids = (s.notice.notice_id for s in gone)
    return tuple(Withdrawn(before.source, name) for name in ids if name not in still)


def pause_seconds(
    heard: Heard, poll: Poll, interval_seconds: float, elapsed_seconds: float, random: float
) -> float:
    """Return how long to wait before the next poll; ``random`` is uniform in [0, 1).

    ``elapsed_seconds`` is what the poll took: a hanging request that hung is followed at once.
    The first retry is quick; later ones double, up to 5 s (30 s for a source that was never heard)
    or the source's own interval.
    """
    if poll.wait_seconds is not None:
        pause = poll.wait_seconds
    elif heard.failures == 0:
        pause = max(interval_seconds - elapsed_seconds, 0.0)
    elif heard.failures == 1:
        pause = min(interval_seconds, FIRST_RETRY_SECONDS)
    else:
        limit = LONGEST_PAUSE_SECONDS if heard.ever else LONGEST_ABSENT_SECONDS
        longest = max(interval_seconds, limit)
        pause = min(interval_seconds * 2.0 ** min(heard.failures - 1, 10), longest)
    return pause * (1.0 + JITTER * (2.0 * random - 1.0))
