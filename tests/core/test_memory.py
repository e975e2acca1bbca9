"""The ledger's rows: what is remembered is recalled, and damaged rows harm nothing."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from ckptsyncd.core.facts import FileFact, Listing
from ckptsyncd.core.orders import Forget, ForgetBelow, LedgerOrder, Remember
from ckptsyncd.core.records import memory
from ckptsyncd.core.records.memory import Recalled, recall
from tests.core.parts import begun, fact, manifest, receipt, settled, stored
from tests.simulation.ledger import PretendLedger

LINK = FileFact("run/l", "symlink", 1, 8, 3, 5, target="a/b")
SEEN = settled(fact(size=40), LINK, stale=("run/a.ckpt",))
SAVE = SEEN.listing.save_id()


def recalled(orders: Iterable[LedgerOrder]) -> Recalled:
    """Return what a daemon knows after a restart."""
    ledger = PretendLedger()
    ledger.apply(list(orders))
    return ledger.recalled()


UPLOAD = (
    memory.edition_row(SAVE, 4, SEEN),
    memory.intent_row(SAVE, "run/a.ckpt", "key", "me.1"),
    memory.upload_row(SAVE, "run/a.ckpt", begun()),
    memory.piece_row(SAVE, "run/a.ckpt", "me.1", receipt(1)),
)


def test_an_edition_on_its_way_is_recalled() -> None:
    """Number, listing, begun uploads and stored pieces survive a restart."""
    row = recalled(UPLOAD).editions[SAVE]
    assert (row.number, row.settled.listing, row.settled.stale) == (4, SEEN.listing, SEEN.stale)
    assert row.settled.found
    assert row.intents == {"run/a.ckpt": ("key", "me.1")}
    assert row.uploads == {"run/a.ckpt": begun()}
    assert row.pieces == {"run/a.ckpt": {1: ("me.1", receipt(1))}}


def test_a_stored_file_replaces_its_upload() -> None:
    """Once a file is in the store, its pieces are forgotten."""
    more = (memory.forget_upload(SAVE, "run/a.ckpt"), memory.object_row(SAVE, stored()))
    row = recalled([*UPLOAD, *more]).editions[SAVE]
    assert (row.uploads, row.pieces, row.intents) == ({}, {}, {})
    assert row.objects == {"run/a.ckpt": stored()}


def test_a_file_is_forgotten_without_its_neighbours() -> None:
    """A path that starts with another one's name keeps its rows."""
    near = memory.upload_row(SAVE, "run/a.ckpt2", begun("other"))
    left = recalled([*UPLOAD, near, memory.forget_upload(SAVE, "run/a.ckpt")])
    assert left.editions[SAVE].uploads == {"run/a.ckpt2": begun("other")}


def test_a_forgotten_edition_leaves_nothing() -> None:
    """Every row of an edition goes when the edition goes."""
    rows: list[LedgerOrder] = [*UPLOAD, memory.object_row(SAVE, stored())]
    rows.append(memory.forget_edition(SAVE))
    assert recalled(rows) == Recalled()


def test_a_safe_edition_is_recalled_until_it_is_forgotten() -> None:
    """The manifest and the listing on this disk survive a restart."""
    row = memory.safe_row(manifest(), SEEN.listing)
    assert recalled([row]).safe["run/a.ckpt"].manifest == manifest()
    assert recalled([row]).safe["run/a.ckpt"].listing == SEEN.listing
    assert recalled([row, memory.forget_safe("run/a.ckpt")]).safe == {}


def test_an_epoch_and_garbage_are_recalled() -> None:
    """What is about to be taken and what is to be dropped survive a restart."""
    rows = [memory.epoch_row("run", 3, ["old", "me"]), memory.garbage_row(begun())]
    assert recalled(rows).epochs == {"run": (3, ("old", "me"))}
    assert recalled(rows).garbage == [begun()]
    assert recalled([*rows, memory.forget_garbage("upload-1")]).garbage == []


@pytest.mark.parametrize(
    "row",
    [
        UPLOAD[0],
        UPLOAD[1],
        UPLOAD[2],
        memory.epoch_row("run", 3, ["me"]),
    ],
    ids=lambda row: row.table,
)
def test_what_must_not_be_forgotten_survives_a_power_cut(row: Remember) -> None:
    """Numbers, intents, begun uploads and epochs are on the disk before they are used."""
    assert row.durable


@pytest.mark.parametrize("table", memory.TABLES[1:])
@pytest.mark.parametrize("text", ["", "7", "{}", '{"path":7}', '{"kind":"fifo"}', "\ud800"])
def test_damaged_rows_are_counted_and_harm_nothing(table: str, text: str) -> None:
    """A damaged row costs what it told, and the others are believed."""
    good = UPLOAD[0]
    seen = recall({"edition": [(good.key, good.value)], table: [(f"{SAVE}/x//", text)]})
    if table != "edition":
        assert seen.editions[SAVE].number == 4
    assert seen.damaged == 1


def test_files_of_an_unknown_edition_are_damaged() -> None:
    """A row whose edition is not known is of no use."""
    assert recalled(UPLOAD[1:]) == Recalled(damaged=3)


def test_names_that_are_no_text_are_remembered() -> None:
    """A path with bytes that are no UTF-8 comes back as it was."""
    odd = settled(fact("run/\udcff.ckpt"), checkpoint="run/\udcff.ckpt")
    save = odd.listing.save_id()
    rows = [memory.edition_row(save, 1, odd), memory.intent_row(save, "run/\udcff.ckpt", "k", "n")]
    row = recalled(rows).editions[save]
    assert row.settled.listing == odd.listing
    assert row.intents == {"run/\udcff.ckpt": ("k", "n")}


def test_orders_to_forget_are_plain_values() -> None:
    """Forgetting is an order as any other."""
    assert memory.forget_safe("run/a") == Forget("safe", "run%2Fa")
    assert isinstance(memory.forget_edition(SAVE), ForgetBelow)
    assert Listing(()).save_id() != SAVE
