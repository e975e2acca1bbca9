"""What a commit of several machines asks of the store: ``python -m tests.simulation.cost 2 8 64``.

The second of two saves in a calm world: no faults, one latency. For each number of nodes it prints
the requests of the whole commit by kind, how many that is for each node, the requests to the key
that is asked for most, and the seconds from the last node's last byte to the manifest and until
every node knows of it.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass, field

from ckptsyncd.stores.faulty import Fault, FaultyStore
from tests.simulation.crew import CrewWorld
from tests.simulation.crew_plan import Crew, crew_policy
from tests.simulation.plan import S3, Plan
from tests.simulation.world import Machine

LATENCY_SECONDS = 0.05
SAVES_APART_SECONDS = 120.0


@dataclass(slots=True, eq=False)
class CountingWorld(CrewWorld):
    """A calm world that counts what is asked of the store."""

    calls: Counter[str] = field(default_factory=Counter)
    keys: Counter[str] = field(default_factory=Counter)

    def latency(self) -> float:
        """Return the same for every request."""
        return LATENCY_SECONDS

    def store_of(self, machine: Machine) -> FaultyStore:
        """Return a store that counts."""
        del machine

        def count(verb: str, key: str) -> Fault | None:
            self.calls[verb] += 1
            self.keys[key] += 1
            return None

        return FaultyStore(self.calm_store, count)


@dataclass(frozen=True, slots=True)
class Cost:
    """What one commit cost; times are seconds after the last node's save."""

    nodes: int
    calls: dict[str, int]
    hottest: tuple[str, int]
    manifest_after: float
    known_after: float

    @property
    def each(self) -> float:
        """How many requests that is for each node."""
        return sum(self.calls.values()) / self.nodes


def cost_of(nodes: int, skew_seconds: float) -> Cost:
    """Return what the second save of so many nodes costs, written within ``skew_seconds``."""
    crew = Crew(1, nodes, 2, S3, latency=LATENCY_SECONDS)
    plan = Plan(1, 1000.0, crew_policy(crew), S3, (), latency=LATENCY_SECONDS, overflows=1)
    world = CountingWorld(plan, crew=crew)
    world.is_calm = True
    for node in range(nodes):
        world.start(world.join(node))
    _save(world, 1, 5.0, skew_seconds)
    world.run(world.now + SAVES_APART_SECONDS)
    world.calls.clear()
    world.keys.clear()
    begun = world.now
    _save(world, 2, 1.0, skew_seconds)
    last = begun + 1.0 + skew_seconds
    committed = known = None
    while known is None and world.now < begun + 300.0:
        world.run(world.now + 0.05)
        manifests = [m for m in world.oracle.manifests.values() if m.checkpoint.endswith("-20")]
        if manifests and committed is None:
            committed = world.now
        brains = [m.daemon.brain for m in world.living() if m.daemon is not None]
        if all("run/checkpoint-20" in brain.editions.safe for brain in brains):
            known = world.now
    assert committed is not None
    assert known is not None
    world.run(world.now + 60.0)  # the looks after latest
    hottest = max(world.keys.items(), key=lambda item: item[1])
    return Cost(nodes, dict(world.calls), hottest, committed - last, known - last)


def _save(world: CrewWorld, number: int, after: float, skew_seconds: float) -> None:
    count = world.crew.nodes
    for node in range(count):
        at = world.now + after + skew_seconds * (node + 1) / count

        def save(node: int = node) -> None:
            world.save(number, node)

        world.at(at, save)


def main(arguments: list[str]) -> int:
    """Print the cost for each number of nodes, at once and spread over ten seconds."""
    for skew in (0.0, 10.0):
        for text in arguments:
            cost = cost_of(int(text), skew)
            calls = ", ".join(f"{count} {verb}" for verb, count in sorted(cost.calls.items()))
            key, most = cost.hottest
            sys.stdout.write(
                f"{cost.nodes} nodes within {skew:.0f} s: {cost.each:.1f} requests each ({calls}); "
                f"{most} to {key}; manifest after {cost.manifest_after:.2f} s, "
                f"known to all after {cost.known_after:.1f} s\n"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
