"""What no checkpoint names is found and named, and nothing is removed by looking."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ckptsyncd.core.records import names
from ckptsyncd.core.records.documents import Claim
from ckptsyncd.core.records.documents import Verification as Record
from ckptsyncd.core.rules.retention import Retention
from ckptsyncd.errors import Again
from ckptsyncd.recover.prune import PruneRequest, prune
from ckptsyncd.recover.unnamed import Unnamed
from ckptsyncd.recover.verify import VerifyRequest, record, verify
from ckptsyncd.stores.faulty import Fault, FaultyStore
from ckptsyncd.stores.memory import BytesBody, MemoryStore
from tests.recover import bench

CLAIM = Claim("run/checkpoint-5", 1, "run", "save", "gone", 1, 0, "", 1_700_000_000.0)


def put(store: MemoryStore, key: str) -> None:
    """Store an object."""
    store.put_whole(key, BytesBody(b"data"), "gone.1", create_only=True)


def found(store: MemoryStore | FaultyStore, name: str | None = None) -> Unnamed | None:
    """Return what a verification finds."""
    return verify(store, VerifyRequest(name), pace=bench.pace()).unnamed


def keys(facts: object) -> list[str]:
    """Return the keys, sorted."""
    assert isinstance(facts, tuple)
    return sorted(fact.key for fact in facts)


def test_a_store_in_order_has_nothing(tmp_path: Path) -> None:
    """What a manifest names, our records and the user's own objects are no leftovers."""
    store = MemoryStore()
    bench.commit(store, tmp_path, bench.save(tmp_path, 10))
    put(store, "run/notes.txt")
    put(store, names.COMPANIONS + "run/log.txt")
    left = found(store)
    assert left is not None
    assert left.is_empty


def test_each_kind_is_told_apart(tmp_path: Path) -> None:
    """Orphans, editions that were never committed, pruned data that waits, and half uploads."""
    store = MemoryStore()
    for step in (10, 20):
        bench.commit(store, tmp_path, bench.save(tmp_path, step))
    rules = Retention(keep_last=1, min_keep=1)
    prune(store, PruneRequest(rules, per_second=1e9), pace=bench.pace())
    orphan = f"{names.EDITIONS}run%2Fcheckpoint-7/2/a"
    put(store, orphan)
    store.put_small(names.claim_key(CLAIM.checkpoint, 1), CLAIM.encode(), None)
    put(store, "run/checkpoint-5/model.safetensors")
    put(store, "run/checkpoint-50/mine.txt")
    begun = store.begin("run/checkpoint-5/optimizer.pt", 4, 4, "gone.2")
    store.begin("run/checkpoint-50/mine.bin", 4, 4, "")
    before = store.objects()
    left = found(store)
    assert left is not None
    assert keys(left.objects) == [orphan]
    assert keys(left.claimed) == ["run/checkpoint-5/model.safetensors"]
    assert {key.split("/")[1] for key in keys(left.waiting)} == {"checkpoint-10"}
    assert [one.token for one in left.uploads] == [begun.token]
    assert store.objects() == before


def test_uploads_are_named_where_nothing_was_ever_committed() -> None:
    """A run that never came to its first commit leaves begun uploads: they are found too."""
    store = MemoryStore()
    store.put_small(names.claim_key(CLAIM.checkpoint, 1), CLAIM.encode(), None)
    begun = store.begin("run/checkpoint-5/optimizer.pt", 4, 4, "gone.2")
    left = found(store)
    assert left is not None
    assert [one.token for one in left.uploads] == [begun.token]


def test_one_checkpoint_alone_is_no_reason_to_look(tmp_path: Path) -> None:
    """Whoever verifies one checkpoint does not pay for a list of all."""
    store = MemoryStore()
    bench.commit(store, tmp_path, bench.save(tmp_path, 10))
    assert found(store, "run/checkpoint-10") is None


def test_a_store_that_does_not_answer_is_told(tmp_path: Path) -> None:
    """A claim that cannot be read for now is not taken for none."""
    store = MemoryStore()
    bench.commit(store, tmp_path, bench.save(tmp_path, 10))
    key = names.claim_key(CLAIM.checkpoint, 1)
    store.put_small(key, CLAIM.encode(), None)
    faulty = FaultyStore(store, lambda _, of: Fault(Again("no")) if of == key else None)
    with pytest.raises(Again):
        found(faulty)


def test_the_daemon_can_read_when_it_was(tmp_path: Path) -> None:
    """The record counts what was whole and what was not."""
    store = MemoryStore()
    for step in (10, 20):
        bench.commit(store, tmp_path, bench.save(tmp_path, step))
    store.delete("run/checkpoint-10/model.safetensors")
    result = verify(store, VerifyRequest(), pace=bench.pace())
    record(store, result, 1_750_000_000.0)
    read = Record.decode(store.get_small(names.VERIFIED, 1000)[0])
    assert replace(read, host="") == Record("meta", 1_750_000_000.0, whole=1, broken=1)
