"""What a real disk can do to a watcher: overflow, no watches, no events, no root, odd names."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.process.conftest import Start
from tests.process.program import Program, command, until
from tests.process.saving import MIB, by_rename, content, trainer_checkpoint

#: The kernel's queue of events; what comes beyond it is lost.
QUEUE = Path("/proc/sys/fs/inotify/max_queued_events")


def check_restored(daemon: Program, durable: str, root: Path, names: list[str]) -> None:
    """Assert that everything is safe and comes back as it is on disk."""
    for name in names:
        daemon.until_safe(name)
    assert daemon.stop() == 0
    back = root.parent / "back"
    for name in names:
        done = command("restore", durable, str(back), "--checkpoint", name)
        assert done.returncode == 0, done.stderr
    assert content(back) == content(root)


def watched(daemon: Program) -> list[str]:
    """Return what the kernel says that the daemon watches."""
    assert daemon.process is not None
    found: list[str] = []
    for path in Path(f"/proc/{daemon.process.pid}/fdinfo").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            found += [line for line in path.read_text().splitlines() if line.startswith("inotify")]
    return found


def is_stopped(daemon: Program) -> bool:
    """Return whether every thread of the daemon stands still."""
    assert daemon.process is not None
    tasks = Path(f"/proc/{daemon.process.pid}/task").iterdir()
    return all("State:\tT" in (task / "status").read_text() for task in tasks)


def test_a_flood_of_events(root: Path, durable: str, program: Start) -> None:
    """More events than the kernel keeps while nobody reads: what was saved meanwhile is found."""
    daemon = program(root, durable).start()
    root.mkdir(exist_ok=True)
    # A quick daemon finds and stores the first checkpoint before its watch is in place.
    until(lambda: watched(daemon), "the root is watched")
    trainer_checkpoint(root, 1)
    daemon.until_safe("checkpoint-1")
    daemon.signal(signal.SIGSTOP)
    until(lambda: is_stopped(daemon), "nobody reads")
    most = int(QUEUE.read_text())
    for number in range(most // 2 + 500):  # a file that is made and removed is two events at least
        path = root / f"scratch-{number % 7}.log"
        path.touch()
        path.unlink()
    trainer_checkpoint(root, 2)
    by_rename(root / "late.pt", MIB, 2)
    shutil.rmtree(root / "checkpoint-1")
    daemon.signal(signal.SIGCONT)
    for name in ("checkpoint-2", "late.pt"):
        daemon.until_safe(name)
    until(lambda: (daemon.status() or {}).get("overflows"), lambda: f"it is told\n{daemon.log}")
    # And what is saved after that sends events again.
    trainer_checkpoint(root, 3)
    check_restored(daemon, durable, root, ["checkpoint-2", "late.pt", "checkpoint-3"])


@pytest.mark.parametrize("watches", [0, 2])
def test_too_few_watches(watches: int, root: Path, durable: str, program: Start) -> None:
    """With no watch left, or with two, directories are polled, told, and nothing is missed."""
    limit = 'echo "$0" > /proc/sys/user/max_inotify_watches && exec "$@"'
    daemon = program(root, durable, "--poll-seconds", "200ms")
    daemon.under = ("unshare", "--user", "--map-root-user", "sh", "-c", limit, str(watches))
    for run in "abc":
        (root / "runs" / run).mkdir(parents=True)
    daemon.start()
    if daemon.ended():
        pytest.skip(f"needs user namespaces: {daemon.log.strip()[-200:]}")
    for step, run in enumerate("abc", 1):
        trainer_checkpoint(root / "runs" / run, step)
    by_rename(root / "top.pt", MIB, 1)
    until(lambda: (daemon.status() or {}).get("polled"), "status tells what is polled")
    names = [f"runs/{run}/checkpoint-{step}" for step, run in enumerate("abc", 1)]
    check_restored(daemon, durable, root, [*names, "top.pt"])


@contextlib.contextmanager
def mounted(place: Path) -> Iterator[Path]:
    """Mount something that lives in user space, and yield where."""
    for name in ("lower", "upper", "work", "mount"):
        (place / name).mkdir(parents=True)
    layers = f"lowerdir={place}/lower,upperdir={place}/upper,workdir={place}/work"
    ways = (
        ["bindfs", str(place / "upper"), str(place / "mount")],
        ["fuse-overlayfs", "-o", layers, str(place / "mount")],
    )
    found = [way for way in ways if shutil.which(way[0])]
    if not found:
        pytest.skip("needs bindfs or fuse-overlayfs")
    done = subprocess.run(found[0], capture_output=True, text=True, check=False, timeout=60)
    if done.returncode:
        pytest.skip(f"cannot mount here: {done.stderr.strip()}")
    try:
        yield place / "mount"
    finally:
        unmount = shutil.which("fusermount3") or shutil.which("fusermount") or "fusermount"
        subprocess.run([unmount, "-u", "-z", str(place / "mount")], check=True, timeout=60)


def test_a_mount_without_events(tmp_path: Path, durable: str, program: Start) -> None:
    """A mount that lives in user space is polled, status says so, and nothing is missed."""
    with mounted(tmp_path / "fuse") as place:
        root = place / "checkpoints"
        root.mkdir()
        daemon = program(root, durable, "--poll-seconds", "200ms").start()
        until(lambda: (daemon.status() or {}).get("polled"), "it is polled")
        trainer_checkpoint(root, 1)
        by_rename(root / "best.pt", MIB, 3)
        daemon.until_safe("checkpoint-1")
        trainer_checkpoint(root, 2)
        shutil.rmtree(root / "checkpoint-1")
        # Behind the mount's back, as another machine would.
        behind = tmp_path / "fuse/upper/checkpoints"
        trainer_checkpoint(behind, 3)
        check_restored(daemon, durable, root, ["best.pt", "checkpoint-2", "checkpoint-3"])


def test_polling_because_a_user_says_so(root: Path, durable: str, program: Start) -> None:
    """Told to poll, it takes no watch and says so; nothing that is saved or renamed is missed."""
    daemon = program(root, durable, "--watch", "poll", "--poll-seconds", "200ms").start()
    trainer_checkpoint(root, 1)
    by_rename(root / "best.pt", MIB, 3)
    daemon.until_safe("checkpoint-1")
    assert not watched(daemon)
    assert (daemon.status() or {}).get("polled")
    (root / "checkpoint-1").rename(root / "checkpoint-2")
    by_rename(root / "last.pt", MIB, 4)
    check_restored(daemon, durable, root, ["checkpoint-2", "best.pt", "last.pt"])


def test_a_root_that_is_removed_and_made_again(root: Path, durable: str, program: Start) -> None:
    """What is saved into a new root of the same name is found, with and without a pause."""
    daemon = program(root, durable).start()
    assert not watched(daemon)
    for step in (1, 2, 3):
        shutil.rmtree(root, ignore_errors=True)
        if step == 3:
            until(lambda: not watched(daemon), "the watch is over")
        trainer_checkpoint(root, step)
        daemon.until_safe(f"checkpoint-{step}")
    check_restored(daemon, durable, root, ["checkpoint-3"])


def test_trees_that_are_moved(tmp_path: Path, root: Path, durable: str, program: Start) -> None:
    """``mkdir -p`` in a hurry, a tree that is moved in, and one that is moved out again."""
    daemon = program(root, durable).start()
    outside = tmp_path / "outside"
    trainer_checkpoint(root / "a/b/c", 1)
    trainer_checkpoint(outside / "run", 2)
    trainer_checkpoint(outside / "run/deep/er", 3)
    (outside / "run").rename(root / "moved")
    names = ["a/b/c/checkpoint-1", "moved/checkpoint-2", "moved/deep/er/checkpoint-3"]
    for name in names:
        daemon.until_safe(name)
    (root / "moved").rename(outside / "away")
    trainer_checkpoint(outside / "away", 4)  # no business of ours any more
    trainer_checkpoint(root / "a/b", 5)
    check_restored(daemon, durable, root, ["a/b/c/checkpoint-1", "a/b/checkpoint-5"])
    listed = command("list", durable).stdout
    assert all(name in listed for name in names)
    assert "checkpoint-4" not in listed


def test_names_of_any_bytes(root: Path, durable: str, program: Start) -> None:
    """Bytes that are no UTF-8, spaces, ``=``, a leading dot and a newline all come back."""
    daemon = program(root, durable).start()
    odd = os.fsdecode(b"run \xff\xfe=1")
    folders = [root / odd, root / ".hidden run", root / "größe=€"]
    for step, folder in enumerate(folders, 1):
        trainer_checkpoint(folder, step)
    by_rename(root / os.fsdecode(b"\x80weights\n.pt"), MIB, 7)
    until(
        lambda: sum(state == "safe" for state in daemon.states().values()) == 4,
        lambda: f"all four are safe: {daemon.states()}",
    )
    assert daemon.stop() == 0
    back = root.parent / "back"
    for name in [f"{folder.name}/checkpoint-{n}" for n, folder in enumerate(folders, 1)]:
        done = command("restore", durable, str(back), "--checkpoint", name)
        assert done.returncode == 0, done.stderr
    name = os.fsdecode(b"\x80weights\n.pt")
    assert command("restore", durable, str(back), "--checkpoint", name).returncode == 0
    assert content(back) == content(root)
