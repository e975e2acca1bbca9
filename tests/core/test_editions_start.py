"""What a daemon believes of its ledger when it starts: what the store and the disk say too."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ckptsyncd.core.orders import Remember
from ckptsyncd.core.records import memory, names
from ckptsyncd.core.records.manifest import Manifest, encode
from ckptsyncd.core.rules.policy import Policy
from ckptsyncd.core.sending.editions import Editions
from ckptsyncd.core.turn import Notebook
from tests.core.parts import NOW, begun, fact, manifest, settled, stored
from tests.core.settling import (
    SAVE,
    A,
    editions,
    known,
    list_and_confirm,
    safe_row,
    take,
    taken,
)

AGAIN = settled(fact(inode=99))


@pytest.mark.parametrize("committed", [(), (2,), (3,)])
def test_the_ledger_is_believed_only_with_the_store(committed: tuple[int, ...]) -> None:
    """Safe is what the store has a manifest of, whatever the ledger says."""
    all_of_them = Editions(Policy(), "me", safe_row(3))
    notes = Notebook()
    keys = tuple(names.manifest_key("run/a.ckpt", number) for number in committed)
    list_and_confirm(all_of_them, keys, notes)
    assert ("run/a.ckpt" in all_of_them.safe) == (3 in committed)
    assert (notes.ledger == []) == (3 in committed)


NAME = "run/a.ckpt"
STORED = manifest(edition=3, save_id=SAVE)
RECOMMITTED = replace(STORED, committed_at=9.0, files=(stored(key="run/a.ckpt@3.salt"),))
OTHERS = replace(STORED, files=(stored(crc64nvme=7),))

READ: list[tuple[str, bytes | None, Manifest | None]] = [
    ("as the ledger has it", encode(STORED), STORED),
    ("nothing", None, None),
    ("rubbish", b"\0", None),
    ("the same content again", encode(RECOMMITTED), RECOMMITTED),
    ("another content", encode(OTHERS), None),
]


@pytest.mark.parametrize(("what", "data", "safe"), READ, ids=[row[0] for row in READ])
def test_a_number_in_the_store_is_not_yet_our_commit(
    what: str, data: bytes | None, safe: Manifest | None
) -> None:
    """Whoever emptied the bucket and used the number again did not make our content safe."""
    del what
    all_of_them = Editions(Policy(), "me", safe_row(3))
    edition = take(all_of_them, A)
    all_of_them.list_catalog((names.manifest_key(NAME, 3),), Notebook())
    assert (all_of_them.safe, all_of_them.catalog.is_known) == ({}, False)
    notes = Notebook()
    all_of_them.confirm_safe(NAME, data, notes)
    row = all_of_them.safe.get(NAME)
    assert edition is not None
    assert all_of_them.catalog.is_known
    assert (row and row.manifest, edition.state) == (safe, "safe" if safe else "settled")
    assert (memory.forget_safe(NAME) in notes.ledger) == (safe is None)


def test_a_former_daemons_pins_are_gone_on_with_or_let_go() -> None:
    """A checkpoint that was pinned and removed since is finished; other pins are dropped."""
    all_of_them = Editions(Policy(), "me", known(2))
    all_of_them.revive((SAVE, "unknown"), NOW, Notebook())
    assert [edition.save_id for edition in all_of_them.open.values()] == [SAVE]
    assert [errand.save_id for errand in all_of_them.unpins] == ["unknown"]


def test_a_former_daemons_number_is_gone_on_with() -> None:
    """It may have claimed it, so the claim is read first."""
    one = taken(editions(known(4)), A)
    assert (one.number, one.claimed) == (4, "doubt")


def test_other_files_of_the_same_sizes_and_times_are_begun_afresh() -> None:
    """Nothing that was stored of the old files is taken for the new ones."""
    before = known(4, AGAIN)
    before.editions[SAVE].uploads["run/a.ckpt"] = begun()
    all_of_them = editions(before)
    one = take(all_of_them, A)
    assert one is not None
    notes = Notebook()
    all_of_them.number(one, notes)
    assert (one.number, one.claimed) == (1, "no")
    assert notes.ledger[0] == memory.forget_edition(SAVE)
    assert isinstance(notes.ledger[-1], Remember)
    assert list(all_of_them.leftovers.garbage.values()) == [begun()]


def test_a_claim_that_is_gone_makes_the_ledger_doubtful() -> None:
    """The claim comes before every object: without it nothing is believed to be stored."""
    before = known(4)
    before.editions[SAVE].objects["run/a.ckpt"] = manifest().files[0]
    all_of_them = editions(before)
    one = taken(all_of_them, A)
    notes = Notebook()
    all_of_them.unclaimed(one, notes)
    assert (before.editions[SAVE].objects, notes.ledger) == ({}, [memory.forget_objects(SAVE)])


@pytest.mark.parametrize("awaited", [False, True])
def test_what_is_not_on_the_disk_any_more_is_dropped(*, awaited: bool) -> None:
    """What a former daemon had begun is kept only while its checkpoint may still settle."""
    before = known(4)
    before.editions[SAVE].uploads["run/a.ckpt"] = begun()
    before.editions[SAVE].intents["run/b.ckpt"] = ("key", "me.2")
    all_of_them = editions(before)
    all_of_them.drop_recalled({"run/a.ckpt"} if awaited else set(), Notebook())
    assert (SAVE in before.editions) == awaited
    assert bool(all_of_them.leftovers.garbage) != awaited
    assert bool(all_of_them.leftovers.strays) != awaited
