"""Pretended nights of several machines that write one checkpoint: 2 to 64 nodes, one store.

Every shard says of which save and node it is. So the judge needs nothing of the program under test
to tell a torn checkpoint: a manifest has one shard of every node, all of one save.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from ckptsyncd.core.records import names
from ckptsyncd.core.records.documents import Latest
from ckptsyncd.core.records.manifest import Manifest
from ckptsyncd.core.rules.policy import Policy
from ckptsyncd.core.view import snapshot
from ckptsyncd.errors import Again
from ckptsyncd.stores.faulty import Fault, FaultyStore
from tests.simulation.crew_plan import (
    SAVE_SECONDS,
    SKEW_SECONDS,
    WINDOW_SECONDS,
    Crew,
    crew_policy,
)
from tests.simulation.disk import PretendDisk
from tests.simulation.oracle import Oracle, Violation, check
from tests.simulation.plan import S3, Plan
from tests.simulation.world import Machine, World

#: By then the last save is committed if every machine lives.
MOST_CALM_SECONDS = 600.0


@dataclass(slots=True)
class CrewOracle(Oracle):
    """Judges what several machines commit together."""

    nodes: int = 1

    def restorable(self, manifest: Manifest) -> None:
        """Judge that a manifest has one shard of each node, and that all are of one save."""
        title = f"{manifest.checkpoint}@{manifest.edition}"
        shards: dict[str, set[str]] = {}
        for stored in manifest.files:
            if stored.kind != "file":
                continue
            data = self._content(manifest, stored).decode()
            save, owner = data.split("|")[:2]
            shards.setdefault(save, set()).add(owner)
        check(len(shards) == 1, f"{title} is torn: {sorted(shards)}")
        owners = {owner for found in shards.values() for owner in found} - {"all"}
        wanted = {str(node) for node in range(self.nodes)}
        check(owners == wanted, f"{title} is not whole: {sorted(wanted - owners)} are missing")
        check(manifest.nodes == tuple(range(self.nodes)), f"{title} names {manifest.nodes}")

    def _not_again(self, manifest: Manifest) -> None:
        """Nothing: that a save is sent once is judged where one machine writes it."""

    def _latest(self, latest: Latest) -> None:
        before = self.latest.get(latest.series)
        self.latest[latest.series] = latest
        key = names.manifest_key(latest.checkpoint, latest.edition)
        check(key in self.objects, f"latest names {key}, which does not exist")
        check(self.manifests[key].rank() == latest.rank, f"latest has another rank than {key}")
        if before is not None:
            check(latest.rank >= before.rank, f"latest went back from {before} to {latest}")


@dataclass(slots=True, eq=False)
class CrewWorld(World):
    """A world whose machines are the nodes of one run."""

    crew: Crew = field(default_factory=lambda: Crew(0, 2, 1, S3))
    node_of: dict[str, int] = field(default_factory=dict)
    cut_until: dict[str, float] = field(default_factory=dict)
    stores: dict[str, FaultyStore] = field(default_factory=dict)
    #: By how much each machine's clock is wrong.
    wrong: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Make an empty world with a judge of its own."""
        World.__post_init__(self)
        self.oracle = CrewOracle(self.calm_store, nodes=self.crew.nodes)

    def policy_of(self, machine: Machine) -> Policy:
        """Return the rules, with the machine's number among the nodes."""
        nodes = 0 if self.crew.is_uncounted else self.crew.nodes
        return replace(self.plan.policy, node=self.node_of[machine.name], nodes=nodes)

    def store_of(self, machine: Machine) -> FaultyStore:
        """Return the store, which a machine that is cut off does not reach."""
        if machine.name not in self.stores:

            def fault(verb: str, key: str) -> Fault | None:
                if self.cut_until.get(machine.name, 0.0) > self.now:
                    return Fault(Again("no route", ambiguous=False))
                return self._fault(verb, key)

            self.stores[machine.name] = FaultyStore(self.calm_store, fault)
        return self.stores[machine.name]

    def join(self, node: int) -> Machine:
        """Add a machine as a node."""
        machine = self.machine()
        self.node_of[machine.name] = node
        self.wrong[machine.name] = self.weather.uniform(-1.5, 1.5)
        machine.disk.wall = lambda: self.wall() + self.wrong[machine.name]
        return machine

    def of_node(self, node: int) -> Machine:
        """Return the machine that is a node now: the last one that was added."""
        return [m for m in self.machines if self.node_of[m.name] == node][-1]

    # The trainer --------------------------------------------------------------------------------

    def save(self, number: int, node: int, version: int = 0) -> None:
        """Let one node write its share of a save."""
        machine = self.of_node(node)
        if machine.is_buried:
            return
        disk, crew = machine.disk, self.crew
        name = "run/checkpoint-1" if crew.is_rewritten else f"run/checkpoint-{number * 10}"
        for folder in ("run", name):
            if folder not in disk.names:
                disk.mkdir(folder)
        # In files of their own, by rename: what was pinned of the save before stays as it was.
        shard = f"{number}|{node}|{version}|{'x' * (10 + node % 7)}".encode()
        self._write(disk, f"{name}/shard-{node}.pt", shard)
        self._write(disk, f"{name}/config.json", f"{number}|all|replicated".encode())
        if node == 0:
            nodes = crew.nodes if crew.is_uncounted else 0
            shards = " ".join(f"shard-{other}.pt" for other in range(nodes))
            self._write(disk, f"{name}/index-0.json", f"{number}|0|names:{shards}".encode())
        if crew.is_marked:
            self._write(disk, f"{name}/DONE", f"{number}|all|done".encode())

    def _write(self, disk: PretendDisk, path: str, data: bytes) -> None:
        disk.place(path, data, disk.now_ns())

    def replace_machine(self, node: int) -> None:
        """Let another machine be a node from now on, while the old daemon lives on for a while."""
        old = self.of_node(node)
        new = self.join(node)
        for path, there in list(old.disk.names.items()):
            data = getattr(there, "data", None)
            if data is None:
                new.disk.mkdir(path)
            else:
                new.disk.place(path, data, there.mtime_ns)  # type: ignore[union-attr]
        if self.weather.random() < 0.5 and old.daemon is not None:
            old.daemon.paused_until = self.now + self.weather.choice((5.0, 60.0))
        self.after(self.weather.choice((0.1, 5.0)), lambda: self.start(new))
        self.after(self.weather.choice((1.0, 30.0, 90.0)), lambda: self.bury(old))

    def bury(self, machine: Machine) -> None:
        """End a machine for good."""
        machine.is_buried = True
        if machine.daemon is not None and machine.daemon.is_alive:
            machine.daemon.die()
        self.excuse()

    def living(self) -> list[Machine]:
        """Return the machines that are the nodes now and live."""
        found = [self.of_node(node) for node in range(self.crew.nodes)]
        return [machine for machine in found if not machine.is_buried]


