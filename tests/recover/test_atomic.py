"""A kill at any step leaves nothing or the whole checkpoint under its name."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ckptsyncd.core.records.documents import Pointer
from ckptsyncd.core.records.manifest import Manifest
from ckptsyncd.recover.request import RestoreRequest, Silence, Step
from ckptsyncd.recover.restore import restore
from ckptsyncd.stores.memory import MemoryStore
from tests.recover import bench

STEPS: tuple[Step, ...] = (
    "chosen",
    "compared",
    "fetched",
    "built",
    "placed",
    "pointed",
    "recorded",
    "cleaned",
)


class Killer(Silence):
    """Kills its own process at one step, or once so many blocks have arrived."""

    def __init__(self, at: str) -> None:
        """Kill at this step, or after this many blocks."""
        self.at = at
        self.blocks = 0

    def moved(self, arrived_bytes: int) -> None:
        """Count a block, and kill at the right one."""
        self.blocks += 1
        if str(self.blocks) == self.at and arrived_bytes:
            os.kill(os.getpid(), signal.SIGKILL)

    def reached(self, step: Step) -> None:
        """Kill at the right step."""
        if step == self.at:
            os.kill(os.getpid(), signal.SIGKILL)


def stored(there: Path) -> tuple[MemoryStore, Manifest]:
    """Return a store with one checkpoint, a pointer, and the manifest; always the same."""
    store = MemoryStore()
    name = bench.save(there, 500)
    manifest = bench.commit(store, there, name)
    bench.put_pointers(store, manifest, Pointer("run/latest", "file", "checkpoint-500"))
    return store, manifest


@pytest.mark.parametrize("at", [*STEPS, "1", "7"])
def test_a_kill_leaves_all_or_nothing(tmp_path: Path, at: str) -> None:
    """Killed at any step the name is whole or absent, and the next restore completes it."""
    there, here = tmp_path / "there", tmp_path / "here"
    child = [sys.executable, __file__, str(there), str(here), at]
    path = str(Path(__file__).parent.parent.parent)
    done = subprocess.run(child, check=False, timeout=60, env={**os.environ, "PYTHONPATH": path})
    assert done.returncode == -signal.SIGKILL

    store, manifest = stored(there)
    name = manifest.checkpoint
    if (here / name).exists():
        assert bench.tree(here, name) == bench.tree(there, name)
    else:
        assert not (here / "run/latest").exists(), "no pointer names what is not there"

    request = RestoreRequest(piece_bytes=10_000, if_empty=True)
    result = restore(store, here, request, pace=bench.pace())
    if at == "cleaned":
        assert result.entry is None
    else:
        assert result.bytes_fetched <= manifest.bytes
    assert bench.tree(here, name) == bench.tree(there, name)
    assert (here / "run/latest").read_text() == "checkpoint-500"
    assert not list((here / ".ckptsyncd").glob("restore-*"))
    assert (here / name / "model.safetensors").stat().st_nlink == 1


def main(there: Path, here: Path, at: str) -> None:
    """Restore in a process that kills itself."""
    store, _ = stored(there)
    restore(store, here, RestoreRequest(piece_bytes=10_000), Killer(at), bench.pace())


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
