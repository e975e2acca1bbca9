"""What becomes of announcements: first sight, change, promotion, expiry, withdrawal, silence."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from ckptsyncd.core.draining.deadlines import AWS_SPOT, Allowance
from ckptsyncd.core.draining.notices import (
    Announcement,
    Heard,
    NoticeMessage,
    Poll,
    listened,
    pause_seconds,
)
from ckptsyncd.core.facts import Instant, Notice
from ckptsyncd.core.messages import Noticed, SourceHeard, Withdrawn

WALL = 1_750_000_000.0
START = Instant(1000.0, WALL)
SPOT = Announcement("aws-spot:1", "binding", "it ends", WALL + 120.0, AWS_SPOT)
FAR = Announcement("later", "scheduled", "it ends", WALL + 86400.0, Allowance(30.0), 600.0)


def after(seconds: float, wall_step: float = 0.0) -> Instant:
    """Return the moment so many seconds after the start; the wall clock may have been stepped."""
    return Instant(START.boot + seconds, START.wall + seconds + wall_step)


class Story:
    """A source whose polls are told one after another."""

    def __init__(self) -> None:
        """Start without having heard anything."""
        self.heard = Heard("source")

    def poll(self, poll: Poll, now: Instant) -> list[NoticeMessage]:
        """Take in one poll and return what is told of notices."""
        self.heard, messages = listened(self.heard, poll, now)
        return [message for message in messages if not isinstance(message, SourceHeard)]

    def sees(self, now: Instant, *announcements: Announcement) -> list[NoticeMessage]:
        """Take in a poll that announces these."""
        return self.poll(Poll("notice" if announcements else "none", announcements), now)

    def one(self, now: Instant, *announcements: Announcement) -> Notice:
        """Take in a poll that must lead to exactly one notice."""
        (message,) = self.sees(now, *announcements)
        assert isinstance(message, Noticed)
        return message.notice


def test_a_notice_is_told_once() -> None:
    """The same announcement at every poll is one notice, on the boot clock."""
    story = Story()
    notice = story.one(START, SPOT)
    assert notice == Notice("source", "aws-spot:1", "binding", 1120.0, "it ends")
    assert story.sees(after(2.0), SPOT) == []
    assert story.sees(after(4.0), SPOT) == []


def test_a_stepped_wall_clock_moves_nothing() -> None:
    """Scenario 41: a time is put on the boot clock once, whatever the wall clock does later."""
    for step in (3600.0, -3600.0):
        story = Story()
        story.sees(START, SPOT)
        assert story.sees(after(2.0, step), SPOT) == []


def test_a_default_counts_from_first_sight() -> None:
    """A notice without a time keeps the deadline of when it was first seen, and says why."""
    story = Story()
    bare = replace(SPOT, at_wall=None)
    notice = story.one(START, bare)
    assert notice.deadline_boot == 1120.0
    assert notice.text == "it ends (names no time; 2 min from when it was seen)"
    assert story.sees(after(60.0), bare) == []


def test_a_deadline_of_one_id_only_shrinks() -> None:
    """An earlier time for the same id is told, a later one is not."""
    story = Story()
    story.sees(START, SPOT)
    assert story.one(after(1.0), replace(SPOT, at_wall=WALL + 60.0)).deadline_boot == 1060.0
    assert story.sees(after(2.0), replace(SPOT, at_wall=WALL + 170.0)) == []


def test_a_new_id_may_be_later_and_leaves_no_gap() -> None:
    """A changed notice with an id of its own is told before the old one is withdrawn."""
    story = Story()
    story.sees(START, SPOT)
    other = replace(SPOT, notice_id="aws-spot:2", at_wall=WALL + 170.0)
    told = story.sees(after(1.0), other)
    assert [type(message) for message in told] == [Noticed, Withdrawn]
    assert told[1] == Withdrawn("source", "aws-spot:1")


def test_unknown_is_not_none() -> None:
    """A source that cannot be heard keeps what it said last, and says once that it is blind."""
    story = Story()
    story.sees(START, SPOT)
    story.heard, messages = listened(story.heard, Poll("unknown", reason="503"), after(2.0))
    assert messages == (SourceHeard("source", "503"),)
    story.heard, messages = listened(story.heard, Poll("unknown", reason="503"), after(4.0))
    assert messages == ()
    assert story.sees(after(6.0), SPOT) == []
    assert story.sees(after(8.0)) == [Withdrawn("source", "aws-spot:1")]


def test_a_source_with_a_notice_is_heard_after_it() -> None:
    """Whoever hears that a source is well has heard of its notices before."""
    _, messages = listened(Heard("source"), Poll("notice", (SPOT,)), START)
    assert [type(message) for message in messages] == [Noticed, SourceHeard]


def test_a_healthy_source_says_so_now_and_then() -> None:
    """The last good poll is never more than half a minute old in the mind's eyes."""
    heard, told = Heard("source"), 0
    for second in range(0, 61, 2):
        heard, messages = listened(heard, Poll("none"), after(float(second)))
        told += len(messages)
    assert told == 3


