"""What dead writers left goes; what may be anybody else's stays."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ckptsyncd.core.facts import Piece
from ckptsyncd.core.records import names
from ckptsyncd.core.records.documents import Claim, Epoch
from ckptsyncd.recover.gait import Gait
from ckptsyncd.recover.reap import DEAD_SECONDS, Reaped, reap
from ckptsyncd.stores.memory import BytesBody, MemoryStore
from tests.recover import bench

NOW = 1_700_000_000.0
OLD = NOW - DEAD_SECONDS - 1.0
CLAIM = Claim("run/checkpoint-5", 1, "run", "save", "dead", 1, 0, "", OLD)


def reaped(store: MemoryStore, now: float = NOW, *, dry: bool = False) -> Reaped:
    """Reap at a time."""
    return reap(store, now, Gait(bench.pace(), 1e9, dry))


def claimed(store: MemoryStore, claim: Claim = CLAIM, *, newer_epoch: int = 2) -> None:
    """Claim an edition; its node has this run epoch by now."""
    store.put_small(names.claim_key(claim.checkpoint, claim.edition), claim.encode(), None)
    record = Epoch(claim.series, claim.node, newer_epoch, "alive", "host", OLD)
    store.put_small(names.epoch_key(claim.series, claim.node), record.encode(), None)


def put(store: MemoryStore, key: str, nonce: str = "dead.1") -> None:
    """Store an object that carries a nonce."""
    store.put_whole(key, BytesBody(b"data"), nonce, create_only=True)


def keys(store: MemoryStore) -> set[str]:
    """Return the keys of everything but the epochs."""
    return {fact.key for fact in store.list("") if not fact.key.startswith(names.EPOCHS)}


def test_what_a_dead_claim_names_goes(tmp_path: Path) -> None:
    """Objects and begun uploads of a claim whose writer is gone, then the claim."""
    store = MemoryStore()
    bench.commit(store, tmp_path, bench.save(tmp_path, 9))
    before = keys(store)
    claimed(store)
    put(store, "run/checkpoint-5/model.safetensors")
    begun = store.begin("run/checkpoint-5/optimizer.pt", 4, 4, "dead.2")
    store.put_piece(begun, Piece(0, 0, 4), BytesBody(b"half"))
    assert reaped(store, dry=True) == reaped(store) == Reaped(1, 1, 1)
    assert keys(store) == before
    assert list(store.uploads("")) == []
    assert reaped(store) == Reaped()


def test_later_editions_have_a_place_of_their_own() -> None:
    """Below ``editions`` everything of the claim's number goes, salted or not, and no other."""
    store = MemoryStore()
    claimed(store, replace(CLAIM, edition=2))
    inside = f"{names.EDITIONS}{names.quoted(CLAIM.checkpoint)}/"
    for place in ("2/a", "2-1/a", "2-1.1/a", "1-1/a", "22/a", "3/a"):
        put(store, inside + place, "whoever.1")
    assert reaped(store).objects == 3
    assert keys(store) == {inside + place for place in ("1-1/a", "22/a", "3/a")}


@pytest.mark.parametrize(
    ("claim", "epoch"),
    [
        (CLAIM, 1),
        (replace(CLAIM, claimed_at=NOW - DEAD_SECONDS + 1.0), 2),
        (replace(CLAIM, epoch=2), 2),
    ],
    ids=["its epoch is the newest", "it was claimed this week", "it is the newest writer's"],
)
def test_whoever_may_be_alive_is_left_alone(claim: Claim, epoch: int) -> None:
    """A claim of the newest epoch, or of this week, keeps everything."""
    store = MemoryStore()
    claimed(store, claim, newer_epoch=epoch)
    put(store, "run/checkpoint-5/model.safetensors")
    assert reaped(store) == Reaped()
    assert len(keys(store)) == 2


def test_without_an_epoch_nobody_is_known_to_be_dead() -> None:
    """A lost epoch record keeps everything."""
    store = MemoryStore()
    claimed(store)
    store.delete(names.epoch_key("run", 0))
    put(store, "run/checkpoint-5/model.safetensors")
    assert reaped(store) == Reaped()


def test_an_epoch_that_committed_this_week_is_not_silent(tmp_path: Path) -> None:
    """An old machine that drains while its replacement starts may still commit."""
    store = MemoryStore()
    manifest = bench.manifest_of(tmp_path, bench.save(tmp_path, 9))
    manifest = replace(manifest, committed_at=NOW - 60.0)
    bench.put_data(store, tmp_path, manifest)
    bench.put_manifest(store, manifest)
    claimed(store)
    put(store, "run/checkpoint-5/model.safetensors")
    assert reaped(store) == Reaped()
    assert reaped(store, NOW + DEAD_SECONDS).claims == 1


def test_the_users_own_objects_stay() -> None:
    """At a plain key only what carries a nonce of the claim's writer goes."""
    store = MemoryStore()
    claimed(store)
    put(store, "run/checkpoint-5/mine.txt", "other.1")
    store.put_small("run/checkpoint-5/notes.txt", b"mine", None)
    put(store, "run/checkpoint-50/model.safetensors", "alive.1")
    put(store, "run/checkpoint-5/model.safetensors", "dead.7")
    assert reaped(store).objects == 1
    assert keys(store) == {
        "run/checkpoint-5/mine.txt",
        "run/checkpoint-5/notes.txt",
        "run/checkpoint-50/model.safetensors",
    }


def test_another_checkpoints_begun_upload_stays() -> None:
    """Names that only begin alike are none of the claim's."""
    store = MemoryStore()
    claimed(store)
    begun = store.begin("run/checkpoint-50/optimizer.pt", 4, 4, "")
    assert reaped(store).uploads == 0
    assert [one.token for one in store.uploads("")] == [begun.token]


def test_what_a_manifest_names_stays(tmp_path: Path) -> None:
    """Data of a dead claim that somebody else committed is no orphan."""
    store = MemoryStore()
    name = bench.save(tmp_path, 5)
    first = bench.manifest_of(tmp_path, name)
    second = replace(bench.manifest_of(tmp_path, name, edition=2), files=first.files)
    for stored in first.files:
        if stored.kind == "file":
            put_as(store, tmp_path / stored.path, stored.key)
    bench.put_manifest(store, second)
    claimed(store)
    put(store, "run/checkpoint-5/more", "dead.9")
    assert reaped(store).objects == 1
    assert {stored.key for stored in first.files if stored.key} <= keys(store)


def put_as(store: MemoryStore, path: Path, key: str) -> None:
    """Store a file as the dead writer did."""
    store.put_whole(key, BytesBody(path.read_bytes()), "dead.3", create_only=True)


def test_who_comes_back_with_the_save_takes_another_edition() -> None:
    """Before the first object goes the claim is taken from its save."""
    store = MemoryStore()
    claimed(store)
    put(store, "run/checkpoint-5/model.safetensors")
    saves = []

    def may() -> bool:
        data, _ = store.get_small(names.claim_key(CLAIM.checkpoint, 1), 10**6)
        saves.append(Claim.decode(data).save_id)
        return True

    reap(store, NOW, Gait(bench.pace(), 1e9, may=may))
    assert saves == ["save", "", ""]


def test_while_something_cannot_be_read_nothing_goes() -> None:
    """A manifest that nobody can read may name what looks like an orphan."""
    store = MemoryStore()
    claimed(store)
    put(store, "run/checkpoint-5/model.safetensors")
    store.put_small(names.manifest_key("run/checkpoint-9", 1), b"{", None)
    assert reaped(store) == Reaped()
