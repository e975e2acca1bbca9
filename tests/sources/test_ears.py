"""The ears' threads: what they tell, what cannot end them, and how they stop."""

from __future__ import annotations

import queue
import threading

from ckptsyncd.core.draining.notices import Announcement, NoticeMessage, Poll
from ckptsyncd.core.facts import Instant
from ckptsyncd.core.messages import Noticed, SourceHeard
from ckptsyncd.edge.clock import FakeClock
from ckptsyncd.edge.notices import Notices
from ckptsyncd.sources.gcp import gcp_keys
from tests.sources.bench import Bench, Gate

BLIND = Poll("unknown", reason="dark")


class Script:
    """A source that answers as it is told, and waits to be told where it was not."""

    def __init__(self, name: str, interval_seconds: float = 0.0) -> None:
        """Start without an answer."""
        self.name = name
        self.interval_seconds = interval_seconds
        self.answers: queue.Queue[Poll | Exception] = queue.Queue()
        self.polled = threading.Semaphore(0)

    def poll(self, now: Instant) -> Poll:
        """Give the next answer."""
        del now
        self.polled.release()
        answer = self.answers.get(timeout=10.0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def listen(gate: Gate, *sources: Script) -> Notices:
    """Start an ear for each of these."""
    notices = Notices(sources, gate.post, FakeClock(), lambda: 0.5)
    notices.start()
    return notices


def end(notices: Notices, *sources: Script) -> None:
    """Stop, and let every poll that is under way return."""
    notices.stop()
    for source in sources:
        source.answers.put(Poll("none"))


def test_a_source_says_from_the_start_that_it_was_not_heard() -> None:
    """Status can name every source before its first answer, which may take two minutes."""
    gate, source = Gate(), Script("slow")
    notices = listen(gate, source)
    assert gate.until(bool) == [SourceHeard("slow", "not heard yet")]
    source.answers.put(Poll("none"))
    assert gate.until(lambda seen: len(seen) > 1)[1] == SourceHeard("slow", "")
    end(notices, source)


def test_a_source_that_raises_is_blind_and_lives() -> None:
    """Whatever a source raises is a reason; the next poll is taken all the same."""
    gate, source = Gate(), Script("broken")
    notices = listen(gate, source)
    source.answers.put(ValueError("a bug\nwith lines"))
    source.answers.put(Poll("none"))
    seen = gate.until(lambda messages: len(messages) > 2)
    assert seen[1:] == [
        SourceHeard("broken", "it failed (ValueError: a bug\\nwith lines)"),
        SourceHeard("broken", ""),
    ]
    end(notices, source)


def test_one_source_does_not_hold_up_another() -> None:
    """A source that hangs is alone in it."""
    gate, slow, quick = Gate(), Script("slow"), Script("quick")
    notices = listen(gate, slow, quick)
    quick.answers.put(Poll("notice", (Announcement("n", "binding", "it ends"),)))
    seen = gate.until(lambda messages: any(isinstance(m, Noticed) for m in messages))
    assert SourceHeard("slow", "") not in seen
    end(notices, slow, quick)


def test_a_wake_ends_the_pause() -> None:
    """Scenario 38: after a suspension every source is asked again at once."""
    gate, source = Gate(), Script("far", interval_seconds=3600.0)
    notices = listen(gate, source)
    source.answers.put(Poll("none"))
    gate.until(lambda messages: SourceHeard("far", "") in messages)
    assert source.polled.acquire(timeout=10.0)
    notices.wake()
    assert source.polled.acquire(timeout=10.0)
    end(notices, source)


def test_a_stop_is_silent_and_quick() -> None:
    """After a stop nothing is told any more, also by a poll that was under way."""
    gate, source = Gate(), Script("late")
    notices = listen(gate, source)
    assert source.polled.acquire(timeout=10.0)
    thread = next(t for t in threading.enumerate() if t.name == "notices-late")
    notices.stop()
    source.answers.put(Poll("notice", (Announcement("n", "binding", "it ends"),)))
    thread.join(10.0)
    assert not thread.is_alive()
    assert gate.until(bool) == [SourceHeard("late", "not heard yet")]


def test_threads_do_not_hold_up_the_end() -> None:
    """A request that hangs for a minute does not keep the program."""
    gate, source = Gate(), Script("daemon")
    notices = listen(gate, source)
    thread = next(t for t in threading.enumerate() if t.name == "notices-daemon")
    assert thread.daemon
    end(notices, source)
    thread.join(10.0)


def test_a_whole_cloud_with_its_threads(bench: Bench) -> None:
    """All of Google's keys hang at once, and a preemption is told by the one that it is about."""
    bench.cloud.gcp.put("instance/shutdown-details/stop-state", "UNSPECIFIED")
    keys = gcp_keys(
        bench.wire(), preemption_seconds=0.0, terminate_seconds=60.0, lead_seconds=600.0
    )
    hanging = [key for key in keys if key.name != "gcp-upcoming-maintenance"]
    for key in hanging:
        key.interval_seconds = 0.0
    gate = Gate()
    notices = Notices(keys, gate.post, bench.clock, lambda: 0.5)
    assert notices.names == tuple(key.name for key in keys)
    notices.start()
    bench.scene.await_held(3)
    bench.cloud.gcp.preempt()

    def is_told(messages: list[NoticeMessage]) -> bool:
        return any(isinstance(message, Noticed) for message in messages)

    told = [message for message in gate.until(is_told) if isinstance(message, Noticed)]
    assert [message.notice.source for message in told] == ["gcp-preempted"]
    notices.stop()


class Knowing(Script):
    """A source that wants to know when its notice was drained."""

    def __init__(self, name: str) -> None:
        """Start with nothing drained."""
        super().__init__(name, interval_seconds=3600.0)
        self.told: queue.Queue[str] = queue.Queue()

    def drained(self, notice_id: str) -> None:
        """Hear of it."""
        self.told.put(notice_id)


def test_a_drained_notice_is_told_to_the_source_that_wants_to_know() -> None:
    """It is polled again at once; other sources, and unknown names, hear nothing."""
    azure, other = Knowing("azure"), Script("other", interval_seconds=3600.0)
    notices = listen(Gate(), azure, other)
    azure.answers.put(Poll("none"))
    assert azure.polled.acquire(timeout=10.0)
    for source in ("other", "nobody", "azure"):
        notices.drained(source, "azure:e1")
    assert azure.polled.acquire(timeout=10.0)
    assert azure.told.get_nowait() == "azure:e1"
    assert azure.told.empty()
    end(notices, azure, other)
