"""What stands in the target already: kept where it is equal, never overwritten where it is not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ckptsyncd.errors import PathRefused, PolicyRefused
from ckptsyncd.recover.request import RestoreRequest
from ckptsyncd.recover.restore import restore
from ckptsyncd.stores.faulty import Fault, FaultyStore
from ckptsyncd.stores.memory import MemoryStore
from tests.recover import bench


def stored(tmp_path: Path) -> tuple[MemoryStore, str]:
    """Return a store with one checkpoint, and its name."""
    store = MemoryStore()
    name = bench.save(tmp_path / "there", 500)
    bench.commit(store, tmp_path / "there", name)
    return store, name


def test_equal_content_is_kept(tmp_path: Path) -> None:
    """A second restore reads nothing from the store and touches nothing on the disk."""
    store, name = stored(tmp_path)
    restore(store, tmp_path / "here", RestoreRequest(), pace=bench.pace())
    inode = (tmp_path / "here" / name).stat().st_ino
    reads: list[str] = []

    def weather(verb: str, key: str) -> Fault | None:
        reads.extend([key] if verb == "read_range" else [])
        return None

    faulty = FaultyStore(store, weather)
    result = restore(faulty, tmp_path / "here", RestoreRequest(), pace=bench.pace())
    assert (result.kept, result.placed, reads) == ((name,), (), [])
    assert (tmp_path / "here" / name).stat().st_ino == inode


def test_mtimes_alone_are_no_other_content(tmp_path: Path) -> None:
    """A copy that lost its mtimes is equal all the same."""
    store, name = stored(tmp_path)
    bench.save(tmp_path / "here", 500)
    os.utime(tmp_path / "here" / name / "model.safetensors", ns=(1, 1))
    result = restore(store, tmp_path / "here", RestoreRequest(), pace=bench.pace())
    assert result.kept == (name,)


@pytest.mark.parametrize("how", ["byte", "missing", "more", "link", "file", "size"])
def test_other_content_is_refused(tmp_path: Path, how: str) -> None:
    """Whatever differs, nothing is fetched or touched, and --force is named."""
    store, name = stored(tmp_path)
    here = tmp_path / "here"
    bench.save(here, 500)
    model = here / name / "model.safetensors"
    if how == "byte":
        model.write_bytes(b"!" + model.read_bytes()[1:])
    elif how == "missing":
        model.unlink()
    elif how == "more":
        bench.write(here, f"{name}/more", b"more")
    elif how == "link":
        model.unlink()
        model.symlink_to("trainer_state.json")
    elif how == "size":
        model.write_bytes(b"")
    else:
        (here / "run").rename(here / "moved")
        bench.write(here, name, b"a file")
    before = bench.tree(here, "run")
    with pytest.raises(PolicyRefused, match="other content") as caught:
        restore(store, here, RestoreRequest(), pace=bench.pace())
    assert caught.value.exit_code == 7
    assert "--force" in caught.value.hint
    assert bench.tree(here, "run") == before


def test_force_sets_aside(tmp_path: Path) -> None:
    """With force the old one lies aside, whole, and the restored one under its name."""
    store, name = stored(tmp_path)
    here = tmp_path / "here"
    for expected in ("1", "2"):
        bench.write(here, f"{name}/mine", expected.encode())
        result = restore(store, here, RestoreRequest(force=True), pace=bench.pace())
        assert result.set_aside == (f".ckptsyncd/aside/{expected}/checkpoint-500",)
        assert (here / result.set_aside[0] / "mine").read_bytes() == expected.encode()
        assert bench.tree(here, name) == bench.tree(tmp_path / "there", name)


def test_a_group_is_completed(tmp_path: Path) -> None:
    """Of files beside each other the missing ones are added and the equal ones kept."""
    there, here = tmp_path / "there", tmp_path / "here"
    store = MemoryStore()
    for root in (there, here):
        bench.write(root, "ckpt-2.data", b"data")
    bench.write(there, "ckpt-2.index", b"index")
    bench.commit(store, there, "ckpt-2", "ckpt-2.data", "ckpt-2.index")
    result = restore(store, here, RestoreRequest(), pace=bench.pace())
    assert (result.kept, result.placed) == (("ckpt-2.data",), ("ckpt-2.index",))


@pytest.mark.parametrize("there_is", ["link", "dangling", "file"])
def test_a_link_on_the_way_leads_nobody_out(tmp_path: Path, there_is: str) -> None:
    """A run directory that is a link is not entered, wherever it leads."""
    store, _ = stored(tmp_path)
    here, outside = tmp_path / "here", tmp_path / "outside"
    here.mkdir()
    if there_is == "file":
        (here / "run").write_bytes(b"x")
    else:
        (here / "run").symlink_to(outside)
    if there_is == "link":
        outside.mkdir()
    with pytest.raises(PathRefused, match="on the way"):
        restore(store, here, RestoreRequest(force=True), pace=bench.pace())
    assert not outside.exists() or not list(outside.iterdir())


def test_our_own_directory_may_be_no_link(tmp_path: Path) -> None:
    """A link in the place of our own directory is not followed either."""
    store, _ = stored(tmp_path)
    (tmp_path / "here").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "here/.ckptsyncd").symlink_to(tmp_path / "outside")
    with pytest.raises(PathRefused):
        restore(store, tmp_path / "here", RestoreRequest(), pace=bench.pace())
    assert not list((tmp_path / "outside").iterdir())


def test_what_appears_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    """A trainer that makes the same name during the restore keeps what it made."""
    store, name = stored(tmp_path)
    here = tmp_path / "here"

    def weather(verb: str, _key: str) -> Fault | None:
        if verb == "read_range":
            bench.write(here, f"{name}/mine", b"mine")
        return None

    with pytest.raises(PolicyRefused, match="appeared"):
        restore(FaultyStore(store, weather), here, RestoreRequest(), pace=bench.pace())
    assert [path.name for path in (here / name).iterdir()] == ["mine"]


@pytest.mark.parametrize("appears", ["file", "directory", "link"])
def test_a_file_that_appears_meanwhile_is_not_overwritten(tmp_path: Path, appears: str) -> None:
    """The same for a checkpoint that is one file."""
    there, here = tmp_path / "there", tmp_path / "here"
    store = MemoryStore()
    bench.write(there, "last.ckpt", b"stored")
    bench.commit(store, there, "last.ckpt")

    def weather(verb: str, _key: str) -> Fault | None:
        if verb != "read_range":
            return None
        if appears == "file":
            bench.write(here, "last.ckpt", b"mine")
        elif appears == "directory":
            (here / "last.ckpt").mkdir()
        else:
            (here / "last.ckpt").symlink_to("nowhere")
        return None

    with pytest.raises(PolicyRefused, match="appeared"):
        restore(FaultyStore(store, weather), here, RestoreRequest(), pace=bench.pace())
    assert not (here / "last.ckpt").is_file() or (here / "last.ckpt").read_bytes() == b"mine"
