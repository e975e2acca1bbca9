"""A disk under us that is slow, and answers: the newest goes first, and nobody waits for long."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.process.conftest import Start
from tests.process.program import Program, command, until
from tests.process.saving import MIB, by_rename, content
from tests.stores.mounts import ext4

HASTY = ("--linger-seconds", "0s", "--stop-timeout", "8s")
#: So many reads and so many writes a second: a flush takes half a second, 128 KiB a tenth.
SLOW = 10
THROTTLES = Path("/sys/fs/cgroup/blkio")
#: The stop, what is waited for at the end, and what a busy machine adds.
STOPPED_SECONDS = 20.0


def device_of(point: Path) -> str:
    """Return the numbers of the device that a file system lies on."""
    number = point.stat().st_dev
    return f"{os.major(number)}:{os.minor(number)}"


@pytest.fixture
def slow(tmp_path: Path, program: Start) -> Iterator[Path]:
    """Mount an ext4 on a device of its own that does so few things a second."""
    del program
    folder = tmp_path / "disk"
    folder.mkdir()
    with ext4(folder) as point:
        rules = [THROTTLES / f"blkio.throttle.{way}_iops_device" for way in ("read", "write")]
        if not all(rule.exists() for rule in rules):
            pytest.skip("no control group can be made here that slows a disk down")
        try:
            for rule in rules:
                rule.write_text(f"{device_of(point)} {SLOW}")
            yield point
        finally:
            for rule in rules:
                rule.write_text(f"{device_of(point)} 0")


def far_saved(path: Path, seed: int) -> None:
    """Save a checkpoint whose bytes have to come from the disk again."""
    by_rename(path, 3 * MIB, seed)
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def committed(durable: Path) -> list[str]:
    """Return the checkpoints in a volume by when they were committed."""
    records = (durable / ".ckptsyncd" / "manifests").glob("*.json")
    rows = sorted(records, key=lambda path: path.stat().st_mtime_ns)
    return [json.loads(path.read_text())["checkpoint"] for path in rows]


def turns(daemon: Program) -> None:
    """See that the daemon answers at once, and that its loop never stood."""
    begun = time.monotonic()
    assert daemon.status() is not None
    assert time.monotonic() - begun < 5.0
    assert "the loop has not turned" not in daemon.log


@pytest.mark.slow
def test_a_slow_watch_root(tmp_path: Path, slow: Path, program: Start) -> None:
    """The newest of three goes first, then the others; all of them are whole."""
    root, durable = slow / "checkpoints", tmp_path / "durable"
    root.mkdir()
    for number in range(3):
        far_saved(root / f"step-{number}.pt", number)
    one = ("--hands", "1", "--backlog", "keep-all")  # two hands may end in any order
    daemon = program(root, f"file://{durable}", *HASTY, *one).start()
    for number in range(3):
        daemon.until_safe(f"step-{number}.pt")
        turns(daemon)
    assert committed(durable)[0] == "step-2.pt"
    assert daemon.stop(STOPPED_SECONDS) == 0
    assert command("verify", f"file://{durable}", "--level", "full").returncode == 0


@pytest.mark.slow
def test_a_slow_state_directory(slow: Path, root: Path, durable: str, program: Start) -> None:
    """Saves become safe one after the other without waiting for the ledger's flushes to end."""
    root.mkdir()
    daemon = program(root, durable, *HASTY, "--state-dir", str(slow / "state")).start()
    for number in range(8):
        by_rename(root / f"step-{number}.pt", 3000, number)
        daemon.until_safe(f"step-{number}.pt")
        turns(daemon)
    assert daemon.stop(STOPPED_SECONDS) == 0
    assert daemon.start().stop(STOPPED_SECONDS) == 0
    assert "took this run over" not in daemon.log, "the epoch was written in time"


@pytest.mark.slow
def test_a_slow_volume(tmp_path: Path, slow: Path, root: Path, program: Start) -> None:
    """A stop that the disk is too slow for ends in time and says so; the next start goes on."""
    root.mkdir()
    url = f"file://{slow}/durable"
    daemon = program(root, url, *HASTY, "--stop-timeout", "1s").start()
    by_rename(root / "step-0.pt", 3000, 0)
    daemon.until_safe("step-0.pt")
    for number in range(1, 4):
        by_rename(root / f"step-{number}.pt", 6 * MIB, number)
    until(lambda: ("step-3.pt", 1) in daemon.states(), "the last one is seen")
    turns(daemon)
    begun = time.monotonic()
    code = daemon.stop(STOPPED_SECONDS)
    assert time.monotonic() - begun < STOPPED_SECONDS
    assert code in (0, 6), daemon.log
    assert (code == 0) == ('"everything that was whole is safe"' in daemon.log)
    daemon.options = HASTY
    daemon.start()
    daemon.until_safe("step-3.pt")
    until(lambda: (daemon.status() or {}).get("exit_code") == 0, "the older ones are too")
    assert daemon.stop(STOPPED_SECONDS) == 0
    assert command("verify", url, "--level", "full").returncode == 0
    back = command("restore", url, str(tmp_path / "back"))
    assert back.returncode == 0, back.stderr
    assert content(tmp_path / "back")["step-3.pt"] == content(root)["step-3.pt"]
