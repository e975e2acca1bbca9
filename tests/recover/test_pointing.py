"""After a restore the framework's pointers name what was restored."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ckptsyncd.core.records import names
from ckptsyncd.core.records.documents import Pointer
from ckptsyncd.recover.request import RestoreRequest, RestoreResult
from ckptsyncd.recover.restore import restore
from ckptsyncd.stores.memory import MemoryStore
from tests.recover import bench


def restored(tmp_path: Path, *pointers: Pointer, step: int = 20) -> RestoreResult:
    """Restore one of two checkpoints, with these pointers stored beside the newer one."""
    store = MemoryStore()
    bench.commit(store, tmp_path / "there", bench.save(tmp_path / "there", 10))
    newer = bench.commit(store, tmp_path / "there", bench.save(tmp_path / "there", 20))
    bench.put_pointers(store, newer, *pointers)
    return restore(store, tmp_path / "here", RestoreRequest(step=step), pace=bench.pace())


@pytest.mark.parametrize("step", [10, 20])
def test_pointers_name_what_was_restored(tmp_path: Path, step: int) -> None:
    """Text and link name the restored checkpoint, whichever it is."""
    text = Pointer("run/latest", "file", "checkpoint-20\n")
    link = Pointer("run/last", "symlink", "checkpoint-20")
    result = restored(tmp_path, text, link, step=step)
    assert result.pointers == ("run/latest", "run/last")
    assert not result.warnings
    assert (tmp_path / "here/run/latest").read_text() == f"checkpoint-{step}\n"
    assert (tmp_path / "here/run/last/trainer_state.json").is_file()
    assert (tmp_path / "here/run/last").readlink() == Path(f"checkpoint-{step}")


def test_others_are_left_out_and_told(tmp_path: Path) -> None:
    """What cannot name the restored one is not made, and said."""
    result = restored(tmp_path, Pointer("run/best", "symlink", "checkpoint-20"), step=10)
    assert not result.pointers
    assert "'run/best'" in result.warnings[0]
    assert not os.path.lexists(tmp_path / "here/run/best")


def test_an_old_pointer_is_replaced(tmp_path: Path) -> None:
    """A pointer of the same name that names something else is replaced as a whole."""
    bench.write(tmp_path / "here", "run/latest", b"checkpoint-5")
    (tmp_path / "here/run/last").symlink_to("checkpoint-5")
    text = Pointer("run/latest", "file", "checkpoint-20")
    link = Pointer("run/last", "symlink", "checkpoint-20")
    restored(tmp_path, text, link)
    assert (tmp_path / "here/run/latest").read_text() == "checkpoint-20"
    assert (tmp_path / "here/run/last").readlink() == Path("checkpoint-20")


@pytest.mark.parametrize("there", [b"a model of " + bytes(100_000), b"import os\n"])
def test_a_file_of_the_trainer_is_left_alone(tmp_path: Path, there: bytes) -> None:
    """A real file that happens to have a pointer's name stays, and is told."""
    bench.write(tmp_path / "here", "run/last.ckpt", there)
    result = restored(tmp_path, Pointer("run/last.ckpt", "symlink", "checkpoint-20"))
    assert (tmp_path / "here/run/last.ckpt").read_bytes() == there
    assert "is no such pointer" in result.warnings[0]


@pytest.mark.parametrize(
    ("path", "link"),
    [
        ("run/checkpoint-20/latest", "../checkpoint-20"),
        ("run/CHECKPOINT-20/latest", "../checkpoint-20"),
        ("run", "run/checkpoint-20"),
        (".ckptsyncd/latest", "../run/checkpoint-20"),
        (".Ckptsyncd/latest", "../run/checkpoint-20"),
    ],
)
def test_a_pointer_lies_beside_the_checkpoint(tmp_path: Path, path: str, link: str) -> None:
    """A pointer inside the checkpoint, above it, or in our own directory is not made."""
    text = Pointer(path, "file", "checkpoint-20")
    assert not restored(tmp_path, Pointer(path, "symlink", link), text).pointers
    assert bench.tree(tmp_path / "here", "run/checkpoint-20") == bench.tree(
        tmp_path / "there", "run/checkpoint-20"
    )
    assert not list((tmp_path / "here").rglob("latest"))


@pytest.mark.parametrize("name", ["gone.pt", "n" * 300])
def test_a_link_to_nothing_is_not_made(tmp_path: Path, name: str) -> None:
    """A link to a file that the checkpoint does not have, or that no disk can have, is told."""
    result = restored(tmp_path, Pointer("run/best", "symlink", f"checkpoint-20/{name}"))
    assert not result.pointers
    assert "not there" in result.warnings[0]


def test_a_bad_record_is_told(tmp_path: Path) -> None:
    """A record of pointers that cannot be read costs the pointers, not the restore."""
    store = MemoryStore()
    name = bench.save(tmp_path / "there", 10)
    bench.commit(store, tmp_path / "there", name)
    store.put_small(names.pointers_key("run"), b"{", None)
    result = restore(store, tmp_path / "here", RestoreRequest(), pace=bench.pace())
    assert result.placed == (name,)
    assert "pointers cannot be used" in result.warnings[0]
