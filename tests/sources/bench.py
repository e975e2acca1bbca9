"""A pretended cloud, one clock for both sides, and ears whose turns a test takes one by one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack

from ckptsyncd.core.draining.notices import NoticeMessage, Source
from ckptsyncd.core.facts import Notice
from ckptsyncd.core.messages import Noticed, SourceHeard, Withdrawn
from ckptsyncd.edge.clock import FakeClock
from ckptsyncd.edge.notices import Ear
from ckptsyncd.sources.pretend.server import PretendedMetadata
from ckptsyncd.sources.wire import Wire

#: For answers that come: generous, since the machine may be busy.
ANSWER_SECONDS = 10.0
#: For answers that never come: what a test is ready to wait.
SILENCE_SECONDS = 0.2


class Listener:
    """An ear and everything it told."""

    def __init__(self, source: Source, clock: FakeClock, threads: ThreadPoolExecutor) -> None:
        """Listen to one source; no jitter."""
        self.told: list[NoticeMessage] = []
        self.pause = 0.0
        self._ear = Ear(source, self.told.append, clock, lambda: 0.5)
        self._threads = threads

    def turn(self) -> list[NoticeMessage]:
        """Take one turn and return what it told."""
        before = len(self.told)
        self.pause = self._ear.turn()
        return self.told[before:]

    def begin(self) -> Future[list[NoticeMessage]]:
        """Take one turn in a thread of its own: the poll will hang."""
        return self._threads.submit(self.turn)

    def notice(self) -> Notice:
        """Take one turn that must tell exactly one notice."""
        notices = [message.notice for message in self.turn() if isinstance(message, Noticed)]
        assert len(notices) == 1, self.told
        return notices[0]

    def is_quiet(self) -> bool:
        """Take one turn and tell whether it told nothing of notices."""
        return not [m for m in self.turn() if isinstance(m, Noticed | Withdrawn)]

    def blind(self) -> str:
        """Take one turn and return why the source is blind now, empty if it is not."""
        self.turn()
        heard = [message for message in self.told if isinstance(message, SourceHeard)]
        return heard[-1].blind if heard else "not heard yet"


class Bench:
    """What a test of a source needs; ``close`` ends all of it."""

    def __init__(self) -> None:
        """Start a pretended cloud; the clocks agree."""
        self.clock = FakeClock()
        self.cloud = PretendedMetadata()
        self.scene = self.cloud.scene
        self._threads = ThreadPoolExecutor(16)
        self._end = ExitStack()
        self._end.callback(self._threads.shutdown)
        self._end.callback(self.cloud.close)

    def wire(self, url: str = "", read_seconds: float = ANSWER_SECONDS) -> Wire:
        """Return a way to the pretended cloud."""
        wire = Wire(url or self.cloud.url, connect_seconds=5.0, read_seconds=read_seconds)
        self._end.callback(wire.close)
        return wire

    def listen(self, source: Source) -> Listener:
        """Return a listener; it has not polled yet."""
        return Listener(source, self.clock, self._threads)

    def wait(self, seconds: float) -> None:
        """Let time pass for both sides at once."""
        self.clock.advance(seconds)
        self.scene.advance(seconds)

    def left(self, notice: Notice) -> float:
        """Return how many seconds a notice leaves from now."""
        assert notice.deadline_boot is not None
        return notice.deadline_boot - self.clock.now().boot

    def close(self) -> None:
        """End everything."""
        self._end.close()


class Gate:
    """A condition that a test waits for, at most ten seconds."""

    def __init__(self) -> None:
        """Start with nothing."""
        self._changed = threading.Condition()
        self._seen: list[NoticeMessage] = []

    def post(self, message: NoticeMessage) -> None:
        """Take one message."""
        with self._changed:
            self._seen.append(message)
            self._changed.notify_all()

    def until(self, ready: Callable[[list[NoticeMessage]], bool]) -> list[NoticeMessage]:
        """Return everything that was posted once it is ``ready``."""
        with self._changed:
            assert self._changed.wait_for(lambda: ready(self._seen), 10.0), self._seen
            return list(self._seen)
