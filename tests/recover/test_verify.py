"""Verify finds what is broken, at the level that can see it, and says so with its exit code."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ckptsyncd.checksum import crc64nvme
from ckptsyncd.core.facts import ObjectFact
from ckptsyncd.core.records import names
from ckptsyncd.core.records.manifest import StoredFile
from ckptsyncd.errors import Again, NoCheckpoint, Refused, UsageError
from ckptsyncd.recover.request import Silence
from ckptsyncd.recover.sampling import by_chance
from ckptsyncd.recover.verify import Level, VerifyRequest, verify
from ckptsyncd.stores.faulty import Fault, FaultyStore
from ckptsyncd.stores.memory import BytesBody, MemoryStore
from tests.recover import bench


class Silent(MemoryStore):
    """A store that keeps no checksum: only the bytes tell."""

    def stat(self, key: str) -> ObjectFact:
        """Return the fact without the checksum."""
        return replace(super().stat(key), crc64nvme=None)


class Told(Silence):
    """Keeps what is said."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.lines: list[str] = []

    def said(self, text: str) -> None:
        """Keep a line."""
        self.lines.append(text)


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
    """An empty store has nothing to verify, and says so; a name in it is an error."""
    found = verify(MemoryStore(), VerifyRequest(), pace=bench.pace())
    assert (found.results, found.exit_code) == ((), NoCheckpoint.exit_code)
    with pytest.raises(NoCheckpoint):
        verify(MemoryStore(), VerifyRequest("run/checkpoint-1"), pace=bench.pace())


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


def test_the_same_seed_chooses_the_same_pieces() -> None:
    """A sample can be repeated; another seed looks elsewhere; it is as large as was asked for."""
    sums = tuple(range(100))
    files = [
        StoredFile(f"c/{n}", "file", 1000, 0, 0, f"c/{n}", n, piece_bytes=10, piece_sums=sums)
        for n in range(10)
    ]
    picks = [by_chance("c@1", files, 5.0, seed) for seed in (1, 1, 2)]
    assert picks[0] == picks[1] != picks[2]
    assert [sum(sample.gap.length for sample in pick) for pick in picks] == [500, 500, 500]
    assert len({sample.stored.path for sample in picks[0]}) > 1


def test_a_piece_that_changed_is_found_by_its_own_checksum(tmp_path: Path) -> None:
    """Of a file that was sent in pieces only some are read, and each can be told from another."""
    store = Silent()
    name = bench.save(tmp_path, 10)
    made = bench.commit(store, tmp_path, name)
    largest = max((f for f in made.files if f.kind == "file"), key=lambda f: f.size)
    data = store.objects()[largest.key]
    cuts = [data[at : at + 100] for at in range(0, len(data), 100)]
    row = replace(largest, piece_bytes=100, piece_sums=tuple(map(crc64nvme, cuts)))
    files = tuple(row if file == largest else file for file in made.files)
    bench.put_manifest(store, replace(made, edition=2, files=files))
    request = VerifyRequest(f"{made.checkpoint}@2", level="sample", percent=90.0)
    found = verify(store, request, pace=bench.pace())
    assert (found.exit_code, found.results[0].bytes_read < made.bytes) == (0, True)
    change(store, largest.key)
    codes = {
        verify(store, replace(request, percent=60.0, seed=seed), pace=bench.pace()).exit_code
        for seed in range(20)
    }
    assert codes == {0, 4}


def test_a_file_that_the_store_does_not_give(tmp_path: Path) -> None:
    """A store that answers, and never gives one file, has a broken one: the other is whole."""
    store = MemoryStore()
    two(store, tmp_path)
    progress = Told()

    def weather(verb: str, key: str) -> Fault | None:
        sick = verb == "read_range" and key == "run/checkpoint-20/model.safetensors"
        return Fault(Again("500", wait_seconds=0.001)) if sick else None

    request = VerifyRequest(level="full")
    found = verify(FaultyStore(store, weather), request, progress, bench.pace())
    assert found.exit_code == 1
    faults = {result.title: result.faults for result in found.results}
    assert not faults["run/checkpoint-10@1"]
    (fault,) = faults["run/checkpoint-20@1"]
    assert "does not give all of it: 500" in fault.reason
    assert any("it is asked again in" in line for line in progress.lines), "who waits is told"


def test_a_store_that_gives_no_file_at_all(tmp_path: Path) -> None:
    """Where not one byte of any file comes it is the store that fails: none is called broken."""
    store = MemoryStore()
    two(store, tmp_path)
    asked: list[str] = []

    def weather(verb: str, key: str) -> Fault | None:
        asked.append(key)
        return Fault(Again("500")) if verb == "read_range" else None

    with pytest.raises(Again, match="500"):
        verify(FaultyStore(store, weather), VerifyRequest(level="full"), pace=bench.pace())
    assert len(asked) < 120, "attempts are bounded"
