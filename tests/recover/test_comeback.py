"""Every series into an empty directory, also when it was killed between two of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ckptsyncd.core.records.manifest import Manifest
from ckptsyncd.errors import NoCheckpoint, NothingVerifies
from ckptsyncd.recover.comeback import MARKER, come_back
from ckptsyncd.recover.request import Silence
from ckptsyncd.stores.memory import MemoryStore
from tests.recover import bench


def stored(store: MemoryStore, there: Path, *names: str) -> list[Manifest]:
    """Commit one checkpoint of each name."""
    manifests = []
    for name in names:
        bench.write(there, f"{name}/data.bin", name.encode() * 100)
        manifests.append(bench.commit(store, there, name))
    return manifests


class Killed(BaseException):
    """The process dies."""


class Dying(Silence):
    """Dies once so many checkpoints were placed."""

    def __init__(self, after: int) -> None:
        """Count from here."""
        self._left = after

    def reached(self, step: str) -> None:
        """Count."""
        if step == "cleaned":
            self._left -= 1
            if not self._left:
                raise Killed


def test_a_kill_between_two_series_is_made_good(tmp_path: Path) -> None:
    """The second start brings the rest, although the directory holds a checkpoint by then."""
    store, here = MemoryStore(), tmp_path / "here"
    stored(store, tmp_path / "there", "a/checkpoint-1", "b/checkpoint-2")
    with pytest.raises(Killed):
        come_back(store, here, Dying(1), bench.pace())
    assert len(list(here.glob("*/checkpoint-*"))) == 1
    assert len(come_back(store, here, None, bench.pace())) == 2
    assert len(list(here.glob("*/checkpoint-*"))) == 2
    assert not (here / ".ckptsyncd" / MARKER).exists()
    assert come_back(store, here, None, bench.pace()) == ()


def test_nothing_in_the_store(tmp_path: Path) -> None:
    """It says that a fresh start is right, and leaves nothing in the directory."""
    with pytest.raises(NoCheckpoint):
        come_back(MemoryStore(), tmp_path / "here", None, bench.pace())
    assert not (tmp_path / "here").exists()


def test_nothing_whole_in_the_store(tmp_path: Path) -> None:
    """A series without a whole checkpoint stops everything, and the next start tries again."""
    store, here = MemoryStore(), tmp_path / "here"
    (manifest,) = stored(store, tmp_path / "there", "a/checkpoint-1")
    store.delete(manifest.files[-1].key)
    for _ in range(2):
        with pytest.raises(NothingVerifies):
            come_back(store, here, None, bench.pace())


def test_logs_are_no_checkpoint(tmp_path: Path) -> None:
    """A directory with logs only is as good as empty."""
    store, here = MemoryStore(), tmp_path / "here"
    stored(store, tmp_path / "there", "checkpoint-1")
    bench.write(here, "events.out.tfevents.1", b"log")
    (result,) = come_back(store, here, None, bench.pace())
    assert result.placed == ("checkpoint-1",)