def live_through(crew: Crew) -> CrewWorld:
    """Live through a night; Violation says what went wrong."""
    plan = Plan(
        crew.seed,
        crew.saves * SAVE_SECONDS,
        crew_policy(crew),
        crew.limits,
        (),
        fault=crew.fault,
        late=crew.late,
        latency=crew.latency,
        is_forgetful=crew.losses > 0,
        overflows=1,  # the judge is not to compare moments: it has its own way
    )
    world = CrewWorld(plan, crew=crew)
    try:
        _night(world)
        _morning(world)
    except AssertionError as error:
        lines = [f"seed {crew.seed} at {world.now - world.begun:.3f} s: {error}", str(crew)]
        for time, nonce, message, orders in list(world.log)[-25:]:
            lines.append(f"  {time - world.begun:9.3f} {nonce} {str(message)[:300]}")
            lines += [f"            -> {str(order)[:300]}" for order in orders]
        raise Violation("\n".join(lines)) from error
    return world


def _night(world: CrewWorld) -> None:
    crew, chance = world.crew, world.weather
    for node in range(crew.nodes):
        machine = world.join(node)
        late = chance.choice((0.0, 0.0, 1.0, 15.0))
        world.at(world.begun + late, _starting(world, machine))
    for number in range(1, crew.saves + 1):
        _plan_save(world, number, world.begun + 5.0 + (number - 1) * SAVE_SECONDS)
    for count, accident in (
        (crew.kills, _kill),
        (crew.pauses, lambda w, m: w.pause(m)),
        (crew.cuts, _cut),
        (crew.losses, _lose),
        (crew.jumps, _jump),
        (crew.zombies, lambda w, m: w.replace_machine(w.node_of[m.name])),
    ):
        for _ in range(count):
            at = world.begun + chance.uniform(1.0, world.plan.seconds)
            world.at(at, _on_some(world, accident))
    for _ in range(crew.twice):
        node, number = chance.randrange(crew.nodes), chance.randint(1, crew.saves)
        at = world.begun + 5.0 + (number - 1) * SAVE_SECONDS + chance.uniform(1.0, 9.0)
        world.at(at, _saving(world, number, node, 1))
    if crew.dies:
        victim = chance.randrange(crew.nodes)
        world.at(world.begun + world.plan.seconds, lambda: world.bury(world.of_node(victim)))
    world.run(world.end)


def _plan_save(world: CrewWorld, number: int, at: float) -> None:
    for node in range(world.crew.nodes):
        delay = world.weather.uniform(0.0, SKEW_SECONDS)
        world.at(at + delay, _saving(world, number, node, 0))


