"""Which machine this is among how many, where a user says that each writes a share."""

from __future__ import annotations

from pathlib import Path

import pytest

from ckptsyncd.errors import UsageError
from ckptsyncd.settings import load

SLURM = {"SLURM_NODEID": "2", "SLURM_NNODES": "4"}


@pytest.fixture
def flags(tmp_path: Path) -> dict[str, str]:
    """Name a watch root and a destination that may be used."""
    root = tmp_path / "root"
    root.mkdir()
    return {"dir": str(root), "url": f"file://{tmp_path}/durable"}


@pytest.mark.parametrize(
    ("environ", "node", "nodes"),
    [
        (SLURM, 2, 4),
        ({"PET_NODE_RANK": "1", "PET_NNODES": "2"}, 1, 2),
        ({"GROUP_RANK": "3", "WORLD_SIZE": "32", "LOCAL_WORLD_SIZE": "8"}, 3, 4),
        ({"JOB_COMPLETION_INDEX": "5", "PET_NNODES": "6"}, 5, 6),
        ({**SLURM, "CKPTSYNCD_NODE": "7", "CKPTSYNCD_NODES": "8"}, 7, 8),
        ({**SLURM, "CKPTSYNCD_NODES": "8"}, 2, 8),
    ],
)
def test_a_launcher_tells_node_and_nodes(
    flags: dict[str, str], environ: dict[str, str], node: int, nodes: int
) -> None:
    """With ``sharded``, Slurm, torchrun and Kubernetes say what nobody else said."""
    settings = load({**flags, "sharded": True}, environ).settings
    assert (settings.node, settings.nodes) == (node, nodes)


def test_a_launcher_is_not_listened_to_unasked(flags: dict[str, str]) -> None:
    """Of most trainings on several machines one writes all: nobody waits for the others."""
    settings = load(flags, SLURM).settings
    assert (settings.node, settings.nodes) == (0, 1)


@pytest.mark.parametrize(
    ("environ", "word"),
    [
        ({}, "which machine this is"),
        ({"SLURM_NNODES": "4"}, "which machine this is"),
    ],
)
def test_what_nothing_tells_is_asked_for(
    flags: dict[str, str], environ: dict[str, str], word: str
) -> None:
    """Where the environment does not tell this machine's number the error says what to set."""
    with pytest.raises(UsageError, match=word):
        load({**flags, "sharded": True}, environ)


@pytest.mark.parametrize(
    "environ",
    [
        {"SLURM_NODEID": "1"},
        {"SLURM_NODEID": "1", "PET_NNODES": "1:4"},
        {"GROUP_RANK": "1", "WORLD_SIZE": "7", "LOCAL_WORLD_SIZE": "2"},
    ],
)
def test_nobody_has_to_count_the_machines(flags: dict[str, str], environ: dict[str, str]) -> None:
    """Where nothing tells how many there are, or a range does, that is left to the files."""
    settings = load({**flags, "sharded": True}, environ).settings
    assert (settings.node, settings.nodes) == (1, 0)


@pytest.mark.parametrize("node", ["0", "3"])
def test_who_has_a_number_has_others_beside_it(flags: dict[str, str], node: str) -> None:
    """A number of its own without a count means that the machines were not counted."""
    settings = load({**flags, "node": node}, {}).settings
    assert (settings.node, settings.nodes) == (int(node), 0)


@pytest.mark.parametrize(
    ("said", "word"),
    [
        ({"nodes": "0"}, "which of the nodes"),
        ({"node": "4", "nodes": "4"}, "there are 4 nodes"),
        ({"node": "1", "shared_root": True}, "no shares"),
    ],
)
def test_what_contradicts_itself_is_refused(
    flags: dict[str, str], said: dict[str, str | bool], word: str
) -> None:
    """A count without a number, a number too high, and shares of a root that all machines see."""
    with pytest.raises(UsageError, match=word):
        load({**flags, **said}, {})


def test_two_machines_are_not_both_the_first(flags: dict[str, str]) -> None:
    """A number of nodes without this machine's own is refused: all would be node 0."""
    with pytest.raises(UsageError, match="which of 4 nodes"):
        load({**flags, "nodes": "4"}, {})
