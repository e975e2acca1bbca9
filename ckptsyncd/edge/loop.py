"""The loop: the only wait in the program, one clock reading a turn.

It takes the messages that are there, asks the brain about each, writes the ledger, hands out the
orders, and shows the taps what moved. It decides nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from queue import Empty, SimpleQueue
from typing import Any, Protocol

from ckptsyncd.core.brain import Brain
from ckptsyncd.core.facts import Instant
from ckptsyncd.core.messages import Answer, Message, Overflowed, Woken
from ckptsyncd.core.moves import Move
from ckptsyncd.core.orders import HandOrder, LedgerOrder, Order, ScannerOrder, SetPace, Stop
from ckptsyncd.core.snapshot import Snapshot
from ckptsyncd.core.view import snapshot
from ckptsyncd.edge.backlog import Backlog
from ckptsyncd.edge.clock import Clock
from ckptsyncd.edge.scribe import Scribe

#: The loop turns at least this often, so that its heartbeat means something (guessed).
LONGEST_WAIT_SECONDS = 5.0

#: A wait that took this much longer than asked means that we were stopped or suspended: whatever
#: was known may be old (Slurm suspends, a virtual machine is frozen for a migration).
OVERSLEPT_SECONDS = 5.0

#: The snapshot is made anew at most this often: it costs milliseconds with many checkpoints.
SNAPSHOT_SECONDS = 0.2

#: So many messages share one turn at most: one transaction, one look at what moved (guessed: more
#: than hands answer at once, and few enough that a notice is not late).
MOST_MESSAGES = 32

Tap = Callable[[Sequence[Move], Instant, Snapshot], None]


class Hands(Protocol):
    """Whoever does store orders."""

    def submit(self, order: HandOrder) -> None:
        """Take an order; return at once."""
        ...

    def set_pace(self, bytes_per_second: int | None) -> None:
        """Send at most so much from now on."""
        ...


class Scanner(Protocol):
    """Whoever looks at the disk."""

    def submit(self, order: ScannerOrder) -> None:
        """Take an order; return at once."""
        ...


@dataclass(slots=True)
class Loop:
    """Turns until the brain orders a stop. ``shown`` is the newest snapshot, swapped as a whole."""

    brain: Brain
    clock: Clock
    inbox: SimpleQueue[Message]
    hands: Hands
    scanner: Scanner
    scribe: Scribe
    taps: tuple[Tap, ...] = ()
    #: Who carries out the orders about a drain, by their kind.
    doers: Mapping[type, Callable[[Any], object]] = field(default_factory=dict)
    #: Called where the loop overslept: what others know may be old too.
    overslept: Callable[[], object] = lambda: None
    shown: Snapshot = field(init=False)
    shown_at: float = field(init=False)
    stale: bool = False
    backlog: Backlog = field(init=False)

    def __post_init__(self) -> None:
        """Take the first snapshot."""
        self.backlog = Backlog(self.inbox)
        now = self.clock.now()
        self.shown, self.shown_at = snapshot(self.brain, now), now.boot

    def run(self) -> int:
        """Turn until a stop is ordered; return the exit code."""
        now = self.clock.now()
        messages: list[Message] = [Woken()]
        while True:
            code = self._turn(messages, now)
            if code is not None:
                return code
            wait = self._wait_seconds(now)
            messages = self._next_messages(wait)
            before, now = now, self.clock.now()
            if now.boot - before.boot <= wait + OVERSLEPT_SECONDS:
                continue
            self.overslept()
            if (code := self._turn([Overflowed()], now)) is not None:
                return code

    def last(self) -> Snapshot:
        """Return the snapshot of this very moment; only for the thread that turns."""
        return snapshot(self.brain, self.clock.now())

    def _wait_seconds(self, now: Instant) -> float:
        alarm = self.brain.next_alarm(now.boot)
        longest = SNAPSHOT_SECONDS if self.stale else LONGEST_WAIT_SECONDS
        return min(max(alarm - now.boot, 0.0), longest)

    def _next_messages(self, wait: float) -> list[Message]:
        """Wait for a message, and take with it what else is there already."""
        found: list[Message] = []
        with contextlib.suppress(Empty):
            while len(found) < MOST_MESSAGES:
                found.append(self.backlog.next(0.0 if found else wait))
        return found or [Woken()]

    def _turn(self, messages: Sequence[Message], now: Instant) -> int | None:
        """Take in messages; what the ledger must know is written before any order goes out."""
        orders: list[Order] = []
        moves: list[Move] = []
        for message, follower in zip_longest(messages, messages[1:]):
            more = isinstance(message, Answer) and isinstance(follower, Answer)
            turn = self.brain.handle(message, now, more=more)
            orders += turn.orders
            moves += turn.moves
            if any(isinstance(order, Stop) for order in turn.orders):
                break
        moves += self.scribe.write([order for order in orders if isinstance(order, LedgerOrder)])
        code: int | None = None
        for order in orders:
            if isinstance(order, HandOrder):
                self.hands.submit(order)
            elif isinstance(order, ScannerOrder):
                self.scanner.submit(order)
            elif isinstance(order, SetPace):
                self.hands.set_pace(order.bytes_per_second)
            elif isinstance(order, Stop):
                code = order.exit_code
            elif type(order) in self.doers:
                self.doers[type(order)](order)
        self._show(moves, now)
        return code

    def _show(self, moves: list[Move], now: Instant) -> None:
        self.stale = True
        if moves or now.boot - self.shown_at >= SNAPSHOT_SECONDS:
            self.shown, self.shown_at, self.stale = snapshot(self.brain, now), now.boot, False
        for tap in self.taps:
            tap(moves, now, self.shown)