def _saving(world: CrewWorld, number: int, node: int, version: int) -> Callable[[], None]:
    return lambda: world.save(number, node, version)


def _starting(world: CrewWorld, machine: Machine) -> Callable[[], None]:
    """Start a machine, unless it was replaced before: who starts later is the newer one."""

    def start() -> None:
        if world.of_node(world.node_of[machine.name]) is machine:
            world.start(machine)

    return start


def _on_some(
    world: CrewWorld, accident: Callable[[CrewWorld, Machine], None]
) -> Callable[[], None]:
    return lambda: accident(world, world.weather.choice(world.living()))


def _kill(world: CrewWorld, machine: Machine) -> None:
    world.kill(machine)


def _cut(world: CrewWorld, machine: Machine) -> None:
    world.cut_until[machine.name] = world.now + world.weather.choice((5.0, 30.0, 60.0))


def _jump(world: CrewWorld, machine: Machine) -> None:
    """Set a machine's clock; where only clocks tell the saves of a name apart, not that far."""
    is_told = world.crew.is_marked or not world.crew.is_rewritten
    world.wrong[machine.name] = world.weather.choice((-400.0, 400.0) if is_told else (-2.0, 2.0))


def _lose(world: CrewWorld, machine: Machine) -> None:
    """Kill a daemon and lose its ledger; a machine that was replaced does not come back so."""
    if machine.daemon is not None and machine.daemon.is_alive:
        machine.daemon.die()
    machine.ledger.lose()
    world.excuse()

    def again() -> None:
        if machine in world.living():
            world.restart(machine)

    world.after(1.0, again)


def _morning(world: CrewWorld) -> None:
    """Let the weather clear up, have one more save, and judge what has become of it."""
    crew = world.crew
    world.is_calm = True
    world.cut_until.clear()
    world.wrong = dict.fromkeys(world.wrong, 0.0)
    for machine in world.living():
        world.restart(machine)
    for machine in world.machines:
        if machine not in world.living():
            world.bury(machine)
    world.run(world.now + 2 * WINDOW_SECONDS)
    last = crew.saves + 1
    _plan_save(world, last, world.now + 1.0)
    limit = world.now + MOST_CALM_SECONDS
    while world.now < limit and not _is_over(world, last):
        world.run(world.now + 20.0)
    found = [m for m in world.oracle.manifests.values() if _save_of(world, m) == last]
    if len(world.living()) < crew.nodes:
        check(not found, "a save was committed without one of its nodes")
        _judge_incomplete(world)
        return
    check(len(found) == 1, f"the last save has {len(found)} manifests: {_stand(world)}")
    latest = world.oracle.latest.get("run")
    check(latest is not None and latest.rank == found[0].rank(), f"latest is {latest}")
    world.oracle.all_restorable()


def _is_over(world: CrewWorld, last: int) -> bool:
    """Return whether everybody knows that the last save is safe, or can only wait."""
    if len(world.living()) < world.crew.nodes:
        return False
    brains = [m.daemon.brain for m in world.living() if m.daemon is not None]
    safe = [row.manifest for brain in brains for row in brain.editions.safe.values()]
    ours = [manifest for manifest in safe if _save_of(world, manifest) == last]
    fenced = sum(bool(brain.runs.fenced) for brain in brains)
    settled = all(brain.runs.is_settled() for brain in brains)
    return len(ours) >= world.crew.nodes - fenced and settled


def _save_of(world: CrewWorld, manifest: Manifest) -> int:
    contents: Mapping[str, bytes] = world.oracle.contents(manifest)
    return int(next(iter(contents.values())).split(b"|")[0])


def _judge_incomplete(world: CrewWorld) -> None:
    dead = [n for n in range(world.crew.nodes) if world.of_node(n).is_buried]
    said = [
        view.reason
        for machine in world.living()
        if machine.daemon is not None
        for view in snapshot(machine.daemon.brain, world.clock.now()).checkpoints
        if view.reason.startswith("incomplete: ")
    ]
    check(said, f"nobody says that node {dead[0]} is missing: {_stand(world)}")
    # Where nobody counted them its shard is missed, or the index that would have named the others.
    lack = (f"shard-{dead[0]}.pt is missing", "no index tells")
    words = lack if world.crew.is_uncounted else (f"node {dead[0]}",)
    told = [text for text in said if any(word in text for word in words)]
    check(told, f"{dead} is missing, they say {said}")


def _stand(world: CrewWorld) -> str:
    rows = []
    for machine in world.living():
        brain = machine.daemon.brain if machine.daemon is not None else None
        if brain is not None:
            opened = [
                (e.checkpoint, e.number, e.state, e.reason) for e in brain.editions.open.values()
            ]
            rows.append(f"{machine.name}: {brain.runs.fenced or opened}")
    return "; ".join(rows)
