"""What happens when the kernel gives no watches, no instance, or no events at all.

The limits are lowered in a user namespace of a child process, so that nobody else is disturbed.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from ckptsyncd.core.messages import Polled, Touched
from ckptsyncd.edge.watcher import MASK, Watcher
from ckptsyncd.edge.watches import MOST_POLLED, Watches
from tests.edge.world import Inbox, as_nobody, needs_root

REPORT = """
import os, sys
from pathlib import Path
from ckptsyncd.edge.watcher import Watcher
for limit in sys.argv[2:]:
    name, value = limit.split("=")
    Path("/proc/sys/user", name).write_text(value)
seen = []
watcher = Watcher(Path(sys.argv[1]), seen.append)
watcher.turn(0)
Path(sys.argv[1], "c", "file").write_bytes(b"")
watcher.turn(0)
for message in seen:
    print(message)
print(watcher.watches, "watched")
watcher.stop()
"""


def limited(root: Path, *limits: str) -> str:
    """Return what a watcher of the root says in a process with such limits."""
    command = ["unshare", "--user", "--map-root-user", sys.executable, "-c", REPORT, str(root)]
    done = subprocess.run(
        [*command, *limits], capture_output=True, text=True, timeout=60, check=False
    )
    if "unshare" in done.stderr or "/proc/sys/user" in done.stderr:
        pytest.skip(f"needs user namespaces: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a watch root with three directories."""
    for name in "abc":
        (tmp_path / "run" / name).mkdir(parents=True)
    return tmp_path / "run"


def test_without_watches_subtrees_are_polled(root: Path) -> None:
    """With two watches for four directories two are polled, and the reason names the sysctl."""
    said = limited(root, "max_inotify_watches=2")
    assert said.count("Polled(path=") == 2
    assert said.count("no inotify watches left; raise fs.inotify.max_user_watches (now ") == 2
    assert "2 watched" in said
    assert "Touched(path='', arrived=False, gone=False, tree=True)" in said


def test_without_any_watch_everything_is_polled(root: Path) -> None:
    """With no watch at all, the root is polled once and nothing else is said."""
    said = limited(root, "max_inotify_watches=0")
    assert said.count("Polled(path='', ") == said.count("Polled(") == 1
    assert "0 watched" in said


def test_without_an_instance_everything_is_polled(root: Path) -> None:
    """With no inotify instance the watcher starts all the same, and names the sysctl."""
    said = limited(root, "max_inotify_instances=0")
    assert "Polled(path='', reason='no inotify instances left; raise fs.inotify.max_user_in" in said
    assert said.count("Polled(") == 1
    assert "Touched(path='', arrived=False, gone=False, tree=True)" in said


class Refusing:
    """An inotify instance without watches to give."""

    def add_watch(self, path: str, mask: int) -> int:
        """Refuse as the kernel does."""
        raise OSError(28, f"No space left on device for mask {mask}", path)

    def rm_watch(self, wd: int) -> None:
        """Know no watch."""
        raise OSError(22, "Invalid argument", wd)


def test_many_polled_subtrees_become_one(tmp_path: Path) -> None:
    """Beyond a number of polled subtrees everything is polled, told once."""
    told: list[tuple[str, str]] = []
    watches = Watches(str(tmp_path), Refusing(), MASK, lambda *what: told.append(what))
    for number in range(MOST_POLLED + 10):
        (tmp_path / f"d{number}").mkdir()
        watches.cover(f"d{number}")
    assert [path for path, _ in told] == [f"d{number}" for number in range(MOST_POLLED)] + [""]


def test_file_system_without_events_is_polled(root: Path) -> None:
    """A device known to hide other machines' writes is polled and named; the rest is watched."""
    inbox = Inbox()
    watcher = Watcher(root, inbox.put)
    watcher._watches._hidden[root.stat().st_dev] = "NFS"
    watcher.turn(0)
    reason = "NFS does not report what other machines write"
    assert inbox.drained() == [Polled("", reason), Touched("", tree=True)]
    assert watcher.watches == 0
    watcher.stop()


@needs_root
def test_unreadable_directory_is_polled() -> None:
    """A directory that may not be watched is told (``lost+found`` is not); the rest is watched."""
    inbox = Inbox()
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        (Path(name) / "run/open").mkdir(parents=True)
        (Path(name) / "run/secret").mkdir(mode=0o700)
        (Path(name) / "run/lost+found").mkdir(mode=0o700)
        with as_nobody():
            watcher = Watcher(Path(name) / "run", inbox.put)
            watcher.turn(0)
        secret = Polled("secret", "cannot be watched: Permission denied")
        assert inbox.drained() == [secret, Touched("", tree=True)]
        assert watcher.watches == 2
        watcher.stop()
