"""Pretended nights of several machines with one checkpoint: never torn, and somebody commits."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from ckptsyncd.core.records import names
from ckptsyncd.core.view import snapshot
from tests.simulation.crew import CrewWorld, live_through
from tests.simulation.crew_plan import Crew, crew_policy
from tests.simulation.hunt_crew import bad_nights
from tests.simulation.plan import S3, Plan

#: Every one of these begins with other machines, weather and accidents.
NIGHTS = 40
CHUNK = 10


@pytest.mark.parametrize("first", range(1, 1 + NIGHTS, CHUNK))
def test_no_night_tears_a_checkpoint_or_leaves_one_undone(first: int) -> None:
    """Kills, partitions, zombies, lost ledgers: one manifest for a save, whole, and somebody's."""
    bad = bad_nights(range(first, first + CHUNK))
    assert not bad, bad[0]


@pytest.mark.parametrize("nodes", [2, 8, 32, 64])
def test_many_nodes_commit_once(nodes: int) -> None:
    """Up to 64 machines finish a save of theirs, and each manifest names all of them."""
    world = live_through(Crew(1, nodes, 1, S3))
    saves = [manifest.checkpoint for manifest in world.oracle.manifests.values()]
    assert sorted(saves) == ["run/checkpoint-10", "run/checkpoint-20"]


@pytest.mark.parametrize("nodes", [2, 8, 20])
def test_nodes_that_nobody_counted_commit_once(nodes: int) -> None:
    """An index that names the shards takes the place of the count, also through bad weather."""
    world = live_through(Crew(1, nodes, 1, S3, is_uncounted=True))
    saves = [manifest.checkpoint for manifest in world.oracle.manifests.values()]
    assert sorted(saves) == ["run/checkpoint-10", "run/checkpoint-20"]
    storm = Crew(
        2, nodes, 2, S3, is_uncounted=True, fault=0.1, late=0.05, kills=4, cuts=2, losses=1
    )
    live_through(storm)


def test_without_its_index_or_a_shard_nothing_is_committed() -> None:
    """Whichever machine goes for good, of those that nobody counted, the save is not committed."""
    for seed in range(1, 9):
        live_through(Crew(seed, 3, 1, S3, is_uncounted=True, dies=True))


def test_what_nothing_names_and_comes_late_is_not_called_safe() -> None:
    """A small file of one more node that nobody counted waits after the commit, and says why."""
    crew = Crew(3, 2, 1, S3, is_uncounted=True)
    plan = Plan(3, 500.0, crew_policy(crew), S3, (), overflows=1)
    world = CrewWorld(plan, crew=crew)
    world.is_calm = True
    for node in range(3):
        world.start(world.join(node))
    assert saved_by_all(world, 1) == [10]
    late = world.of_node(2)
    for folder in ("run", "run/checkpoint-10"):
        late.disk.mkdir(folder)
    late.disk.place("run/checkpoint-10/notes.json", b"{}", late.disk.now_ns())
    world.run(world.now + 90.0)
    assert late.daemon is not None
    assert not late.daemon.brain.editions.safe
    (view,) = snapshot(late.daemon.brain, world.clock.now()).checkpoints
    told = "incomplete: no index tells which files there are beside those of node 2"
    assert view.reason.startswith(told)


def test_a_machine_that_is_gone_is_named() -> None:
    """Without one of the nodes nothing is committed, and the others say which one is missing."""
    live_through(Crew(7, 5, 1, S3, dies=True))


