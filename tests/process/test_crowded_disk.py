"""A trainer that fills its disk: it never runs out of space because of us."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.process.conftest import Start
from tests.process.program import command, until
from tests.process.saving import MIB, content, trainer_checkpoint

#: A checkpoint is about three times its weights.
WEIGHTS = 2 * MIB
#: That takes half a minute so. What is on its way keeps a file's space, so pieces are small.
SLOWLY = ("--bandwidth", "192KiB/s", "--piece-bytes", "256KiB")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a disk of 32 MiB."""
    point = tmp_path / "disk"
    point.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=32m", "none", str(point)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount")
    yield point
    subprocess.run(["umount", "-l", str(point)], check=True)


def fill(disk: Path) -> Path:
    """Write a file until nothing is free any more, as a trainer would."""
    filler = disk / "filler"
    with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(MIB // 4))
    return filler


def test_a_full_disk_is_left_to_the_trainer(disk: Path, durable: str, program: Start) -> None:
    """On a full disk what was rotated away is let go of, status says why, and the next is safe."""
    root = disk / "checkpoints"
    root.mkdir()
    daemon = program(root, durable, *SLOWLY, "--pins-floor-bytes", "8MiB").start()
    trainer_checkpoint(root, 1, WEIGHTS)
    until(lambda: daemon.states().get(("checkpoint-1", 1)) == "uploading", "it is on its way")
    shutil.rmtree(root / "checkpoint-1")
    assert shutil.disk_usage(disk).used > 5 * MIB
    filler = fill(disk)
    until(
        lambda: daemon.states().get(("checkpoint-1", 1)) == "vanished", lambda: daemon.log[-2000:]
    )
    rows = (daemon.status() or {})["checkpoints"]
    assert "pins_floor_bytes" in next(row["reason"] for row in rows)
    shown = command("status", "--socket", str(daemon.socket_path)).stdout
    assert "are free on the watch root's disk, less than pins_floor_bytes (8.0 MiB)" in shown
    until(lambda: shutil.disk_usage(disk).free > 5 * MIB, "the trainer has its space again")
    filler.unlink()
    until(lambda: not (daemon.status() or {})["warnings"], "the warning is over")
    trainer_checkpoint(root, 2)
    daemon.signal()
    assert daemon.wait() in (0, 6)
    again = program(root, durable, state="daemon-0").start()
    again.until_safe("checkpoint-2")
    back = disk.parent / "back"
    assert command("restore", durable, str(back)).returncode == 0
    assert content(back) == content(root)
