"""What comes back is what was there."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from ckptsyncd.core.facts import Listing
from ckptsyncd.core.records.documents import Restorations
from ckptsyncd.recover.request import RestoreRequest
from ckptsyncd.recover.restore import restore
from ckptsyncd.stores.memory import MemoryStore
from tests.recover import bench


def test_a_directory_comes_back_whole(tmp_path: Path) -> None:
    """Bytes, modes, mtimes, links, empty files and directories come back, and the same save id."""
    there, here = tmp_path / "there", tmp_path / "here"
    name = bench.save(there, 500)
    bench.write(there, f"{name}/empty", b"", mode=0o400)
    bench.write(there, f"{name}/odd \udcff name \u00e9\n%41", b"odd")
    (there / name / "nothing" / "here").mkdir(parents=True)
    (there / name / "sub" / "link").symlink_to("../model.safetensors")
    (there / name / "closed").mkdir()
    bench.write(there, f"{name}/closed/file", b"x")
    (there / name / "closed").chmod(0o555)
    store = MemoryStore()
    manifest = bench.commit(store, there, name)

    result = restore(store, here, RestoreRequest(piece_bytes=1000), pace=bench.pace())

    assert bench.tree(here, name) == bench.tree(there, name)
    assert Listing(bench.facts(here, name)).save_id() == manifest.save_id
    assert result.placed == (name,)
    assert result.bytes_fetched == manifest.bytes
    assert sorted(path.name for path in (here / ".ckptsyncd").iterdir()) == [
        "restore.lock",
        "restored.json",
    ]


def test_a_read_only_checkpoint_comes_back(tmp_path: Path) -> None:
    """A directory that may not be written gets its mode back all the same."""
    there, here = tmp_path / "there", tmp_path / "here"
    name = bench.save(there, 5, run="")
    (there / name).chmod(0o550)
    store = MemoryStore()
    bench.commit(store, there, name)
    restore(store, here, RestoreRequest(), pace=bench.pace())
    assert bench.tree(here, name) == bench.tree(there, name)


def test_a_single_file_and_a_group_come_back(tmp_path: Path) -> None:
    """A checkpoint may be one file, or several files beside each other."""
    there, here = tmp_path / "there", tmp_path / "here"
    bench.write(there, "epoch=3.ckpt", b"one file")
    bench.write(there, "tf/ckpt-2.data-00000-of-00001", b"data")
    bench.write(there, "tf/ckpt-2.index", b"index", mtime_ns=bench.MTIME_NS + 1)
    store = MemoryStore()
    bench.commit(store, there, "epoch=3.ckpt")
    bench.commit(store, there, "tf/ckpt-2", "tf/ckpt-2.data-00000-of-00001", "tf/ckpt-2.index")
    restore(store, here, RestoreRequest(checkpoint="epoch=3.ckpt"), pace=bench.pace())
    result = restore(store, here, RestoreRequest(series="tf"), pace=bench.pace())
    assert (here / "epoch=3.ckpt").read_bytes() == b"one file"
    assert bench.tree(here, "tf") == bench.tree(there, "tf")
    assert result.placed[-1] == "tf/ckpt-2.index", "what was written last is placed last"


def test_a_model_shares_its_directory(tmp_path: Path) -> None:
    """A model that lies in a run's own directory is put beside what is there."""
    there, here = tmp_path / "there", tmp_path / "here"
    bench.write(there, "run/config.json", b"{}")
    bench.write(there, "run/model.safetensors", b"weights")
    store = MemoryStore()
    manifest = bench.manifest_of(there, "run")
    flat = [s for s in manifest.files if s.kind == "file"]
    manifest = replace(manifest, layout="huggingface-model", files=tuple(flat))
    bench.put_data(store, there, manifest)
    bench.put_manifest(store, manifest)
    bench.save(here, 4)
    restore(store, here, RestoreRequest(), pace=bench.pace())
    assert (here / "run/model.safetensors").read_bytes() == b"weights"
    assert (here / "run/checkpoint-4/trainer_state.json").is_file()


def test_the_watch_root_may_be_the_checkpoint(tmp_path: Path) -> None:
    """A checkpoint that fills the whole watch root is put there entry by entry, last written last.

    Directories come as one; what else lies in the target stays.
    """
    there, here = tmp_path / "there", tmp_path / "here"
    bench.write(there, "0/shard", b"shard")
    bench.write(there, "0/more", b"more")
    bench.write(there, ".snapshot_metadata", b"marker", mtime_ns=bench.MTIME_NS + 1)
    store = MemoryStore()
    bench.commit(store, there, ".", "0/shard", "0/more", ".snapshot_metadata")
    bench.write(here, "train.log", b"log")
    result = restore(store, here, RestoreRequest(), pace=bench.pace())
    assert result.placed == ("0", ".snapshot_metadata")
    assert bench.tree(here, "0") == bench.tree(there, "0")
    assert (here / "train.log").read_bytes() == b"log"
    kept = restore(store, here, RestoreRequest(checkpoint="."), pace=bench.pace())
    assert kept.kept == result.placed


