"""Verify finds what is broken, at the level that can see it, and says so with its exit code."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ckptsyncd.core.facts import ObjectFact
from ckptsyncd.core.records import names
from ckptsyncd.core.records.manifest import StoredFile
from ckptsyncd.errors import NoCheckpoint, Refused, UsageError
from ckptsyncd.recover.verify import Level, VerifyRequest, chosen, verify
from ckptsyncd.stores.faulty import Fault, FaultyStore
from ckptsyncd.stores.memory import BytesBody, MemoryStore
from tests.recover import bench


class Silent(MemoryStore):
    """A store that keeps no checksum: only the bytes tell."""

    def stat(self, key: str) -> ObjectFact:
        """Return the fact without the checksum."""
        return replace(super().stat(key), crc64nvme=None)


def two(store: MemoryStore, tmp_path: Path) -> None:
    """Commit two checkpoints."""
    for step in (10, 20):
        bench.commit(store, tmp_path, bench.save(tmp_path, step))


def change(store: MemoryStore, key: str) -> None:
    """Change one byte of an object."""
    data = store.objects()[key]
    store.delete(key)
    store.put_whole(key, BytesBody(data[:-1] + b"!"), "other", create_only=True)


@pytest.mark.parametrize("level", ["meta", "sample", "full"])
def test_all_are_whole(tmp_path: Path, level: Level) -> None:
    """Where nothing is broken every level says so; only ``full`` reads everything."""
    store = MemoryStore()
    two(store, tmp_path)
    found = verify(store, VerifyRequest(level=level, percent=1.0), pace=bench.pace())
    assert found.exit_code == 0
    read = [result.bytes_read for result in found.results]
    total = [result.bytes for result in found.results]
    assert [result.title for result in found.results] == [
        "run/checkpoint-20@1",
        "run/checkpoint-10@1",
    ]
    if level == "meta":
        assert read == [0, 0]
    elif level == "full":
        assert read == total
    else:
        assert all(0 < some < every for some, every in zip(read, total, strict=True))


def test_a_changed_object_is_found(tmp_path: Path) -> None:
    """The store's own checksum tells at level ``meta``, else the bytes at level ``full``."""
    for store, level in ((MemoryStore(), "meta"), (Silent(), "full")):
        two(store, tmp_path)
        change(store, "run/checkpoint-20/model.safetensors")
        request = VerifyRequest(level="full" if level == "full" else "meta")
        found = verify(store, request, pace=bench.pace())
        assert found.exit_code == 1
        assert [fault.path for fault in found.results[0].faults] == [
            "run/checkpoint-20/model.safetensors"
        ]
        assert not found.results[1].faults
    silent = Silent()
    two(silent, tmp_path)
    change(silent, "run/checkpoint-20/model.safetensors")
    assert verify(silent, VerifyRequest(), pace=bench.pace()).exit_code == 0


def test_none_is_whole(tmp_path: Path) -> None:
    """Where all are broken the exit code is another one; an unreadable manifest counts."""
    store = MemoryStore()
    two(store, tmp_path)
    store.delete("run/checkpoint-20/trainer_state.json")
    assert verify(store, VerifyRequest(), pace=bench.pace()).exit_code == 1
    store.put_small(names.manifest_key("run/checkpoint-10", 1), b"{}", None)
    assert verify(store, VerifyRequest(), pace=bench.pace()).exit_code == 4


def test_one_is_named(tmp_path: Path) -> None:
    """A name limits what is looked at; one that does not exist is a mistake, not a verdict."""
    store = MemoryStore()
    two(store, tmp_path)
    store.delete("run/checkpoint-20/trainer_state.json")
    request = VerifyRequest(checkpoint="run/checkpoint-10")
    assert verify(store, request, pace=bench.pace()).exit_code == 0
    request = VerifyRequest(checkpoint="run/checkpoint-20@1")
    assert verify(store, request, pace=bench.pace()).exit_code == 4
    with pytest.raises(UsageError):
        verify(store, VerifyRequest(checkpoint="run/checkpoint-30"), pace=bench.pace())


def test_nothing_is_there() -> None:
    """An empty store has nothing to verify."""
    with pytest.raises(NoCheckpoint):
        verify(MemoryStore(), VerifyRequest(), pace=bench.pace())


def test_silence_is_no_verdict(tmp_path: Path) -> None:
    """A store that refuses is told as that."""
    store = MemoryStore()
    two(store, tmp_path)
    faulty = FaultyStore(store, lambda v, _k: Fault(Refused("no")) if v == "stat" else None)
    with pytest.raises(Refused):
        verify(faulty, VerifyRequest(), pace=bench.pace())


def test_what_editions_share_is_read_once(tmp_path: Path) -> None:
    """A file that a later edition took over is read for one of them only."""
    store = MemoryStore()
    name = bench.save(tmp_path, 10)
    first = bench.commit(store, tmp_path, name)
    bench.put_manifest(store, replace(first, edition=2))
    found = verify(store, VerifyRequest(level="full"), pace=bench.pace())
    assert [result.bytes_read for result in found.results] == [first.bytes, 0]


def test_the_same_seed_chooses_the_same_files() -> None:
    """A sample can be repeated; another seed looks elsewhere; it is as large as was asked for."""
    files = [StoredFile(f"c/{n}", "file", 10, 0, 0, f"c/{n}", n) for n in range(1000)]
    seeds = [VerifyRequest(level="sample", seed=seed) for seed in (1, 1, 2)]
    picks = [chosen("c@1", files, request) for request in seeds]
    assert picks[0] == picks[1] != picks[2]
    assert [len(pick) for pick in picks] == [50, 50, 50]
