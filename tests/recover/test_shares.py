"""What falls to one machine of a checkpoint that several wrote."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ckptsyncd.core.records import names
from ckptsyncd.core.records.manifest import Manifest
from ckptsyncd.errors import UsageError
from ckptsyncd.recover.plan import Folds, plan_of
from ckptsyncd.recover.request import RestoreRequest
from tests.core.parts import manifest, stored

NAME = "run/step-5"


def written_by(count: int) -> Manifest:
    """Return a checkpoint of so many nodes: a shard of each, and a file that all had."""
    shards = [
        replace(stored(f"{NAME}/shard-{node}"), node=node, key=f"{NAME}/{node}")
        for node in range(count)
    ]
    config = replace(stored(f"{NAME}/config"), also=tuple(range(1, count)))
    return manifest(*shards, config, checkpoint=NAME, nodes=tuple(range(count)))


def share(count: int, node: int, nodes: int | None) -> list[str]:
    """Return the names that fall to a node."""
    plan = plan_of(written_by(count), RestoreRequest(node=node, nodes=nodes), Folds())
    return sorted(Path(file.path).name for file in plan.files)


def test_a_node_gets_what_it_wrote_and_what_all_had() -> None:
    """A replicated file is stored once and falls to every node."""
    assert share(4, 2, None) == share(4, 2, 4) == ["config", "shard-2"]


def test_fewer_machines_get_several_shares_each() -> None:
    """Shares stay whole and in their order, and each falls to exactly one machine."""
    found = [share(8, node, 3) for node in range(3)]
    shards = [name for names_ in found for name in names_ if name != "config"]
    assert shards == [f"shard-{node}" for node in range(8)]
    assert all("config" in names_ for names_ in found)


def test_more_machines_than_wrote_it_are_told() -> None:
    """Not each has a share: everything is to be restored."""
    with pytest.raises(UsageError, match="not each has a share"):
        plan_of(
            replace(written_by(2), files=written_by(2).files[:1]),
            RestoreRequest(node=3, nodes=4),
            Folds(),
        )


def test_parts_lie_below_what_tells_their_node() -> None:
    """The key of a part tells its node, and nothing else is taken for one."""
    prefix = names.parts_prefix(NAME, 3)
    assert names.parse_part_key(names.part_key(NAME, 3, 17), prefix) == 17
    for key in (prefix, f"{prefix}x.json", f"{prefix}1", f"{prefix}1/2.json", "1.json"):
        assert names.parse_part_key(key, prefix) is None
