"""The loop: orders about a drain reach whoever carries them out, and a long sleep is noticed."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from queue import SimpleQueue

from ckptsyncd.core.brain import Brain
from ckptsyncd.core.facts import Instant, Notice
from ckptsyncd.core.messages import KeysListed, Message, Noticed, Probed, Scanned, StopRequested
from ckptsyncd.core.orders import (
    HandOrder,
    KeepReport,
    ListKeys,
    Probe,
    Scan,
    ScannerOrder,
    TellTrainer,
)
from ckptsyncd.core.rules.policy import Policy
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
