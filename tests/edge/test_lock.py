"""The locks: one daemon for a watch root and one for a state directory, and who it is."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from ckptsyncd.edge.holder import Holder, container_of, this_process
from ckptsyncd.edge.lock import Locks, lock_root, state_holder
from ckptsyncd.errors import AlreadyRunning, UsageError

DOCKER = "3f2a" * 16


def holder(tmp_path: Path, name: str = "one") -> Holder:
    """Return this process as the holder of a state directory of that name and of one root."""
    return this_process(
        socket=f"/run/{name}.sock",
        state_dir=str(tmp_path / "state" / name),
        watch_root=str(tmp_path / "root"),
        url="s3://bucket/run",
        started_at=1_700_000_000.0,
    )


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return an existing watch root."""
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


def test_second_daemon_on_the_same_state_directory(tmp_path: Path, root: Path) -> None:
    """The refusal names directory, pid, host and socket of the first, and how to ask it."""
    first = lock_root(holder(tmp_path))
    with pytest.raises(AlreadyRunning) as caught:
        lock_root(holder(tmp_path))
    text = str(caught.value)
    assert str(tmp_path / "state" / "one") in text
    assert f"pid {os.getpid()} on {os.uname().nodename}" in text
    assert "socket /run/one.sock" in text
    assert caught.value.hint.endswith("'ckptsyncd status --socket /run/one.sock'")
    assert caught.value.exit_code == 2
    first.release()
    assert root.exists()


def test_second_daemon_with_another_state_directory(tmp_path: Path, root: Path) -> None:
    """A daemon that shares only the watch root can still name the first, by its socket too."""
    first = lock_root(holder(tmp_path))
    with pytest.raises(AlreadyRunning, match=r"watch root .*root belongs.*socket /run/one\.sock"):
        lock_root(holder(tmp_path, "two"))
    first.release()
    lock_root(holder(tmp_path, "two")).release()
    assert list(root.iterdir()) == []


def test_the_root_may_appear_later(tmp_path: Path) -> None:
    """A watch root that does not exist yet is locked once it does, and then refuses a second."""
    first = lock_root(holder(tmp_path))
    second = lock_root(holder(tmp_path, "two"))
    assert not first.take_root()
    (tmp_path / "root").mkdir()
    assert first.take_root()
    assert first.take_root()
    with pytest.raises(AlreadyRunning, match=r"one\.sock"):
        second.take_root()
    first.release()
    assert second.take_root()
    second.release()


def test_a_root_made_anew_is_locked_anew(tmp_path: Path, root: Path) -> None:
    """After the watch root was removed and made again, the new directory is what is locked."""
    first = lock_root(holder(tmp_path))
    root.rename(tmp_path / "old")
    root.mkdir()
    assert first.take_root()
    with pytest.raises(AlreadyRunning):
        lock_root(holder(tmp_path, "two"))
    first.release()


def test_the_same_root_by_another_path(tmp_path: Path, root: Path) -> None:
    """A symlink to a locked watch root is the same watch root."""
    (tmp_path / "link").symlink_to(root)
    first = lock_root(holder(tmp_path))
    other = Holder(pid=1, state_dir=str(tmp_path / "two"), watch_root=str(tmp_path / "link"))
    with pytest.raises(AlreadyRunning):
        lock_root(other)
    first.release()


def test_a_failed_start_holds_nothing(tmp_path: Path, root: Path) -> None:
    """A daemon refused at the watch root gives its state directory back, and takes no name away."""
    first = lock_root(holder(tmp_path))
    with pytest.raises(AlreadyRunning):
        lock_root(holder(tmp_path, "two"))
    assert state_holder(tmp_path / "state" / "two")[1] is False
    assert (root / ".ckptsyncd" / "daemon.json").exists()
    first.release()


def test_a_killed_daemon_holds_nothing(tmp_path: Path, root: Path) -> None:
    """A kill -9 ends the locks; the name it left says who it was, and that it is dead."""
    code = (
        "import sys, os, signal\n"
        "from ckptsyncd.edge.holder import Holder; from ckptsyncd.edge.lock import lock_root\n"
        "lock_root(Holder(pid=os.getpid(), state_dir=sys.argv[1], watch_root=sys.argv[2]))\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    state = tmp_path / "state" / "one"
    ended = subprocess.run([sys.executable, "-c", code, str(state), str(root)], check=False)
    assert ended.returncode == -signal.SIGKILL
    found, alive = state_holder(state)
    assert found is not None
    assert found.pid > 0
    assert not alive
    lock_root(holder(tmp_path)).release()


def test_asking_who_holds_it(tmp_path: Path, root: Path) -> None:
    """The last user of a state directory is named with whether it is alive, and nobody if none."""
    assert root.exists()
    me = holder(tmp_path)
    assert state_holder(Path(me.state_dir)) == (None, False)
    locks = lock_root(me)
    assert state_holder(Path(me.state_dir)) == (me, True)
    locks.release()
    assert state_holder(Path(me.state_dir)) == (me, False)


def test_who_only_asks_does_not_keep_a_daemon_from_starting(tmp_path: Path) -> None:
    """The shared lock that `status` takes for a moment is not taken for a daemon."""
    code = (
        "import sys, pathlib\n"
        "from ckptsyncd.edge.lock import state_holder\n"
        "print('go', flush=True)\n"
        "while True: state_holder(pathlib.Path(sys.argv[1]))\n"
    )
    me = holder(tmp_path)
    lock_root(me).release()
    arguments = [sys.executable, "-c", code, me.state_dir]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE) as asker:
        assert asker.stdout is not None
        asker.stdout.readline()
        try:
            for _ in range(200):
                lock_root(me).release()
        finally:
            asker.kill()


