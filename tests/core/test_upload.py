"""What an edition still needs, read off its progress: one row of the table for every level."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ckptsyncd.core.facts import FileFact, IfAbsent, Limits
from ckptsyncd.core.orders import (
    Begin,
    Errand,
    Finish,
    GetSmall,
    HandOrder,
    ListUploads,
    LookAgain,
    Pin,
    PutPiece,
    PutSmall,
    PutWhole,
    ScannerOrder,
    Stat,
    Sum,
)
from ckptsyncd.core.records.documents import Claim
from ckptsyncd.core.records.manifest import decode
from ckptsyncd.core.sending.edition import Edition, FileProgress
from ckptsyncd.core.sending.progress import begin
from ckptsyncd.core.sending.scene import Scene, salt_of
from ckptsyncd.core.sending.upload import missing
from tests.core.parts import LIMITS, NOW, begun, edition, fact, manifest, receipt, scene, stored

SMALL, LARGE = fact("run/a.ckpt", 10), fact("run/a.ckpt", 40)


def asked(one: Edition, there: Scene | None = None) -> list[HandOrder | ScannerOrder]:
    """Return everything that could be ordered now."""
    return list(missing(one, there or scene()))


def on_its_way(file: FileFact, **other: object) -> Edition:
    """Return a claimed edition whose one file has this progress."""
    progress = FileProgress(file, file.path, nonce="me.1")
    for name, value in other.items():
        setattr(progress, name, value)
    return edition(file, pinned=True, claimed="yes", files={file.path: progress})


def sent(file: FileFact, *done: int) -> Edition:
    """Return an edition whose upload is begun and has these pieces in the store."""
    one = on_its_way(file)
    progress = one.files[file.path]
    begin(progress, begun(size=file.size))
    for index in done:
        progress.receipts[index] = receipt(index, progress.todo.pop(index).length)
    return one


LEVELS: list[tuple[str, Edition, list[type]]] = [
    ("not pinned", edition(), [Pin]),
    ("a rival to be read", edition(pinned=True, rivals=(2, 1)), [GetSmall]),
    ("a rival of the same sizes", edition(pinned=True, rivals=(1,), rival=manifest()), [Sum]),
    ("not claimed", edition(pinned=True), [PutSmall]),
    ("perhaps claimed", edition(pinned=True, claimed="doubt"), [GetSmall]),
    ("a small file", on_its_way(SMALL), [PutWhole]),
    ("a small file, perhaps stored", on_its_way(SMALL, doubt=True), [Stat]),
    ("a large file", on_its_way(LARGE), [Begin]),
    ("a large file, perhaps begun", on_its_way(LARGE, has_stray=True), [ListUploads]),
    ("begun", sent(LARGE), [PutPiece, PutPiece, PutPiece]),
    ("one piece stored", sent(LARGE, 1), [PutPiece, PutPiece]),
    ("all pieces stored", sent(LARGE, 0, 1, 2), [Finish]),
    ("all files stored", edition(pinned=True, claimed="yes"), [LookAgain]),
    (
        "looked at again",
        edition(pinned=True, claimed="yes", looked=True, stored={"run/a.ckpt": stored()}),
        [PutSmall],
    ),
    (
        "perhaps sealed",
        edition(pinned=True, claimed="yes", looked=True, sealed="doubt"),
        [GetSmall],
    ),
    ("sealed", edition(pinned=True, claimed="yes", looked=True, sealed="yes"), []),
]


@pytest.mark.parametrize(("level", "one", "kinds"), LEVELS, ids=[row[0] for row in LEVELS])
def test_each_level_asks_for_its_own_orders(level: str, one: Edition, kinds: list[type]) -> None:
    """Nothing is asked for before what must come before it, and nothing twice."""
    del level
    assert [type(order) for order in asked(one)] == kinds


def test_nothing_is_claimed_before_the_epoch_is_taken() -> None:
    """The claim carries the run epoch, so it waits for one."""
    assert asked(edition(pinned=True), scene(epoch=None)) == []


def test_the_claim_names_who_and_what() -> None:
    """A claim is created only where there is none, and says whose number this is."""
    order = asked(edition(pinned=True))[0]
    assert isinstance(order, PutSmall)
    claim = Claim.decode(order.data)
    assert order.condition == IfAbsent()
    assert (claim.edition, claim.nonce, claim.epoch) == (1, "me", 3)
    assert claim.save_id == edition().save_id


def test_the_manifest_is_created_only_where_there_is_none() -> None:
    """The commit holds every file in the order of the listing, and never replaces another."""
    one = edition(pinned=True, claimed="yes", looked=True, stored={"run/a.ckpt": stored()})
    order = asked(one)[0]
    assert isinstance(order, PutSmall)
    assert order.condition == IfAbsent()
    seen = decode(order.data)
    assert (seen.files, seen.step, seen.committed_at) == ((stored(),), 100, NOW.wall)
    assert order.manifest == seen


def test_a_save_is_never_older_than_the_safe_one_before_it() -> None:
    """A wall clock that was set back does not make a newer save rank lower."""
    one = edition(pinned=True, claimed="yes", looked=True, stored={"run/a.ckpt": stored()})
    order = asked(one, scene(least_saved_at=77.0))[0]
    assert isinstance(order, PutSmall)
    assert decode(order.data).saved_at == 77.0


def test_an_order_that_is_out_is_not_made_again() -> None:
    """A manifest of a hundred thousand files is not encoded while its put is under way."""
    taken: list[Errand] = []

    def is_free(errand: Errand) -> bool:
        taken.append(errand)
        return False

    sealing = edition(pinned=True, claimed="yes", looked=True)
    assert asked(sealing, scene(is_free=is_free)) == []
    assert asked(edition(pinned=True), scene(is_free=is_free)) == []
    assert [errand.purpose for errand in taken] == ["seal", "claim"]


def test_pieces_go_one_by_one_where_the_store_wants_them_in_order() -> None:
    """A store with one ordered stream gets one piece at a time, the first one first."""
    there = scene(limits=replace(LIMITS, pieces_in_parallel=False))
    orders = asked(sent(LARGE, 0), there)
    assert [order.errand.index for order in orders] == [1]


def test_a_stray_is_not_looked_for_where_nothing_can_be_dropped() -> None:
    """Without a way to drop it, a stray upload only expires."""
    there = scene(limits=replace(LIMITS, can_abandon=False))
    orders = asked(on_its_way(LARGE, has_stray=True), there)
    assert [type(order) for order in orders] == [Begin]


@pytest.mark.parametrize(
    ("limits", "node", "salts", "salt"),
    [
        (LIMITS, 0, 0, ""),
        (LIMITS, 0, 2, "3.2"),
        (replace(LIMITS, create_only_finish=False), 0, 0, "3"),
        (replace(LIMITS, create_only_finish=False), 2, 1, "2.3.1"),
    ],
)
def test_keys_are_salted_where_they_must_be(
    limits: Limits, node: int, salts: int, salt: str
) -> None:
    """The epoch is in the key where the store cannot refuse to overwrite, or where it is taken."""
    there = scene(limits=limits, policy=replace(scene().policy, node=node))
    assert salt_of(there, salts) == salt