@pytest.mark.parametrize("nodes", [3, 20])
def test_what_the_last_one_left_is_committed_by_another(nodes: int) -> None:
    """A machine that vanishes for good between its part and the manifest does not keep it away."""
    crew = Crew(3, nodes, 1, S3)
    plan = Plan(3, 500.0, crew_policy(crew), S3, (), latency=0.1, overflows=1)
    world = CrewWorld(plan, crew=crew)
    world.is_calm = True
    for node in range(nodes):
        world.start(world.join(node))
        world.at(world.now + 5.0 + 0.01 * node, partial(world.save, 1, node))
    prefix = names.parts_prefix("run/checkpoint-10", 1)
    there: list[int] = []
    while len(there) < nodes:
        world.run(world.now + 0.005)
        parts = (names.parse_part_key(key, prefix) for key in world.calm_store.objects())
        there += [node for node in parts if node is not None and node not in there]
    assert not world.oracle.manifests
    world.bury(world.of_node(there[-1]))
    world.run(world.now + 100.0)
    assert [manifest.checkpoint for manifest in world.oracle.manifests.values()] == [
        "run/checkpoint-10"
    ]


def test_an_old_machine_that_never_committed_does_not_fence_its_replacement() -> None:
    """Its first checkpoint comes after the replacement's: it is fenced, though it has no epoch."""
    crew = Crew(1, 1, 1, S3)
    plan = Plan(1, 500.0, crew_policy(crew), S3, (), overflows=1)
    world = CrewWorld(plan, crew=crew)
    world.is_calm = True
    old = world.join(0)
    world.start(old)
    world.run(world.now + 5.0)
    new = world.join(0)
    world.start(new)
    world.run(world.now + 5.0)
    for machine, number in ((new, 1), (old, 2)):
        for folder in ("run", f"run/checkpoint-{number}0"):
            machine.disk.mkdir(folder)
        data = f"{number}|0|".encode()
        path = f"run/checkpoint-{number}0/shard-0.pt"
        machine.disk.place(path, data, machine.disk.now_ns())
        world.run(world.now + 30.0)
    assert old.daemon is not None
    assert new.daemon is not None
    assert old.daemon.brain.runs.fenced
    assert not new.daemon.brain.runs.fenced
    assert world.oracle.latest["run"].checkpoint == "run/checkpoint-10"


def test_names_that_are_written_again_and_again_are_never_mixed() -> None:
    """Under one name for all saves, what one node missed is not made up by a later save's."""
    for seed in range(1, 6):
        crew = Crew(seed, 3, 3, S3, is_rewritten=True, kills=8, cuts=3, losses=2)
        live_through(crew)


def saved_by_all(world: CrewWorld, number: int) -> list[int | None]:
    """Let every node save, and return each step that latest named until a minute later."""
    for node in range(world.crew.nodes):
        world.at(world.now + 1.0 + 0.1 * node, partial(world.save, number, node))
    named: list[int | None] = []
    for _ in range(120):
        world.run(world.now + 0.5)
        latest = world.oracle.latest.get("run")
        if latest is not None and latest.step not in named[-1:]:
            named.append(latest.step)
    return named


@pytest.mark.parametrize("nodes", [2, 5, 20])
@pytest.mark.parametrize("allowed", [False, True])
def test_latest_goes_back_in_step_only_where_it_is_allowed(nodes: int, *, allowed: bool) -> None:
    """Machines that went back are all committed; latest follows them back, once, only if told."""
    crew = Crew(11, nodes, 1, S3)
    plan = Plan(11, 900.0, replace(crew_policy(crew), allow_step_back=allowed), S3, (), overflows=1)
    world = CrewWorld(plan, crew=crew)
    world.is_calm = True
    for node in range(nodes):
        world.start(world.join(node))
    assert saved_by_all(world, 5) == [50]
    assert saved_by_all(world, 1) == ([50, 10] if allowed else [50])
    # Whoever lost its ledger takes the lineage from the store.
    victim = world.of_node(nodes - 1)
    assert victim.daemon is not None
    victim.daemon.die()
    victim.ledger.lose()
    world.start(victim)
    assert saved_by_all(world, 2) == ([10, 20] if allowed else [50])
    assert saved_by_all(world, 6) == ([20, 60] if allowed else [50, 60])
    found = {m.step: m.lineage for m in world.oracle.manifests.values()}
    back = int(allowed)
    assert found == {50: 0, 10: back, 20: back, 60: back}
    world.oracle.all_restorable()
    for machine in world.machines:
        assert machine.daemon is not None
        assert bool(machine.daemon.brain.runs.warnings) is False
