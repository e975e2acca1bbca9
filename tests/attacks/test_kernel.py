"""The kernel sets limits or stops us: what is saved becomes safe all the same."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests import servers
from tests.process.conftest import Start
from tests.process.program import command, until
from tests.process.saving import MIB, by_rename, content, safetensors_bytes, trainer_checkpoint

HASTY = ("--linger-seconds", "0s", "--backlog", "keep-all")
#: Longer than what counts as having been suspended (``edge.loop.OVERSLEPT_SECONDS``).
STOPPED_SECONDS = 11.0


def test_stopped_and_continued(tmp_path: Path, root: Path, durable: str, program: Start) -> None:
    """What was saved while the daemon was stopped is found when it goes on, and safe."""
    root.mkdir()
    daemon = program(root, durable, *HASTY).start()
    by_rename(root / "before.pt", 3000, 1)
    daemon.until_safe("before.pt")
    daemon.signal(signal.SIGSTOP)
    by_rename(root / "meanwhile.pt", 3000, 2)
    trainer_checkpoint(root, 10, weights=3000)
    threading.Event().wait(STOPPED_SECONDS)
    daemon.signal(signal.SIGCONT)
    for name in ("meanwhile.pt", "checkpoint-10"):
        daemon.until_safe(name)
    assert daemon.stop() == 0
    del tmp_path


def test_hardly_any_descriptors(tmp_path: Path, root: Path, durable: str, program: Start) -> None:
    """With 40 descriptors and a dozen impatient clients a checkpoint of 60 files gets through."""
    root.mkdir()
    daemon = program(root, durable, *HASTY, "--hands", "4")
    daemon.under = ("sh", "-c", 'ulimit -n 40; exec "$@"', "sh")
    daemon.start()
    folder = root / "checkpoint-10"
    folder.mkdir()
    for number in range(60):
        (folder / f"shard-{number:02d}.safetensors").write_bytes(safetensors_bytes(900, number))
    trainer_checkpoint(root, 10, weights=3000)
    stop = threading.Event()

    def ask() -> None:
        while not stop.wait(0.02):
            daemon.status()

    clients = [threading.Thread(target=ask, daemon=True) for _ in range(12)]
    for client in clients:
        client.start()
    daemon.until_safe("checkpoint-10")
    stop.set()
    for client in clients:
        client.join()
    assert daemon.stop() == 0
    back = command("restore", durable, str(tmp_path / "back"))
    assert back.returncode == 0, back.stderr
    assert content(tmp_path / "back") == content(root)


def test_names_and_depths_at_their_limits(
    tmp_path: Path, root: Path, durable: str, program: Start
) -> None:
    """Names of 255 bytes, directories 50 deep, 2,400 bytes of path: each comes back."""
    deep = root / "/".join(["d" * 47] * 50)
    deep.mkdir(parents=True)
    by_rename(deep / "deep.pt", 3000, 1)
    by_rename(root / f"{'n' * 252}.pt", 3000, 2)
    daemon = program(root, durable, *HASTY).start()
    until(
        lambda: list(daemon.states().values()) == ["safe", "safe"],
        lambda: f"both are safe: {daemon.states()}\n{daemon.log[-1500:]}",
    )
    assert daemon.stop() == 0
    for number, name in enumerate((str((deep / "deep.pt").relative_to(root)), f"{'n' * 252}.pt")):
        target = str(tmp_path / f"back{number}")
        back = command("restore", durable, target, "--checkpoint", name)
        assert back.returncode == 0, back.stderr
        assert (Path(target) / name).read_bytes() == (root / name).read_bytes()


def test_a_save_five_times_a_second(root: Path, durable: str, program: Start) -> None:
    """Saved every 200 ms under new names: the newest is safe soon after the last, and none torn."""
    root.mkdir()
    daemon = program(root, durable, "--linger-seconds", "0s").start()
    for number in range(40):
        by_rename(root / f"step-{number}.pt", 100_000, number)
        threading.Event().wait(0.2)
    daemon.until_safe("step-39.pt")
    assert daemon.stop() == 0
    assert command("verify", durable, "--level", "full").returncode == 0


def test_a_name_that_the_store_cannot_take(
    root: Path, prefix: str, program: Start, s3_server: servers.S3Server
) -> None:
    """Over S3's 1,024 bytes: that checkpoint says why it is not safe, and nothing else suffers."""
    long = root / "/".join(["d" * 200] * 6)
    long.mkdir(parents=True)
    by_rename(long / "long.pt", 3000, 1)
    by_rename(root / "short.pt", 3000, 2)
    where = ("--s3-endpoint", s3_server.endpoint, "--s3-path-style")
    daemon = program(root, prefix, *HASTY, *where).start()
    until(
        lambda: sorted(daemon.states().values()) == ["parked", "safe"],
        lambda: f"one is safe and one parked: {daemon.states()}\n{daemon.log[-1500:]}",
    )
    status = daemon.status() or {}
    (parked,) = (row for row in status["checkpoints"] if row["state"] == "parked")
    left = 1024 - len(prefix.rpartition("/")[2]) - 1
    assert f"over the store's {left}" in parked["reason"]
    assert (parked["at_risk"], status["store_failing"], status["exit_code"]) == (True, "", 6)
    assert "shorten the names" in daemon.log
    assert daemon.stop() == 6
    assert command("verify", prefix, "--level", "full", *where).returncode == 0


def test_one_core_that_somebody_else_uses(root: Path, durable: str, program: Start) -> None:
    """Beside a process that never rests checkpoints become safe, and status answers."""
    on_one_core = ("taskset", "-c", str(min(os.sched_getaffinity(0))))
    rival = subprocess.Popen([*on_one_core, sys.executable, "-c", "while True: pass"])
    try:
        root.mkdir()
        daemon = program(root, durable, *HASTY)
        daemon.under = on_one_core
        daemon.start()
        for step in (10, 20):
            trainer_checkpoint(root, step, weights=MIB)
        for step in (10, 20):
            daemon.until_safe(f"checkpoint-{step}")
        assert daemon.status() is not None
        assert daemon.stop() == 0
    finally:
        rival.kill()
        rival.wait()


@contextmanager
def memory_limit(count: int) -> Iterator[Path]:
    """Make a control group whose members may have so many bytes, page cache included."""
    for base, limit in (
        (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"),
        (Path("/sys/fs/cgroup"), "memory.max"),
    ):
        group = base / f"ckptsyncd-test-{os.getpid()}"
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            if (group / limit).exists():
                (group / limit).write_text(str(count))
                yield group
                return
        finally:
            group.rmdir()
    pytest.skip("no control group can be made here that limits memory")


def test_a_memory_limit_far_below_the_files(root: Path, durable: str, program: Start) -> None:
    """With 96 MiB for everything, files of 128 MiB become safe, and nobody is killed."""
    root.mkdir()
    with memory_limit(96 * MIB) as group:
        daemon = program(root, durable, *HASTY)
        enter = f'echo $$ > {group}/cgroup.procs; exec "$@"'
        daemon.under = ("sh", "-c", enter, "sh")
        daemon.start()
        for number in range(2):
            by_rename(root / f"step-{number}.pt", 128 * MIB, number)
        for number in range(2):
            daemon.until_safe(f"step-{number}.pt")
        assert daemon.stop() == 0
    assert command("verify", durable, "--level", "full").returncode == 0
