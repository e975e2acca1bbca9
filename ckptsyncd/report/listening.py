"""A unix socket that only its owner can use, and that a dead daemon's leftover does not block."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import struct
from pathlib import Path

from ckptsyncd.errors import AlreadyRunning, UsageError

#: How long a daemon may take to accept before it counts as busy, not dead (guessed).
_KNOCK_SECONDS = 1.0
_UCRED = struct.Struct("3i")


def listen(path: Path, backlog: int) -> socket.socket:
    """Return a socket listening at ``path``, mode 0600 from its first moment.

    Missing directories are made with mode 0700. A socket on which nobody answers is replaced.
    Raises AlreadyRunning where somebody answers, UsageError where something else lies there or the
    place cannot be used.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _clear(path)
        return _bound(path, backlog)
    except OSError as error:
        msg = f"cannot listen on the socket {path}: {error.strerror or error}"
        raise UsageError(msg, hint="name another place with --socket") from error


def peer_uid(connection: socket.socket) -> int:
    """Return the user at the other end, as the kernel knows it."""
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
    _, uid, _ = _UCRED.unpack(raw)
    return int(uid)


def remove(path: Path, ours: os.stat_result) -> None:
    """Remove our socket, unless another one lies there by now."""
    with contextlib.suppress(FileNotFoundError):
        if os.path.samestat(path.lstat(), ours):
            path.unlink()


def _bound(path: Path, backlog: int) -> socket.socket:
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        # Linux gives the path the mode of the socket: there is no moment at which others get in.
        os.fchmod(server.fileno(), 0o600)
        server.bind(os.fspath(path))
        path.chmod(0o600)
        server.listen(backlog)
    except BaseException:
        server.close()
        raise
    return server


def _clear(path: Path) -> None:
    """Remove a socket that nobody listens on; refuse anything else."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        msg = f"{path} exists and is no socket"
        raise UsageError(msg, hint="remove it if it is yours, or name another place with --socket")
    if _is_answered(path):
        msg = f"another daemon answers on the socket {path}"
        raise AlreadyRunning(msg, hint=f"ask it: 'ckptsyncd status --socket {path}'")
    path.unlink()


def _is_answered(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as knock:
        knock.settimeout(_KNOCK_SECONDS)
        try:
            knock.connect(os.fspath(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except (BlockingIOError, TimeoutError):
            return True  # its queue is full: busy, not dead
        return True