def test_scheduled_binds_when_its_lead_begins() -> None:
    """A far time is armed, and becomes binding by the mere passing of time."""
    story = Story()
    assert story.one(START, FAR).severity == "scheduled"
    assert story.sees(after(85000.0), FAR) == []
    notice = story.one(after(85801.0), FAR)
    assert notice.severity == "binding"
    assert notice.deadline_boot == pytest.approx(1000.0 + 86400.0, abs=3.0)


def test_scheduled_follows_the_wall_clock_until_it_binds() -> None:
    """A clock that NTP sets right days before the time moves the deadline, in either direction."""
    story = Story()
    story.sees(START, FAR)
    assert story.one(after(60.0, -3600.0), FAR).deadline_boot == 1000.0 + 86400.0 + 3600.0
    story.sees(after(87000.0), FAR)
    assert story.sees(after(87010.0, -3600.0), FAR) == []


def test_scheduled_without_a_readable_time_binds_at_once() -> None:
    """An event whose date cannot be read is not put off for ever."""
    notice = Story().one(START, replace(FAR, at_wall=None))
    assert (notice.severity, notice.deadline_boot) == ("binding", 1030.0)


def test_advice_has_no_deadline_and_expires() -> None:
    """Advice is told once, withdrawn when it is old, and does not come back."""
    advice = Announcement("advice", "advisory", "risk", expires_seconds=3600.0)
    story = Story()
    assert story.one(START, advice).deadline_boot is None
    assert story.sees(after(3599.0), replace(advice, expires_seconds=1.0)) == []
    assert story.sees(after(3600.0), advice) == [Withdrawn("source", "advice")]
    assert story.sees(after(7200.0), advice) == []


def test_advice_that_was_old_before_we_came_is_not_told() -> None:
    """A restart does not revive advice that had expired."""
    advice = Announcement("advice", "advisory", "risk", expires_seconds=-1.0)
    assert Story().sees(START, advice) == []


def test_a_time_long_past_is_no_notice() -> None:
    """Scenario 16: a machine that outlived its notice by ten minutes does not drain again."""
    past = replace(SPOT, at_wall=WALL - 601.0)
    assert Story().poll(Poll("notice", (past,), server_wall=WALL), START) == []


def test_a_notice_that_grows_old_stays_one() -> None:
    """The item that EC2 leaves in place is neither told again nor withdrawn."""
    story = Story()
    story.sees(START, SPOT)
    for seconds in (200.0, 1200.0):
        now = after(seconds)
        assert story.poll(Poll("notice", (SPOT,), server_wall=now.wall), now) == []


@pytest.mark.parametrize(
    ("failures", "is_known", "interval", "pause"),
    [
        (1, True, 2.0, 1.0),
        (2, True, 2.0, 4.0),
        (3, True, 2.0, 5.0),
        (99, True, 2.0, 5.0),
        (99, False, 2.0, 30.0),
        (1, False, 0.5, 0.5),
        (1, True, 60.0, 1.0),
        (99, True, 60.0, 60.0),
    ],
)
def test_pauses_after_failures(
    failures: int, *, is_known: bool, interval: float, pause: float
) -> None:
    """The first retry is quick; no later one comes so late that a short notice is missed."""
    heard = Heard("source", failures=failures, ever=is_known)
    assert pause_seconds(heard, Poll("unknown"), interval, 0.1, 0.5) == pause


def test_pauses_between_good_polls() -> None:
    """An interval is from start to start; one that hung longer is followed at once."""
    heard = Heard("source")
    assert pause_seconds(heard, Poll("none"), 1.0, 0.25, 0.5) == 0.75
    assert pause_seconds(heard, Poll("none"), 1.0, 60.0, 0.5) == 0.0
    assert pause_seconds(heard, Poll("none", wait_seconds=60.0), 1.0, 0.1, 0.5) == 60.0


def test_pauses_jitter() -> None:
    """Pollers spread by a tenth in either direction."""
    heard = Heard("source")
    spread = [pause_seconds(heard, Poll("none"), 1.0, 0.0, random) for random in (0.0, 1.0)]
    assert spread == [pytest.approx(0.9), pytest.approx(1.1)]


def test_expiry_is_not_given_means_never() -> None:
    """An announcement without an expiry stands as long as it is announced."""
    assert SPOT.expires_seconds == math.inf
