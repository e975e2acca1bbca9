"""A disk under us hangs or can no longer be written: what is not safe is not called so."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.process.conftest import Start
from tests.process.program import Program, command, until
from tests.process.saving import by_rename, content
from tests.stores.mounts import ext4, fuse_process

HASTY = ("--linger-seconds", "0s", "--backlog", "keep-all", "--stop-timeout", "8s")
#: The stop, and what a busy machine adds.
STOPPED_SECONDS = 30.0


def stand_still(group: int) -> bool:
    """Return whether every thread of a group of processes is stopped."""
    states = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            if os.getpgid(int(process.name)) == group:
                states += [(task / "status").read_text() for task in (process / "task").iterdir()]
    return all("State:\tT" in state for state in states)


@pytest.fixture
def hangable(tmp_path: Path, program: Start) -> Iterator[tuple[Path, Callable[[bool], None]]]:
    """Mount a file system through a program that can be stopped, and go on.

    It goes on before the daemons are ended: nobody can kill who waits for what such a program has
    already heard.
    """
    del program
    folder = tmp_path / "fuse"
    folder.mkdir()
    with fuse_process(folder) as (point, process):

        def hang(on: bool) -> None:  # noqa: FBT001 - one switch
            os.killpg(process.pid, signal.SIGSTOP if on else signal.SIGCONT)
            if on:
                until(lambda: stand_still(process.pid), "the mount's program is stopped")

        try:
            yield point, hang
        finally:
            hang(False)


def stop_while_it_hangs(daemon: Program, hang: Callable[[bool], None]) -> int:
    """Ask for a stop, see it end in time, let the mount go on, and return the exit code.

    The kernel lets nobody go who waits for what the mount's program has already heard.
    """
    daemon.signal()
    until(lambda: '"daemon.stopped"' in daemon.log, lambda: daemon.log[-2000:], STOPPED_SECONDS)
    hang(False)
    return daemon.wait(STOPPED_SECONDS)


def break_down(disk: Path) -> None:
    """Make an ext4 read-only as a broken disk does: files that are open for writing are no help."""
    mounts = Path("/proc/self/mounts").read_text().splitlines()
    device = next(line.split()[0] for line in mounts if line.split()[1] == str(disk))
    subprocess.run(["mount", "-o", "remount,errors=remount-ro", str(disk)], check=True, timeout=20)
    try:
        Path(f"/sys/fs/ext4/{Path(device).name}/trigger_fs_error").write_text("broken")
    except OSError as error:
        pytest.skip(f"this kernel cannot pretend a broken disk: {error}")


def test_a_watch_root_that_hangs_is_not_called_safe(
    hangable: tuple[Path, Callable[[bool], None]], durable: str, program: Start
) -> None:
    """Who is stopped while the disk does not answer says so, ends in time, and with exit code 6."""
    point, hang = hangable
    root = point / "checkpoints"
    root.mkdir()
    daemon = program(root, durable, "--stop-timeout", "8s").start()
    by_rename(root / "a.pt", 3000, 1)
    daemon.until_safe("a.pt")
    hang(True)
    assert daemon.status() is not None
    assert stop_while_it_hangs(daemon, hang) == 6
    assert "has not answered 'scan'" in daemon.log
    assert "everything that was whole is safe" not in daemon.log


def test_a_volume_that_hangs_holds_up_nobody_else(
    hangable: tuple[Path, Callable[[bool], None]], root: Path, program: Start
) -> None:
    """What waits for it is at risk, a stop ends in time, and the next start finishes the work."""
    point, hang = hangable
    root.mkdir()
    url = f"file://{point}/durable"
    daemon = program(root, url, *HASTY).start()
    by_rename(root / "a.pt", 3000, 1)
    daemon.until_safe("a.pt")
    latest = point / "durable/.ckptsyncd/latest"
    until(lambda: list(latest.glob("*.json")), "nothing is left to do")
    hang(True)
    by_rename(root / "b.pt", 3000, 2)
    until(lambda: ("b.pt", 1) in daemon.states(), "b.pt is seen")
    until(lambda: (daemon.status() or {}).get("unsynced_bytes"), "it is told to be at risk")
    assert stop_while_it_hangs(daemon, hang) == 6
    daemon.start()
    daemon.until_safe("b.pt")
    assert daemon.stop() == 0
    assert command("verify", url, "--level", "full").returncode == 0


def test_a_mount_that_hangs_for_a_while_loses_nothing(
    hangable: tuple[Path, Callable[[bool], None]], root: Path, program: Start
) -> None:
    """Ledger and store on a disk that stands for some seconds: all goes on where it was."""
    point, hang = hangable
    root.mkdir()
    daemon = program(root, f"file://{point}/durable", *HASTY, "--state-dir", str(point / "state"))
    daemon.start()
    for number in range(3):
        hang(True)
        by_rename(root / f"step-{number}.pt", 3000, number)
        daemon.status()  # answered although the ledger hangs
        hang(False)
        daemon.until_safe(f"step-{number}.pt")
    assert daemon.stop() == 0


def test_a_state_directory_that_hangs_stops_no_upload(
    hangable: tuple[Path, Callable[[bool], None]], root: Path, durable: str, program: Start
) -> None:
    """Its disk does not answer: that is told, checkpoints become safe, and a stop ends in time."""
    point, hang = hangable
    root.mkdir()
    daemon = program(root, durable, *HASTY, "--state-dir", str(point / "state")).start()
    by_rename(root / "a.pt", 3000, 1)
    daemon.until_safe("a.pt")
    hang(True)
    for number, name in enumerate(("b.pt", "c.pt")):
        by_rename(root / name, 3000, number)
        daemon.until_safe(name)
    until(lambda: "the ledger cannot be written" in daemon.log, lambda: daemon.log[-2000:])
    assert stop_while_it_hangs(daemon, hang) == 0
    assert "the loop has not turned" not in daemon.log
    daemon.start()
    by_rename(root / "d.pt", 3000, 3)
    daemon.until_safe("d.pt")
    assert daemon.stop() == 0
    assert command("verify", durable, "--level", "full").returncode == 0


def test_a_log_that_nobody_reads_stops_no_upload(
    tmp_path: Path, root: Path, durable: str, program: Start
) -> None:
    """Whoever reads the log is stopped and its pipe full: all goes on, a stop ends in time."""
    root.mkdir()
    fifo = tmp_path / "log"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDWR)
    try:
        fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, 4096)
        daemon = program(root, durable, *HASTY, "--log-level", "debug")
        daemon.under = ("sh", "-c", f'exec "$@" 2>{fifo}', "sh")
        daemon.start()
        for number in range(12):
            by_rename(root / f"step-{number}.pt", 3000, number)
            daemon.until_safe(f"step-{number}.pt")
        assert daemon.stop(STOPPED_SECONDS) == 0
        assert len(os.read(reader, 65536)) > 3000, "the pipe was full"
    finally:
        os.close(reader)


def test_a_state_directory_that_becomes_read_only_stops_no_upload(
    tmp_path: Path, root: Path, durable: str, program: Start
) -> None:
    """The ledger cannot be written any more: that is told, checkpoints become safe all the same."""
    root.mkdir()
    folder = tmp_path / "disk"
    folder.mkdir()
    with ext4(folder) as disk:
        daemon = program(root, durable, *HASTY, "--state-dir", str(disk / "state")).start()
        by_rename(root / "a.pt", 3000, 1)
        daemon.until_safe("a.pt")
        break_down(disk)
        by_rename(root / "b.pt", 3000, 2)
        daemon.until_safe("b.pt")
        until(lambda: "the ledger cannot be written" in daemon.log, lambda: daemon.log)
        assert daemon.stop() == 0
    back = tmp_path / "back"
    done = command("restore", durable, str(back))
    assert done.returncode == 0, done.stderr
    assert content(back).items() <= content(root).items()
