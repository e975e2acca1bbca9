"""A pretended world: machines with disks and trainers, a store with weather, and one clock.

Nothing here waits: the clock jumps to whatever happens next. All that happens is drawn from
generators that are seeded by the night's number, one for each part of the world, so that a change
in the program under test does not change what its trainers do.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from ckptsyncd.core.brain import Brain
from ckptsyncd.core.facts import Notice
from ckptsyncd.core.messages import (
    Message,
    Noticed,
    Overflowed,
    Polled,
    StopRequested,
    Touched,
)
from ckptsyncd.core.orders import Order
from ckptsyncd.core.rules.policy import Policy
from ckptsyncd.core.wishes import Who
from ckptsyncd.edge.clock import FakeClock
from ckptsyncd.edge.scribe import Scribe
from ckptsyncd.errors import Again, Lost, Refused
from ckptsyncd.stores.faulty import Fault, FaultyStore
from ckptsyncd.stores.memory import MemoryStore
from tests.simulation.daemon import Daemon
from tests.simulation.disk import PretendDisk
from tests.simulation.inodes import Inode
from tests.simulation.ledger import PretendLedger
from tests.simulation.oracle import Oracle, check
from tests.simulation.plan import Plan
from tests.simulation.trainer import Steps, Trainer

#: Turns of one mind within one second; more means that it turns in circles.
MOST_TURNS_A_SECOND = 2000


@dataclass(slots=True, eq=False)
class Machine:
    """A disk, the trainers that write to it, a state directory, and the daemon, if one runs."""

    name: str
    disk: PretendDisk
    ledger: PretendLedger
    trainers: list[Trainer] = field(default_factory=list)
    lineages: dict[str, int] = field(default_factory=dict)
    daemon: Daemon | None = None
    lives: int = 0
    is_buried: bool = False


@dataclass(slots=True, eq=False)
class World:
    """Everything there is in one night."""

    plan: Plan
    clock: FakeClock = field(default_factory=FakeClock)
    machines: list[Machine] = field(default_factory=list)
    calm_store: MemoryStore = field(init=False)
    store: FaultyStore = field(init=False)
    oracle: Oracle = field(init=False)
    weather: Random = field(init=False)
    begun: float = field(init=False)
    end: float = field(init=False)
    is_calm: bool = False
    outage_until: float = 0.0
    full_until: float = 0.0
    has_lost_rows: bool = False
    era: int = 0
    excused: set[str] = field(default_factory=set)
    queue: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    count: int = 0
    log: deque[tuple[float, str, Message, tuple[Order, ...]]] = field(
        default_factory=lambda: deque(maxlen=60)
    )

    def __post_init__(self) -> None:
        """Make an empty world."""
        plan = self.plan
        self.calm_store = MemoryStore(plan.limits)
        self.store = FaultyStore(self.calm_store, self._fault)
        conditions = plan.limits.compare_and_set
        strict = plan.is_plain_sight
        self.oracle = Oracle(self.calm_store, strict=strict, has_conditions=conditions)
        self.weather = Random(f"weather {plan.seed}")
        self.begun = self.now
        self.end = self.begun + plan.seconds

    # Time ---------------------------------------------------------------------------------------

    @property
    def now(self) -> float:
        """Seconds since the boot of everything."""
        return self.clock.now().boot

    def seconds(self) -> float:
        """Read the clock that measures durations."""
        return self.now

    def wall(self) -> float:
        """Read the wall clock."""
        return self.clock.now().wall

    def at(self, time: float, act: Callable[[], None]) -> None:
        """Have something happen at a time."""
        self.count += 1
        heapq.heappush(self.queue, (time, self.count, act))

    def after(self, seconds: float, act: Callable[[], None]) -> None:
        """Have something happen after a while."""
        self.at(self.now + seconds, act)

    def run(self, until: float) -> None:
        """Let everything happen that happens until then."""
        while self.queue and self.queue[0][0] <= until:
            time, _, act = heapq.heappop(self.queue)
            if time > self.now:
                self.clock.advance(time - self.now)
            act()
        self.clock.advance(max(0.0, until - self.now))

    def note(self, daemon: Daemon, message: Message, orders: tuple[Order, ...]) -> None:
        """Keep what happened last, for the report of a violation."""
        self.log.append((self.now, daemon.brain.who.nonce, message, orders))
        most = MOST_TURNS_A_SECOND * (self.now - self.begun + 1)
        check(daemon.turns < most, "a mind turns in circles")

    # Machines -----------------------------------------------------------------------------------

    def machine(self) -> Machine:
        """Add a machine with an empty disk."""
        number = len(self.oracle.disks) + 1
        plan = self.plan
        disk = PretendDisk(
            number, self.wall, plan.has_lease, plan.has_links, fails=self._disk_fails
        )
        ledger = PretendLedger(lambda: self.full_until > self.now)
        machine = Machine(f"machine{number}", disk, ledger)
        self.machines.append(machine)
        self.oracle.disks.append(disk)
        return machine

    def start(self, machine: Machine) -> None:
        """Start a daemon, if none runs."""
        if machine.is_buried:
            return
        if machine.daemon is not None and machine.daemon.is_alive:
            return
        machine.lives += 1
        nonce = f"{machine.name}.{machine.lives}"
        brain = Brain(
            self.policy_of(machine),
            Who(machine.name, nonce, "1"),
            Random(f"jitter {self.plan.seed} {nonce}").random,
            machine.ledger.recalled(),
            dict(machine.lineages),
            held_pins=machine.disk.held(),
        )
        daemon = machine.daemon = Daemon(self, machine, brain, Scribe(machine.ledger))
        machine.disk.touched.append(daemon.touched)
        if self.plan.is_polled:
            self.after(0.01, lambda: daemon.hear(Polled("", "no events")))
        self.after(0.01, lambda: daemon.hear(Touched("", tree=True)))

    def policy_of(self, machine: Machine) -> Policy:
        """Return the rules of a machine's daemon."""
        del machine
        return self.plan.policy

    def store_of(self, machine: Machine) -> FaultyStore:
        """Return the store as a machine reaches it."""
        del machine
        return self.store

    def stopped(self, daemon: Daemon) -> None:
        """Judge the exit code of a daemon that stopped by itself."""
        opened = list(daemon.brain.editions.open)
        is_clean = daemon.exit_code == 0
        check(not is_clean or not opened, f"stopped with code 0 although {opened} is not safe")

    def drive(self, trainer: Trainer, steps: Steps) -> None:
        """Let a trainer's process go on until it ends or is killed."""

        def go_on() -> None:
            if steps is not trainer.process:
                return
            pause = next(steps, None)
            if pause is None:
                trainer.process = None
            else:
                self.after(pause, go_on)

        trainer.process = steps
        go_on()

    def kill_trainer(self, trainer: Trainer) -> None:
        """Kill a trainer wherever it is."""
        if trainer.process is not None:
            trainer.process = None
            trainer.die()

    # Weather ------------------------------------------------------------------------------------

    def latency(self) -> float:
        """Return how long a request takes to reach the store."""
        return self.weather.choice((0.2, 0.5, 1.0, 1.0, 3.0)) * self.plan.latency

    def late_share(self) -> float:
        """Return how likely a request times out and takes effect later."""
        return 0.0 if self.is_calm else self.plan.late

    def _fault(self, verb: str, key: str) -> Fault | None:
        del key
        chance = self.weather
        if self.is_calm:
            return None
        if self.outage_until > self.now:
            return Fault(Again("nobody answers", ambiguous=chance.random() < 0.3))
        if chance.random() >= self.plan.fault:
            return None
        return _some_fault(chance, verb)

    def _disk_fails(self) -> bool:
        return not self.is_calm and self.weather.random() < self.plan.bad_reads

    def excuse(self) -> None:
        """Ask nobody to drop what is begun now: who knew of it is gone."""
        self.excused |= {begun.token for begun in self.calm_store.uploads("")}

    def lose_uploads(self) -> None:
        """Let the store forget what was begun, as its owner's clean-up does."""
        self.calm_store._uploads.clear()

    def meddle(self, machine: Machine) -> None:
        """Open some file for writing and write nothing, or only touch it."""
        files = [node for node in machine.disk.names.values() if isinstance(node, Inode)]
        if not files:
            return
        inode = self.weather.choice(files)
        if self.weather.random() < 0.3:
            machine.disk.changed(inode)
            return
        inode.writers += 1
        self.after(self.weather.choice((0.01, 0.5, 4.0)), lambda: machine.disk.closed(inode))

    def lose_pin(self, machine: Machine) -> None:
        """Let somebody remove a pin."""
        if machine.disk.pins:
            del machine.disk.pins[self.weather.choice(machine.disk.held())]

    def empty(self, machine: Machine) -> None:
        """Empty the bucket while no daemon runs."""
        if len(self.oracle.disks) > 1 or machine.daemon is None:
            return
        if machine.daemon.is_alive:
            machine.daemon.die()
        for key in self.calm_store.objects():
            self.calm_store.delete(key)
        self.lose_uploads()
        self.era += 1
        self.oracle.forget()
        self.after(1.0, lambda: self.restart(machine))

    def fill(self, _: Machine) -> None:
        """Leave no room for the ledger for a while."""
        self.full_until = self.now + self.weather.choice((3.0, 30.0))

    def jump(self, _: Machine) -> None:
        """Set the wall clock."""
        self.clock.jump_wall(self.weather.choice((-400.0, -3.0, 3.0, 400.0)))

    # Accidents ----------------------------------------------------------------------------------

    def kill(self, machine: Machine) -> None:
        """Kill the daemon now or in its next turn, and start another one later."""
        chance = self.weather
        daemon = machine.daemon
        if daemon is None or not daemon.is_alive:
            return
        daemon.doom = chance.choice(("", "written", "unwritten"))
        if not daemon.doom:
            daemon.die()
        self.after(chance.choice((0.05, 2.0, 20.0)), lambda: self.restart(machine))

    def restart(self, machine: Machine) -> None:
        """Start the next daemon, with what is left of the ledger."""
        daemon = machine.daemon
        if daemon is not None and daemon.is_alive:
            if not daemon.doom:
                return
            daemon.die()
        kind = self.weather.random()
        if kind < 0.3:
            machine.ledger.power_cut()
        elif kind < 0.6 and self.plan.is_forgetful and len(self.machines) == 1:
            machine.ledger.lose()
            self.excuse()
        self.start(machine)

    def pause(self, machine: Machine) -> None:
        """Stop the daemon's clock hand: it hears everything late, in one go."""
        if machine.daemon is not None:
            machine.daemon.paused_until = self.now + self.weather.choice((1.0, 8.0, 30.0))

    def overflow(self, machine: Machine) -> None:
        """Drop the events of a while, and say so afterwards."""
        daemon = machine.daemon
        if daemon is None or daemon.touched not in machine.disk.touched:
            return
        machine.disk.touched.remove(daemon.touched)

        def over() -> None:
            if daemon.is_alive:
                machine.disk.touched.append(daemon.touched)
                daemon.hear(Overflowed())

        self.after(self.weather.choice((0.1, 3.0)), over)

    def notice(self, machine: Machine) -> None:
        """Announce an interruption that does not come."""
        if machine.daemon is None:
            return
        deadline = self.now + self.weather.choice((5.0, 30.0, 120.0))
        severity = self.weather.choice(("binding", "binding", "advisory"))
        notice = Notice("test", f"notice-{self.now}", severity, deadline)  # type: ignore[arg-type]
        machine.daemon.hear(Noticed(notice))

    def stop(self, machine: Machine) -> None:
        """Ask the daemon to stop; it is killed at the deadline, and another one is started."""
        seconds = self.weather.choice((2.0, 8.0, 60.0))
        if machine.daemon is not None:
            machine.daemon.hear(StopRequested(self.now + seconds))
        self.after(seconds, lambda: self.kill(machine))
        self.after(seconds + 25.0, lambda: self.restart(machine))


def _some_fault(chance: Random, verb: str) -> Fault:
    kind = chance.random()
    if kind < 0.35:
        wait = chance.choice((None, 0.1, 3.0))
        return Fault(Again("slow down", wait_seconds=wait, throttled=True))
    if kind < 0.5:
        return Fault(Again("the connection broke", ambiguous=True))
    if kind < 0.9:
        return Fault(Again("the answer was lost", ambiguous=True), after=True)
    if kind < 0.95 and verb == "put_small":
        # The SDK (or a proxy) tried again by itself and met its own first success.
        return Fault(Lost("exists already"), after=True)
    return Fault(Refused("the credentials have expired"))
