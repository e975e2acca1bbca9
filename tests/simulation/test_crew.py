"""Pretended nights of several machines with one checkpoint: never torn, and somebody commits."""

from __future__ import annotations

import pytest

from tests.simulation.crew import Crew, live_through
from tests.simulation.hunt_crew import bad_nights
from tests.simulation.plan import S3

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


def test_a_machine_that_is_gone_is_named() -> None:
    """Without one of the nodes nothing is committed, and the others say which one is missing."""
    live_through(Crew(7, 5, 1, S3, dies=True))


def test_names_that_are_written_again_and_again_are_never_mixed() -> None:
    """Under one name for all saves, what one node missed is not made up by a later save's."""
    for seed in range(1, 6):
        crew = Crew(seed, 3, 3, S3, is_rewritten=True, kills=8, cuts=3, losses=2)
        live_through(crew)
