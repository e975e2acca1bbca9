"""Rows in little room: what was packed comes back, and what is damaged or too large is refused."""

from __future__ import annotations

import json

import pytest

from ckptsyncd.core.facts import FileFact
from ckptsyncd.core.orders import Remember
from ckptsyncd.core.records import memory
from ckptsyncd.core.records.memory import recall
from ckptsyncd.core.records.packing import MANY, opened, packed, squeezed, unpacked
from ckptsyncd.errors import Never
from tests.core.parts import manifest, settled, stored

ROOM = 1024 * 1024


def facts(count: int) -> tuple[FileFact, ...]:
    """Return so many files of one checkpoint."""
    return tuple(
        FileFact(f"run/{number:06d}.\udcff", "file", 1, number, number, 5)
        for number in range(count)
    )


@pytest.mark.parametrize("count", [0, 1, MANY - 1, MANY, MANY + 1, 2 * MANY])
def test_what_was_packed_comes_back(count: int) -> None:
    """All rows come back in their order, also through a JSON document."""
    rows = [{"path": f"run/{number}"} for number in range(count)]
    text = json.dumps(packed(rows))
    assert list(unpacked(json.loads(text), ROOM)) == rows


def test_few_are_left_to_be_read() -> None:
    """A small checkpoint's rows can be read by people."""
    assert packed([{"path": "run/a"}]) == [{"path": "run/a"}]


@pytest.mark.parametrize(
    "text",
    ["", "{}", "zz", squeezed([b"[1]"])[:-2], squeezed([b"[1]"]).replace("78", "79", 1)],
    ids=["nothing", "json", "no digits", "cut off", "no zlib"],
)
def test_what_is_no_packed_text_is_refused(text: str) -> None:
    """Damage is Never, nothing else."""
    with pytest.raises(Never):
        opened(text, ROOM)


def test_a_bomb_is_refused() -> None:
    """What would become too large is not unpacked to its end."""
    assert opened(squeezed([bytes(1000)]), 1000) == bytes(1000)
    with pytest.raises(Never):
        opened(squeezed([bytes(1001)]), 1000)


def row_of(order: Remember) -> list[tuple[str, str]]:
    """Return a row as the ledger gives it back."""
    return [(order.key, order.value)]


def test_a_large_checkpoint_is_recalled_from_small_rows() -> None:
    """Listing and manifest of many files survive a restart, in a tenth of their text."""
    seen = settled(*facts(3 * MANY))
    way = memory.edition_row("save", 4, seen)
    whole = manifest(*(stored(fact.path) for fact in seen.listing.files))
    safe = memory.safe_row(whole, seen.listing)
    found = recall({"edition": row_of(way), "safe": row_of(safe)})
    assert (found.editions["save"].settled.listing, found.damaged) == (seen.listing, 0)
    assert found.safe[whole.checkpoint] == memory.SafeRow(whole, seen.listing)
    small = settled(*facts(MANY - 1))
    assert len(way.value) < len(memory.edition_row("save", 4, small).value)


def test_a_damaged_part_is_counted() -> None:
    """A packed row that lost a part is damaged as a whole."""
    way = memory.edition_row("save", 4, settled(*facts(MANY)))
    value = json.loads(way.value)
    value["listing"][0] = value["listing"][0][:-8]
    found = recall({"edition": [("save", json.dumps(value))]})
    assert (found.editions, found.damaged) == ({}, 1)
