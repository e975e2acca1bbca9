"""The loop: orders about a drain reach whoever carries them out, and a long sleep is noticed."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from queue import SimpleQueue

from ckptsyncd.core.brain import Brain
from ckptsyncd.core.facts import Instant, Notice
from ckptsyncd.core.messages import (
    KeysListed,
    Message,
    Noticed,
    Probed,
    Scanned,
    StopRequested,
    Touched,
    UploadAbandoned,
    Woken,
)
from ckptsyncd.core.orders import (
    Errand,
    HandOrder,
    KeepReport,
    ListKeys,
    Probe,
    Scan,
    ScannerOrder,
    TellTrainer,
)
from ckptsyncd.core.rules.policy import Policy
from ckptsyncd.core.turn import Turn
from ckptsyncd.core.wishes import Who
from ckptsyncd.edge.clock import BootClock
from ckptsyncd.edge.loop import OVERSLEPT_SECONDS, Loop
from ckptsyncd.edge.scribe import Scribe
from ckptsyncd.stores.memory import MemoryStore

PATIENCE = 20.0


@dataclass
class Everybody:
    """Hands, scanner and ledger of an empty directory and an empty store."""

    inbox: SimpleQueue[Message] = field(default_factory=SimpleQueue)

    def submit(self, order: HandOrder | ScannerOrder) -> None:
        """Answer at once."""
        if isinstance(order, Probe):
            self.inbox.put(Probed(order.errand, MemoryStore().limits, "memory"))
        elif isinstance(order, ListKeys):
            self.inbox.put(KeysListed(order.errand, ()))
        elif isinstance(order, Scan):
            self.inbox.put(Scanned(order.errand, order.path, (), order.recursive))

    def set_pace(self, bytes_per_second: int | None) -> None:
        """Keep none."""

    def apply(self, orders: object) -> None:
        """Keep nothing."""


@dataclass
class Skipping:
    """A clock that jumps once, as after a suspend, when ``skip`` was set."""

    clock: BootClock = field(default_factory=BootClock)
    skip: threading.Event = field(default_factory=threading.Event)
    ahead: float = 0.0

    def now(self) -> Instant:
        """Return the time."""
        if self.skip.is_set():
            self.skip.clear()
            self.ahead += OVERSLEPT_SECONDS + 60.0
        now = self.clock.now()
        return Instant(now.boot + self.ahead, now.wall + self.ahead)


def test_a_drain_and_a_long_sleep() -> None:
    """The trainer is told and the report kept; after a sleep others are woken, once."""
    everybody, clock = Everybody(), Skipping()
    policy = Policy(tells_trainer=True, trainer_seconds=0.0)
    brain = Brain(policy, Who("host", "nonce", "1"), lambda: 0.5)
    told: SimpleQueue[object] = SimpleQueue()
    slept: SimpleQueue[bool] = SimpleQueue()
    loop = Loop(
        brain, clock, everybody.inbox, everybody, everybody, Scribe(everybody),
        doers={TellTrainer: told.put, KeepReport: told.put},
        overslept=lambda: slept.put(True),
    )  # fmt: skip
    thread = threading.Thread(target=loop.run, daemon=True)
    thread.start()
    deadline = clock.now().boot + 600.0
    everybody.inbox.put(Noticed(Notice("test", "n", "binding", deadline)))
    kinds = [type(told.get(timeout=PATIENCE)) for _ in range(2)]
    assert kinds == [TellTrainer, KeepReport]
    assert slept.empty()
    clock.skip.set()
    assert slept.get(timeout=PATIENCE)
    everybody.inbox.put(StopRequested(clock.now().boot))
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert slept.empty()


@dataclass(slots=True)
class Attentive(Brain):
    """A mind that notes which messages it was to hear without ordering anything."""

    heard: list[tuple[str, bool]] = field(default_factory=list)

    def handle(self, message: Message, now: Instant, *, more: bool = False) -> Turn:
        """Note it."""
        self.heard.append((type(message).__name__, more))
        return Brain.handle(self, message, now, more=more)


def test_answers_in_a_row_share_a_turn_and_nothing_else_does() -> None:
    """The last answer in a row and whatever is no answer bring orders; a notice never waits."""
    everybody = Everybody()
    brain = Attentive(Policy(), Who("host", "nonce", "1"), lambda: 0.5)
    loop = Loop(brain, BootClock(), everybody.inbox, everybody, everybody, Scribe(everybody))
    answer = UploadAbandoned(Errand("abandon"))
    notice = Noticed(Notice("test", "n", "binding", loop.clock.now().boot + 600.0))
    messages: list[Message] = [answer, answer, answer, notice, Touched("a"), answer, Woken()]
    assert loop._turn(messages, loop.clock.now()) is None
    answers = [("UploadAbandoned", True)] * 2 + [("UploadAbandoned", False)]
    others = [("Noticed", False), ("Touched", False), ("UploadAbandoned", False)]
    assert brain.heard == [*answers, *others, ("Woken", False)]