def test_holes_stay_holes(tmp_path: Path) -> None:
    """A sparse file takes no more room than it did."""
    there, here = tmp_path / "there", tmp_path / "here"
    there.mkdir()
    with (there / "sparse.pt").open("wb") as handle:
        handle.write(b"head")
        handle.seek(8 << 20)
        handle.write(b"tail")
    store = MemoryStore()
    bench.commit(store, there, "sparse.pt")
    restore(store, here, RestoreRequest(piece_bytes=1 << 20), pace=bench.pace())
    assert (here / "sparse.pt").read_bytes() == (there / "sparse.pt").read_bytes()
    assert (here / "sparse.pt").stat().st_blocks * 512 < 1 << 20


def test_a_later_edition_comes_back(tmp_path: Path) -> None:
    """The newest edition of a name is restored, an older one when it is asked for."""
    there, here, old = tmp_path / "there", tmp_path / "here", tmp_path / "old"
    store = MemoryStore()
    bench.write(there, "last.ckpt", b"first")
    bench.commit(store, there, "last.ckpt")
    bench.write(there, "last.ckpt", b"second", mtime_ns=bench.MTIME_NS + 10)
    bench.commit(store, there, "last.ckpt", edition=2)
    newest = restore(store, here, RestoreRequest(), pace=bench.pace())
    first = restore(store, old, RestoreRequest(checkpoint="last.ckpt@1"), pace=bench.pace())
    assert (here / "last.ckpt").read_bytes() == b"second"
    assert (old / "last.ckpt").read_bytes() == b"first"
    assert (newest.lineage, first.lineage) == (0, 1)


def test_the_daemon_is_told(tmp_path: Path) -> None:
    """The newest keeps its lineage, an older one opens the next; each series has its row."""
    there, here = tmp_path / "there", tmp_path / "here"
    store = MemoryStore()
    for run, step in (("a", 10), ("a", 20), ("b", 7)):
        bench.commit(store, there, bench.save(there, step, run=run))
    restore(store, here, RestoreRequest(series="b"), pace=bench.pace())
    restore(store, here, RestoreRequest(step=10), pace=bench.pace())
    told = Restorations.decode((here / ".ckptsyncd/restored.json").read_bytes())
    rows = [told.of("a"), told.of("b")]
    assert [(row.step, row.lineage, row.partial) for row in rows if row] == [
        (10, 1, False),
        (7, 0, False),
    ]


@pytest.mark.parametrize("only", ["*.safetensors", "model.*", "run/*/model.safetensors"])
def test_only_some_files(tmp_path: Path, only: str) -> None:
    """A glob takes what it matches, says that it is only a part, and makes no pointer."""
    there, here = tmp_path / "there", tmp_path / "here"
    store = MemoryStore()
    name = bench.save(there, 3)
    bench.commit(store, there, name)
    result = restore(store, here, RestoreRequest(only=(only,)), pace=bench.pace())
    assert [path.name for path in (here / name).iterdir()] == ["model.safetensors"]
    assert any("only part" in text for text in result.warnings)
    told = Restorations.decode((here / ".ckptsyncd/restored.json").read_bytes()).of("run")
    assert told is not None
    assert told.partial


def test_one_node(tmp_path: Path) -> None:
    """A node takes what it wrote itself."""
    there, here = tmp_path / "there", tmp_path / "here"
    store = MemoryStore()
    name = bench.save(there, 3)
    manifest = bench.manifest_of(there, name)
    files = tuple(
        replace(s, node=1) if s.path.endswith("optimizer.pt") else s for s in manifest.files
    )
    bench.put_data(store, there, manifest)
    bench.put_manifest(store, replace(manifest, files=files, nodes=(0, 1)))
    restore(store, here, RestoreRequest(node=1), pace=bench.pace())
    found = [path for path in (here / name).rglob("*") if path.is_file()]
    assert [path.name for path in found] == ["optimizer.pt"]


def test_the_target_may_be_a_link(tmp_path: Path) -> None:
    """The target itself may be a link to another disk."""
    there, real = tmp_path / "there", tmp_path / "real"
    real.mkdir()
    (tmp_path / "here").symlink_to(real)
    store = MemoryStore()
    name = bench.save(there, 3)
    bench.commit(store, there, name)
    restore(store, tmp_path / "here", RestoreRequest(), pace=bench.pace())
    assert bench.tree(real, name) == bench.tree(there, name)


def test_nothing_is_written_in_a_dry_run(tmp_path: Path) -> None:
    """A dry run says what would be done and leaves no trace."""
    there, here = tmp_path / "there", tmp_path / "here"
    store = MemoryStore()
    name = bench.save(there, 3)
    bench.commit(store, there, name)
    result = restore(store, here, RestoreRequest(dry_run=True), pace=bench.pace())
    assert result.placed == (name,)
    assert result.files == 3
    assert not os.path.lexists(here)
