"""A pretended night: a mind, a disk of files that arrive whole, and a link to a store of sizes.

Nothing is sent and nothing waits. All transfers share the link evenly; its speed may change.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field

from ckptsyncd.core import orders
from ckptsyncd.core.brain import Brain
from ckptsyncd.core.facts import FileFact, FileLook, Instant, Limits
from ckptsyncd.core.foreman import SPARE_HANDS
from ckptsyncd.core.messages import (
    Failed,
    Looked,
    LookedAgain,
    Message,
    Pinned,
    PointerRead,
    Scanned,
    Touched,
    Unpinned,
    Woken,
)
from ckptsyncd.core.moves import Move
from ckptsyncd.core.rules.policy import Policy
from ckptsyncd.core.wishes import Who
from tests.simulation.sizes import SizeStore

WALL = 1_750_000_000.0
MIB = 2**20
#: More orders than this in one second mean that a mind turns in circles.
MOST_TURNS_A_SECOND = 3000

S3 = Limits(5 * MIB, 5 * 1024 * MIB, 10_000, 50 * 2**40)
#: One stream of pieces in order, as a resumable upload is.
STREAM = Limits(256 * 1024, 2**40, 10**6, 50 * 2**40, pieces_in_parallel=False)


@dataclass
class Transfer:
    """An order whose bytes are on the link."""

    order: orders.HandOrder
    left: float
    began: float


@dataclass
class Night:
    """One mind, one disk of files, one store, one link. ``speed`` is bytes per second by time."""

    policy: Policy = field(default_factory=lambda: Policy(companions=False))
    limits: Limits = S3
    speed: float = 100e6
    latency: float = 0.02
    now: float = 1000.0
    files: dict[str, FileFact] = field(default_factory=dict)
    store: SizeStore = field(init=False)
    committed: dict[str, float] = field(default_factory=dict)
    moves: list[tuple[float, Move]] = field(default_factory=list)
    told: list[tuple[float, orders.Order]] = field(default_factory=list)
    #: Returns a failure for an order, or nothing.
    throttle: Callable[[orders.HandOrder, float], Failed | None] = lambda _order, _now: None
    #: Returns whether an order is never answered.
    swallow: Callable[[orders.HandOrder], bool] = lambda _order: False

    def __post_init__(self) -> None:
        """Wake the mind."""
        self.count = itertools.count(1)
        self.store = SizeStore(self.limits, self.files)
        self.begun_at = self.now
        self.turns = 0
        self.out = 0
        self.is_over: float | None = None
        self.exit_code: int | None = None
        self.events: list[tuple[float, int, Callable[[], None]]] = []
        self.sending: list[Transfer] = []
        self.moved_at = self.now
        who = Who("machine", "nonce", "1", "boot")
        self.brain = Brain(self.policy, who, lambda: 0.5)
        self.alarm = float("inf")
        self.after(0.0, lambda: self.hear(Touched("", tree=True)))

    # The trainer --------------------------------------------------------------------------------

    def save(self, path: str, size: int) -> None:
        """Let a whole file arrive under its name at once."""
        stamp = int((WALL + self.now) * 1e9)
        self.files[path] = FileFact(path, "file", 1, next(self.count), size, stamp)
        if self.is_over is None:
            self.after(0.0, lambda: self.hear(Touched(path, arrived=True)))

    # Time ---------------------------------------------------------------------------------------

    def at(self, time: float, act: Callable[[], None]) -> None:
        """Have something happen at a time (boot seconds)."""
        heapq.heappush(self.events, (time, next(self.count), act))

    def after(self, seconds: float, act: Callable[[], None]) -> None:
        """Have something happen after a while."""
        self.at(self.now + seconds, act)

    def set_speed(self, per_second: float) -> None:
        """Let the link have another speed from now on."""
        self._move()
        self.speed = per_second

    def run(self, until: float) -> None:
        """Let everything happen that happens until then."""
        while self.is_over is None:
            times = [until, self.alarm, self._next_arrival()]
            times += [self.events[0][0]] if self.events else []
            time = max(min(times), self.now)
            if time >= until:
                break
            self.now = time
            self._move()
            self._arrive()
            while self.events and self.events[0][0] <= self.now:
                heapq.heappop(self.events)[2]()
            if self.alarm <= self.now:
                self.hear(Woken())
        self.now = max(self.now, until)
        self._move()

    def _next_arrival(self) -> float:
        if not self.sending or self.speed <= 0.0:
            return float("inf")
        share = self.speed / len(self.sending)
        # A byte's rest is nothing: without this the clock's last bits would stop it.
        return self.now + max(min(t.left for t in self.sending), 1.0) / share

    def _move(self) -> None:
        moved = (self.now - self.moved_at) * self.speed / max(len(self.sending), 1)
        self.moved_at = self.now
        for transfer in self.sending:
            transfer.left -= moved

    def _arrive(self) -> None:
        done = [transfer for transfer in self.sending if transfer.left <= 1.0]
        for transfer in done:
            self.sending.remove(transfer)
            self._answer(transfer.order, self.now - transfer.began)

    # The mind -----------------------------------------------------------------------------------

    def hear(self, message: Message) -> None:
        """Give the mind a message, and carry out what it orders."""
        if self.is_over is not None:
            return
        turn = self.brain.handle(message, self.instant())
        self.turns += 1
        assert self.turns < MOST_TURNS_A_SECOND * (self.now - self.begun_at + 1), (
            "it turns in circles"
        )
        self.moves += [(self.now, move) for move in turn.moves]
        for order in turn.orders:
            self._obey(order)
        self.alarm = self.brain.next_alarm(self.now)
        assert self.alarm > self.now

    def instant(self) -> Instant:
        """Read the clocks."""
        return Instant(self.now, WALL + self.now)

    def state(self) -> str:
        """Return the mind's state."""
        return self.brain.ending.state

    def _obey(self, order: orders.Order) -> None:
        if isinstance(order, orders.HandOrder):
            self._hand_out(order)
        elif isinstance(order, orders.ScannerOrder):
            report = self._scan(order)
            self.after(0.001, lambda: self.hear(report))
        elif isinstance(order, orders.Stop):
            self.is_over, self.exit_code = self.now, order.exit_code
        elif isinstance(order, orders.DrainOrder | orders.SetPace):
            self.told.append((self.now, order))

    def _hand_out(self, order: orders.HandOrder) -> None:
        self.out += 1
        most = self.policy.hands + (SPARE_HANDS if self.brain.ending.is_hasty else 0)
        assert self.out <= most, f"{self.out} orders are out with {most} hands"
        if self.swallow(order):
            return
        failure = self.throttle(order, self.now)
        if failure is not None:
            self.after(self.latency, lambda: self._post(failure))
        elif isinstance(order, orders.PutPiece | orders.PutWhole):
            self.after(self.latency, lambda: self._send(order))
        else:
            self.after(self.latency, lambda: self._answer(order, self.latency))

    def _send(self, order: orders.PutPiece | orders.PutWhole) -> None:
        self._move()
        self.sending.append(Transfer(order, float(order.piece.length), self.now - self.latency))

    def _answer(self, order: orders.HandOrder, seconds: float) -> None:
        self._post(self.store.answer(order, seconds))
        for checkpoint in self.store.committed:
            self.committed.setdefault(checkpoint, self.now)

    def _post(self, message: Message) -> None:
        self.out -= 1
        self.hear(message)

    @property
    def records(self) -> dict[str, tuple[bytes, str]]:
        """The records in the store: data and version by key."""
        return self.store.records

    # The disk -----------------------------------------------------------------------------------

    def _scan(self, order: orders.ScannerOrder) -> Message:
        errand = order.errand
        if isinstance(order, orders.Scan):
            facts = tuple(f for f in self.files.values() if f.path.startswith(order.path))
            return Scanned(errand, order.path, facts, order.recursive)
        if isinstance(order, orders.Look):
            found = [f for f in self.files.values() if f.path.startswith(order.roots)]
            looks = [FileLook(f, "none", shape="whole", has_end_mark=True) for f in found]
            return Looked(errand, tuple(found), tuple(looks))
        if isinstance(order, orders.Pin):
            gone = [fact.path for fact in order.listing.files if fact.path not in self.files]
            return Pinned(errand, order.listing, f"{gone[0]} vanished" if gone else "")
        if isinstance(order, orders.LookAgain):
            return LookedAgain(errand, "")
        if isinstance(order, orders.ReadPointer):
            return PointerRead(errand, "file", None)
        return Unpinned(errand)
