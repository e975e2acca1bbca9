"""A second destination gets what is committed in the first: whole, checked, its manifest last."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from ckptsyncd.core.facts import Limits
from ckptsyncd.core.records import names
from ckptsyncd.core.records.documents import Pointer
from ckptsyncd.core.rules.retention import Retention
from ckptsyncd.errors import Again
from ckptsyncd.recover.catalog import read_catalog
from ckptsyncd.recover.mirror import Mirrored, mirror
from ckptsyncd.recover.prune import PruneRequest, prune
from ckptsyncd.recover.request import RestoreRequest
from ckptsyncd.recover.restore import restore
from ckptsyncd.recover.verify import VerifyRequest, verify
from ckptsyncd.stores.faulty import Fault, FaultyStore
from ckptsyncd.stores.memory import BytesBody, MemoryStore
from tests.recover import bench

#: Files over 20,000 bytes go over in pieces.
SMALL = Limits(1, 20_000, 10_000, 10**9)


def two(tmp_path: Path) -> MemoryStore:
    """Return a store with two checkpoints and a pointer."""
    store = MemoryStore()
    for step in (10, 20):
        manifest = bench.commit(store, tmp_path / "there", bench.save(tmp_path / "there", step))
    bench.put_pointers(store, manifest, Pointer("run/latest", "symlink", "checkpoint-20"))
    return store


def mirrored(source: MemoryStore | FaultyStore, target: MemoryStore | FaultyStore) -> Mirrored:
    """Serve the second destination once."""
    return mirror(source, target, "mirror", bench.pace())


def titles(store: MemoryStore) -> list[str]:
    """Return what a store holds."""
    return [entry.title for entry in read_catalog(store, bench.pace()).entries]


@pytest.mark.parametrize("target", [MemoryStore(), MemoryStore(SMALL)], ids=["whole", "in pieces"])
def test_everything_comes_over_once(tmp_path: Path, target: MemoryStore) -> None:
    """Newest first; it restores from the second like from the first; then nothing is left to do."""
    source = two(tmp_path)
    done = mirrored(source, target)
    assert done.copied == ("run/checkpoint-20@1", "run/checkpoint-10@1")
    assert (done.skipped, done.behind) == ((), 0)
    assert verify(target, VerifyRequest(level="full"), pace=bench.pace()).exit_code == 0
    assert not list(target.uploads(""))
    result = restore(target, tmp_path / "here", RestoreRequest(), pace=bench.pace())
    assert result.pointers == ("run/latest",)
    there, here = (bench.tree(tmp_path / side, "run/checkpoint-20") for side in ("there", "here"))
    assert there == here
    before = target.objects()
    assert mirrored(source, target) == Mirrored()
    assert target.objects() == before


def test_a_broken_one_does_not_come_over(tmp_path: Path) -> None:
    """What does not have the checksum of its manifest is told, and never committed there."""
    source, target = two(tmp_path), MemoryStore()
    key = "run/checkpoint-20/model.safetensors"
    data = source.objects()[key]
    source.delete(key)
    source.put_whole(key, BytesBody(data[:-1] + b"!"), "n.1", create_only=True)
    done = mirrored(source, target)
    assert done.copied == ("run/checkpoint-10@1",)
    assert [skip.title for skip in done.skipped] == ["run/checkpoint-20@1"]
    assert titles(target) == ["run/checkpoint-10@1"]


def test_one_that_is_not_given_holds_nothing_up(tmp_path: Path) -> None:
    """A first store that answers, and never gives one file: others come over, it is told."""
    source, target = two(tmp_path), MemoryStore()
    key = "run/checkpoint-20/model.safetensors"

    def weather(verb: str, asked: str) -> Fault | None:
        return Fault(Again("500")) if (verb, asked) == ("read_range", key) else None

    done = mirrored(FaultyStore(source, weather), target)
    assert done.copied == ("run/checkpoint-10@1",)
    assert [skip.title for skip in done.skipped] == ["run/checkpoint-20@1"]
    assert "does not give all of it: 500" in done.skipped[0].reason
    assert mirrored(source, target).copied == ("run/checkpoint-20@1",), "once it is given"


def test_what_was_pruned_there_stays_pruned(tmp_path: Path) -> None:
    """The second destination may keep fewer than the first."""
    source, target = two(tmp_path), MemoryStore()
    mirrored(source, target)
    rules = Retention(keep_last=1, min_keep=1)
    prune(target, PruneRequest(rules, per_second=1e9), pace=bench.pace())
    assert mirrored(source, target).copied == ()
    assert titles(target) == ["run/checkpoint-20@1"]


def test_others_objects_are_not_written_over(tmp_path: Path) -> None:
    """Where a key is taken by something else, the checkpoint is told and left out."""
    source, target = two(tmp_path), MemoryStore()
    target.put_whole("run/checkpoint-20/model.safetensors", BytesBody(b"x"), "o", create_only=True)
    done = mirrored(source, target)
    assert [skip.title for skip in done.skipped] == ["run/checkpoint-20@1"]
    assert target.objects()["run/checkpoint-20/model.safetensors"] == b"x"


def test_one_that_was_interrupted_goes_on(tmp_path: Path) -> None:
    """Objects that came over before are not sent again; nothing half is committed."""
    source, target = two(tmp_path), MemoryStore()
    written: list[str] = []

    def weather(verb: str, key: str) -> Fault | None:
        if verb == "put_whole":
            written.append(key)
        return Fault(Again("down")) if len(written) > 2 else None

    with pytest.raises(Again):
        mirrored(source, FaultyStore(target, weather))
    assert titles(target) == []
    arrived = {key for key in target.objects() if not key.startswith(names.OURS)}
    assert len(arrived) == 2
    done = mirrored(source, target)
    assert len(done.copied) == 2
    total = sum(entry.bytes for entry in read_catalog(source, bench.pace()).entries)
    assert done.bytes == total - sum(len(target.objects()[key]) for key in arrived)


def test_it_gives_way(tmp_path: Path) -> None:
    """Where something urgent came, nothing more comes over, and what is missing is counted."""
    source, target = two(tmp_path), MemoryStore()
    pace = replace(bench.pace(), stop=threading.Event())
    pace.stop.set()
    done = mirror(source, target, "mirror", pace)
    assert (done.copied, done.behind) == ((), 2)
    assert titles(target) == []
