"""The kernel sets limits or stops us: what is saved becomes safe all the same."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests import servers
from tests.process.conftest import Start
from tests.process.program import Program, command, until
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


@contextmanager
def crowd(daemon: Program, port: int, count: int) -> Iterator[None]:
    """Hold so many connections to the socket and so many to the HTTP port, and say nothing."""
    with ExitStack() as held:
        for _ in range(count):
            client = held.enter_context(socket.socket(socket.AF_UNIX))
            client.setblocking(False)
            with suppress(BlockingIOError):  # the queue is full: these knock in vain
                client.connect(str(daemon.socket_path))
            other = held.enter_context(socket.create_connection(("127.0.0.1", port), 20.0))
            other.sendall(b"GET /metrics HTTP/1.1\r\n")
        yield


def scraped(port: int) -> bool:
    """Return whether a scrape is answered, with what it is for."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5.0) as page:
            return b"ckptsyncd_" in page.read()
    except OSError:
        return False


@pytest.mark.server
@pytest.mark.parametrize("limit", [64, 256])
def test_few_descriptors_for_everything(
    tmp_path: Path, root: Path, prefix: str, program: Start, s3_server: servers.S3Server, limit: int
) -> None:
    """Many files, hands, clients that say nothing, scrapes: all is safe, and all comes back."""
    root.mkdir()
    few = ("sh", "-c", f'ulimit -n {limit}; exec "$@"', "sh")
    (port,) = servers.free_ports(1)
    where = ("--s3-endpoint", s3_server.endpoint, "--s3-path-style")
    more = ("--hands", "32", "--metrics-port", str(port), "--metrics-host", "127.0.0.1")
    daemon = program(root, prefix, *where, *HASTY, *more, "--piece-bytes", "5MiB")
    daemon.under = few
    daemon.start()
    until(lambda: scraped(port), "a scrape is answered")
    folder = root / "checkpoint-10"
    folder.mkdir()
    with crowd(daemon, port, limit):
        for number in range(100):
            shard = safetensors_bytes(900, number)
            (folder / f"shard-{number:03d}.safetensors").write_bytes(shard)
        by_rename(root / "large.pt", 40 * MIB, 1)
        trainer_checkpoint(root, 10, weights=3000)
        manifests = f"{urlsplit(prefix).path.strip('/')}/.ckptsyncd/manifests/"
        until(
            lambda: len(s3_server.objects(manifests)) == 2,
            lambda: f"both are committed: {daemon.log[-3000:]}",
        )
    until(lambda: scraped(port), "a scrape is answered")
    for name in ("large.pt", "checkpoint-10"):
        daemon.until_safe(name)
    assert daemon.stop() == 0
    assert "Traceback" not in daemon.log
    for words in (("verify", prefix, "--level", "full"), ("restore", prefix, str(tmp_path / "b"))):
        done = command(*words, *where, under=few)
        assert done.returncode == 0, done.stderr
    newest = content(tmp_path / "b")
    assert newest.items() <= content(root).items()
