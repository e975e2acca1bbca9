"""What the mind itself costs: microseconds for each message and each order, without any I/O.

``python -m benchmarks.brain`` prints them. A real scanner and a store in memory answer between the
turns; only the turns are timed, in CPU time of this thread.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter, deque
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from ckptsyncd.core.brain import Brain
from ckptsyncd.core.facts import Instant
from ckptsyncd.core.messages import Message, Touched, Woken
from ckptsyncd.core.orders import HandOrder, LedgerOrder, ScannerOrder
from ckptsyncd.core.rules.policy import Policy
from ckptsyncd.core.wishes import Who
from ckptsyncd.edge import hands, scanner
from ckptsyncd.edge.disk import RealDisk
from ckptsyncd.formats import check
from ckptsyncd.stores.memory import MemoryStore


@dataclass
class Bench:
    """A mind, and what its turns took. A store that ``holds`` answers no upload yet."""

    root: Path
    holds: bool = False
    now: float = 1000.0
    waiting: deque[Message] = field(default_factory=deque)
    held: list[HandOrder] = field(default_factory=list)
    nanoseconds: list[int] = field(default_factory=list)
    orders: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        """Have an empty store and an empty root."""
        self.brain = Brain(Policy(companions=False), Who("host", "nonce", "1"), lambda: 0.5)
        self.store, self.disk = MemoryStore(), RealDisk(self.root, check)

    def hear(self, message: Message) -> None:
        """Take one turn, and have what it orders done."""
        begun = time.thread_time_ns()
        turn = self.brain.handle(message, Instant(self.now, self.now))
        self.brain.next_alarm(self.now)
        self.nanoseconds.append(time.thread_time_ns() - begun)
        for order in turn.orders:
            self.orders[type(order).__name__] += not isinstance(order, LedgerOrder)
            if isinstance(order, ScannerOrder):
                self.waiting.append(scanner.obey(order, self.disk))
            elif isinstance(order, HandOrder) and self.holds and order.errand.save_id:
                self.held.append(order)
            elif isinstance(order, HandOrder):
                self.waiting.append(hands.obey(order, self.store, self.disk, lambda: 0.001))

    def settle(self, seconds: float) -> None:
        """Let everything happen that happens in so much time."""
        for _ in range(round(seconds / 0.05)):
            self.now += 0.05
            self.hear(Woken())
            while self.waiting:
                self.hear(self.waiting.popleft())

    def save(self, number: int) -> None:
        """Let a checkpoint arrive by rename."""
        place = self.root / f"run/epoch={number}.ckpt"
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(b"weights")
        self.hear(Touched(f"run/epoch={number}.ckpt", arrived=True))

    def figures(self) -> str:
        """Return microseconds for each turn (median, mean) and each order since the last call."""
        taken, count = self.nanoseconds, sum(self.orders.values())
        mean = sum(taken) / len(taken) / 1000
        text = f"{median(taken) / 1000:.0f} us a turn (median; mean {mean:.0f})"
        text += f", {sum(taken) / max(count, 1) / 1000:.0f} us an order ({count})"
        self.nanoseconds, self.orders = [], Counter()
        return text


def measure(queued: int) -> None:
    """Print what turns cost with so many checkpoints that wait for a hand."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name) / "root"
        root.mkdir()
        bench = Bench(root)
        bench.settle(1.0)
        bench.holds = True
        for number in range(queued):
            bench.save(number)
        bench.settle(5.0)
        bench.figures()
        for number in range(200):
            bench.hear(Touched(f"run/log-{number}.tmp"))
        sys.stdout.write(f"{queued} queued: an event: {bench.figures()}\n")
        bench.holds = False
        for order in bench.held:
            bench.waiting.append(hands.obey(order, bench.store, bench.disk, lambda: 0.001))
        for number in range(queued, queued + 20):
            bench.save(number)
            bench.settle(0.2)
        sys.stdout.write(f"{queued} queued: until safe: {bench.figures()}\n")


if __name__ == "__main__":
    for waiting in map(int, sys.argv[1:] or ("0", "100", "1000")):
        measure(waiting)