def test_a_planted_symlink_is_not_followed(tmp_path: Path, root: Path) -> None:
    """Somebody who may write into the watch root cannot make the daemon write elsewhere."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (root / ".ckptsyncd").symlink_to(elsewhere)
    locks = lock_root(holder(tmp_path))
    assert list(elsewhere.iterdir()) == []
    locks.release()
    assert (root / ".ckptsyncd").is_symlink()


def test_a_root_without_room_for_a_name(tmp_path: Path, root: Path) -> None:
    """Where our name cannot be left, the lock holds all the same and the refusal says so."""
    (root / ".ckptsyncd").write_text("a file where our directory should be")
    first = lock_root(holder(tmp_path))
    with pytest.raises(AlreadyRunning, match="a process that left no name"):
        lock_root(holder(tmp_path, "two"))
    first.release()


def test_what_others_may_see(tmp_path: Path, root: Path) -> None:
    """The state directory is closed; the name in the watch root is for everybody."""
    locks = lock_root(holder(tmp_path))
    state = tmp_path / "state" / "one"
    assert stat.S_IMODE(state.stat().st_mode) == 0o700
    assert stat.S_IMODE((state / "lock").stat().st_mode) == 0o600
    assert stat.S_IMODE((root / ".ckptsyncd" / "daemon.json").stat().st_mode) & 0o444 == 0o444
    locks.release()
    locks.release()


def test_locks_are_not_inherited(tmp_path: Path, root: Path) -> None:
    """A trainer that we start does not keep our locks when we are gone."""
    locks = lock_root(holder(tmp_path))
    child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, close_fds=False)
    locks.release()
    lock_root(holder(tmp_path, "two")).release()
    child.communicate()
    assert root.exists()


@pytest.mark.parametrize("data", [b"", b"nonsense", b"[1]", b'{"pid": "x", "host": 3}', b"\xff"])
def test_a_foreign_holder_file_is_no_harm(data: bytes) -> None:
    """Whatever lies where the holder's name should lie, it names nobody and raises nothing."""
    assert Holder.decode(data) == Holder()


def test_holder_comes_back(tmp_path: Path) -> None:
    """A holder reads back as it was written."""
    me = holder(tmp_path)
    assert Holder.decode(me.encode()) == me
    assert not Locks(me).weakness


@pytest.mark.parametrize(
    ("cgroup", "mountinfo", "found"),
    [
        ("0::/\n", "", ""),
        (f"12:pids:/docker/{DOCKER}\n", "", DOCKER[:12]),
        (f"0::/system.slice/docker-{DOCKER}.scope\n", "", DOCKER[:12]),
        (f"0::/kubepods/burstable/pod1-2/{DOCKER}\n", "", DOCKER[:12]),
        (f"0::/kubepods.slice/x.slice/cri-containerd-{DOCKER}.scope\n", "", DOCKER[:12]),
        (
            "0::/\n",
            f"1 2 8:1 /var/lib/docker/containers/{DOCKER}/hostname /etc/hostname\n",
            DOCKER[:12],
        ),
        (
            "0::/\n",
            "9 8 8:1 /kubelet/pods/0f5e3f9a-1c2b-4d5e-8f90-123456789abc/etc-hosts /etc/hosts\n",
            "0f5e3f9a-1c2",
        ),
    ],
)
def test_container_is_found(cgroup: str, mountinfo: str, found: str) -> None:
    """The container's short id is read from either version of control groups, or the mounts."""
    assert container_of(cgroup, mountinfo) == found


def test_a_state_directory_that_cannot_be_used(tmp_path: Path, root: Path) -> None:
    """A file in the way, or a lock that is a symlink, is a usage error that names the flag."""
    assert root.exists()
    (tmp_path / "state").write_text("")
    with pytest.raises(UsageError, match="cannot use the state directory") as caught:
        lock_root(holder(tmp_path))
    assert "--state-dir" in caught.value.hint
    (tmp_path / "state").unlink()
    (tmp_path / "state" / "one").mkdir(parents=True)
    (tmp_path / "state" / "one" / "lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="cannot use the state directory"):
        lock_root(holder(tmp_path))
    assert not (tmp_path / "elsewhere").exists()
