"""The ears: one thread for each notice source, which polls, listens, and tells the mind.

A source that fails, in whatever way, is blind and nothing worse: its thread lives as long as the
program. Nothing is decided here; what an answer means is in ``core.draining.notices``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from ckptsyncd.core.draining.notices import (
    Acknowledges,
    Heard,
    NoticeMessage,
    Poll,
    Source,
    listened,
    pause_seconds,
)
from ckptsyncd.core.facts import Instant
from ckptsyncd.core.messages import SourceHeard
from ckptsyncd.core.words import printable
from ckptsyncd.edge.clock import Clock

Post = Callable[[NoticeMessage], None]


class Ear:
    """One source and what was heard of it; ``turn`` belongs to one thread at a time."""

    def __init__(
        self, source: Source, post: Post, clock: Clock, random: Callable[[], float]
    ) -> None:
        """Listen to ``source`` and give what it says to ``post``; ``random`` is in [0, 1)."""
        self._source = source
        self._post = post
        self._clock = clock
        self._random = random
        self._heard = Heard(source.name)
        self._stopped = threading.Event()
        self._bell = threading.Event()

    def turn(self) -> float:
        """Poll once, tell what is new, and return how many seconds to wait before the next turn.

        A poll may hang for a minute, so what it found is dated when it came back.
        """
        before = self._clock.now()
        poll = self._poll(before)
        after = self._clock.now()
        self._heard, messages = listened(self._heard, poll, after)
        for message in messages:
            if not self._stopped.is_set():
                self._post(message)
        interval, elapsed = self._source.interval_seconds, after.boot - before.boot
        return pause_seconds(self._heard, poll, interval, elapsed, self._random())

    def run(self) -> None:
        """Take turns until ``stop``."""
        while not self._stopped.is_set():
            pause = self.turn()
            self._bell.wait(pause)
            self._bell.clear()

    def wake(self) -> None:
        """End the wait between two polls, or the one after the poll that is under way."""
        self._bell.set()

    def drained(self, notice_id: str) -> None:
        """Tell the source, if it wants to know, that a notice was drained; with a poll at once."""
        if isinstance(self._source, Acknowledges):
            self._source.drained(notice_id)
            self.wake()

    def stop(self) -> None:
        """Tell nothing more, and end after the poll that is under way."""
        self._stopped.set()
        self._bell.set()

    def _poll(self, now: Instant) -> Poll:
        """Poll; whatever a source raises makes it blind."""
        try:
            return self._source.poll(now)
        except Exception as error:  # noqa: BLE001 - the one place where a source may fail as it likes
            text = printable(str(error))
            return Poll("unknown", reason=f"it failed ({type(error).__name__}: {text})")


class Notices:
    """All ears of this machine."""

    def __init__(
        self, sources: Iterable[Source], post: Post, clock: Clock, random: Callable[[], float]
    ) -> None:
        """Prepare one ear for each source.

        ``post``, ``clock`` and ``random`` are called from all their threads.
        """
        self._post = post
        self._ears = {source.name: Ear(source, post, clock, random) for source in sources}

    @property
    def names(self) -> tuple[str, ...]:
        """The sources that are listened to."""
        return tuple(self._ears)

    def start(self) -> None:
        """Begin to listen; each source is polled at once, so a restart in a window still drains.

        The threads never hold up the end of the program.
        """
        for name, ear in self._ears.items():
            self._post(SourceHeard(name, Heard(name).blind))
            threading.Thread(target=ear.run, name=f"notices-{name}", daemon=True).start()

    def wake(self) -> None:
        """Poll every source again now (after the loop overslept, or on request)."""
        for ear in self._ears.values():
            ear.wake()

    def drained(self, source: str, notice_id: str) -> None:
        """Tell a source that its notice was drained; nothing happens where it is none of ours."""
        ear = self._ears.get(source)
        if ear is not None:
            ear.drained(notice_id)

    def stop(self) -> None:
        """Tell nothing more from now on; returns at once, also while requests hang."""
        for ear in self._ears.values():
            ear.stop()
