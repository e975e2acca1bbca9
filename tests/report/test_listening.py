"""The socket itself: whose it is, and what lies in its way."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import pytest

from ckptsyncd.errors import AlreadyRunning, UsageError
from ckptsyncd.report.listening import listen, peer_uid, remove


def test_only_the_owner_gets_in(tmp_path: Path) -> None:
    """Directory 0700 and socket 0600 whatever the umask is, and the kernel names the peer."""
    before = os.umask(0)
    try:
        server = listen(tmp_path / "run" / "a.sock", 5)
    finally:
        os.umask(before)
    path = tmp_path / "run" / "a.sock"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
        connection, _ = server.accept()
        assert peer_uid(connection) == os.geteuid()
        connection.close()
    server.close()


def test_a_leftover_is_replaced(tmp_path: Path) -> None:
    """The socket of a daemon that was killed does not keep the next one from starting."""
    path = tmp_path / "a.sock"
    listen(path, 5).close()
    server = listen(path, 5)
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
    server.close()


def test_a_living_daemon_is_not_replaced(tmp_path: Path) -> None:
    """Where somebody listens, even one too busy to accept, the start is refused."""
    path = tmp_path / "a.sock"
    server = listen(path, 0)
    clients = [socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) for _ in range(3)]
    for client in clients:
        client.setblocking(False)
        client.connect_ex(str(path))
    with pytest.raises(AlreadyRunning, match="another daemon answers") as caught:
        listen(path, 5)
    assert str(path) in caught.value.hint
    for one in (*clients, server):
        one.close()


@pytest.mark.parametrize("kind", ["file", "directory", "symlink"])
def test_what_is_no_socket_is_left_alone(tmp_path: Path, kind: str) -> None:
    """A file, directory or link at the socket's place is somebody's, and is not removed."""
    path = tmp_path / "a.sock"
    if kind == "file":
        path.write_text("precious")
    elif kind == "directory":
        path.mkdir()
    else:
        path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="is no socket"):
        listen(path, 5)
    assert os.path.lexists(path)


def test_what_cannot_be_used_is_an_error(tmp_path: Path) -> None:
    """A place that cannot hold a socket is refused in one line."""
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot listen"):
        listen(tmp_path / "file" / "a.sock", 5)
    with pytest.raises(UsageError, match="cannot listen"):
        listen(tmp_path / ("x" * 150), 5)


def test_another_daemons_socket_is_not_removed(tmp_path: Path) -> None:
    """At its end a daemon removes its own socket only."""
    path = tmp_path / "a.sock"
    first = listen(path, 5)
    ours = path.lstat()
    path.rename(tmp_path / "moved.sock")
    second = listen(path, 5)
    remove(path, ours)
    assert path.exists()
    remove(path, path.lstat())
    remove(path, ours)
    assert not path.exists()
    first.close()
    second.close()
