"""One life of the daemon in a pretended world: a mind, and the orders that it has out.

The orders are carried out by the same functions as in the real program. An order takes effect some
time after it was given, and its answer comes some time after that; a daemon that is killed gets no
answers any more, but requests that were on their way may still reach the store.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ckptsyncd.core.brain import Brain
from ckptsyncd.core.facts import Listing, Piece
from ckptsyncd.core.foreman import SPARE_HANDS
from ckptsyncd.core.messages import (
    Answer,
    Failed,
    LookedAgain,
    Message,
    Report,
    Touched,
    UploadBegun,
    Woken,
)
from ckptsyncd.core.orders import (
    Forget,
    ForgetBelow,
    HandOrder,
    LedgerOrder,
    LookAgain,
    Order,
    PutPiece,
    PutWhole,
    Remember,
    ScannerOrder,
    Stop,
    Sum,
)
from ckptsyncd.edge import hands, scanner
from ckptsyncd.edge.scribe import Scribe
from tests.simulation.disk import UNREADABLE, PretendDisk
from tests.simulation.inodes import PinnedBody
from tests.simulation.oracle import check

if TYPE_CHECKING:
    from tests.simulation.world import Machine, World

#: Each so manyth turn that takes an answer in orders nothing: another message follows at once.
FOLLOWED = 3


class Reading:
    """A disk as one hand sees it: what it reads was opened when the order was given."""

    def __init__(self, disk: PretendDisk, order: HandOrder) -> None:
        """Open what the order will read."""
        self.body: PinnedBody | None = None
        self.error: OSError | None = None
        if isinstance(order, PutPiece | PutWhole | Sum):
            try:
                path = order.errand.path
                self.body = disk.open_piece(order.pin_id, order.listing, path, order.piece)
            except OSError as error:
                self.error = error
        self._disk = disk

    def open_piece(self, pin_id: str, listing: Listing, path: str, piece: Piece) -> PinnedBody:
        """Return what was opened."""
        if self.error is not None:
            raise self.error
        return self.body or self._disk.open_piece(pin_id, listing, path, piece)

    def __getattr__(self, name: str) -> object:
        """Leave everything else to the disk."""
        return getattr(self._disk, name)


@dataclass(slots=True, eq=False)
class Daemon:
    """A process that lives until it is killed or stops."""

    world: World
    machine: Machine
    brain: Brain
    scribe: Scribe
    is_alive: bool = True
    exit_code: int | None = None
    out: dict[int, tuple[HandOrder, Reading]] = field(default_factory=dict)
    waiting: list[Message] = field(default_factory=list)
    paused_until: float = 0.0
    heard_until: float = 0.0
    scanned_until: float = 0.0
    alarm: float = float("inf")
    orders: int = 0
    turns: int = 0
    store_orders: int = 0
    doom: str = ""

    def touched(self, touched: Touched) -> None:
        """Let the watcher report an event, later and in order, unless it is lost."""
        world, plan = self.world, self.world.plan
        if plan.is_polled or world.weather.random() < plan.loss:
            return
        delay = world.weather.choice((0.001, 0.003, 0.02, plan.lag))
        at = max(self.heard_until, world.now + delay)
        self.heard_until = at
        world.at(at, lambda: self.hear(touched))

    def hear(self, message: Message) -> None:
        """Give one message to the mind, and carry out what it orders."""
        if not self.is_alive:
            return
        if self.paused_until > self.world.now:
            self.world.at(self.paused_until, lambda: self.hear(message))
            return
        now = self.world.clock.now()
        # As in the loop several answers may be heard before anything is ordered again.
        more = isinstance(message, Answer) and self.turns % FOLLOWED == 0
        turn = self.brain.handle(message, now, more=more)
        self.turns += 1
        if more:
            self.world.after(0.0, lambda: self.hear(Woken()))
        self.world.note(self, message, turn.orders)
        if self.doom:
            self._die_in_turn(turn.orders)
            return
        self._carry_out(turn.orders)
        self.world.oracle.hear(self.brain)
        self._set_alarm()

    def _die_in_turn(self, orders: tuple[Order, ...]) -> None:
        """Be killed after the turn was thought, before or after it was written down."""
        if self.doom == "written":
            self.scribe.write(_ledger_orders(orders))
        self.die()

    def _carry_out(self, orders: tuple[Order, ...]) -> None:
        self.scribe.write(_ledger_orders(orders))
        for order in orders:
            if isinstance(order, Stop):
                self.exit_code = order.exit_code
                self.die()
                self.world.stopped(self)
            elif isinstance(order, ScannerOrder):
                self._scan(order)
            elif isinstance(order, HandOrder):
                self._hand_out(order)

    def _set_alarm(self) -> None:
        if not self.is_alive:
            return
        now = self.world.now
        alarm = self.brain.next_alarm(now)
        check(alarm > now, f"the alarm is set to {alarm}, it is {now}")
        if alarm == self.alarm:
            return
        self.alarm = alarm
        if alarm < self.world.end + 10_000:
            self.world.at(alarm, lambda: self._wake(alarm))

    def _wake(self, alarm: float) -> None:
        if alarm == self.alarm:
            self.alarm = float("inf")
            self.hear(Woken())

    # Orders -------------------------------------------------------------------------------------

    def _scan(self, order: ScannerOrder) -> None:
        delay = self.world.weather.choice((0.0005, 0.002, 0.02))
        at = max(self.scanned_until, self.world.now + delay)
        self.scanned_until = at

        def act() -> None:
            if self.is_alive:
                report = scanner.obey(order, self.machine.disk)
                self._judge(order, report)
                self.world.after(0.0005, lambda: self.hear(report))

        self.world.at(at, act)

    def _judge(self, order: ScannerOrder, report: Report | Failed) -> None:
        """Judge a second look: it tells of the pinned files, whatever the paths show by now."""
        if isinstance(order, LookAgain) and isinstance(report, LookedAgain):
            truth = self.machine.disk.difference(order.errand.save_id, order.listing)
            failed = report.difference == UNREADABLE
            right = failed or bool(report.difference) == bool(truth)
            check(right, f"the second look says {report.difference!r}, the pins {truth!r}")

    def _hand_out(self, order: HandOrder) -> None:
        self.orders += 1
        self.store_orders += 1
        number = self.orders
        reading = Reading(self.machine.disk, order)
        self.out[number] = (order, reading)
        # Against a deadline, one that seems to be stuck does not count.
        most = self.world.plan.policy.hands + (SPARE_HANDS if self.brain.ending.is_hasty else 0)
        check(len(self.out) <= most, f"{len(self.out)} orders are out with {most} hands")
        # What cannot be read here fails before anything is sent.
        delay = self.world.latency() if reading.error is None else 0.001
        self.world.after(delay, lambda: self._act(number))

    def _act(self, number: int) -> None:
        if number not in self.out or not self.is_alive:
            return
        order, reading = self.out[number]
        world = self.world
        if world.weather.random() < world.late_share():
            # The answer is a time-out, and the request takes effect when nobody waits any more.
            self._ghost(order, reading)
            answer: Message = Failed(order.errand, "again", "timed out", None, ambiguous=True)
        else:
            store = world.store_of(self.machine)
            answer = hands.obey(order, store, reading, world.seconds)  # type: ignore[arg-type]
            world.oracle.look()
        world.after(world.weather.choice((0.001, 0.01, 0.05)), lambda: self._answer(number, answer))

    def _answer(self, number: int, answer: Message) -> None:
        if self.is_alive:
            del self.out[number]
            self.hear(answer)

    def _ghost(self, order: HandOrder, reading: Reading) -> None:
        """Let a request reach the store later, with what was read by now."""
        world = self.world
        if reading.body is not None:
            reading.body.capture()

        era = world.era

        def act() -> None:
            if world.era != era:
                return
            answer = hands.obey(order, world.calm_store, reading, world.seconds)  # type: ignore[arg-type]
            if isinstance(answer, UploadBegun):
                world.excused.add(answer.begun.token)
            world.oracle.look()

        world.after(world.weather.choice((0.01, 0.5, 5.0, 40.0)), act)

    def die(self) -> None:
        """Be killed: no answer comes any more, requests on their way may still arrive."""
        self.is_alive = False
        if self.scribe.kept:
            self.world.has_lost_rows = True
            self.world.excuse()
        for order, reading in self.out.values():
            if self.world.weather.random() < self.world.plan.zombies:
                self._ghost(order, reading)
        self.out.clear()
        self.machine.disk.process_died()
        if self.touched in self.machine.disk.touched:
            self.machine.disk.touched.remove(self.touched)


def _ledger_orders(orders: tuple[Order, ...]) -> list[LedgerOrder]:
    return [order for order in orders if isinstance(order, Remember | Forget | ForgetBelow)]
