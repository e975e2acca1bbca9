"""Asking a running daemon over its unix socket."""

from __future__ import annotations

import json
import os
import socket
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ckptsyncd.errors import (
    CkptsyncdError,
    DaemonUnreachable,
    PolicyRefused,
    Unsynced,
    UsageError,
)

Json = dict[str, Any]

#: A daemon answers at once, whatever the store does; more means that it hangs (guessed).
_ANSWER_SECONDS = 10.0
#: It asks the store for its region first, within the store's own time-outs (guessed).
_STORE_SECONDS = 60.0
#: No answer is longer (guessed: 100,000 checkpoints of 500 bytes).
_MAX_ANSWER_BYTES = 64 * 1024 * 1024
#: So long is waited for others who ask too (guessed), as the kernel wants it: and microseconds.
_QUEUE_SECONDS = struct.pack("@ll", 10, 0)
_UCRED = struct.Struct("3i")
_ERRORS: tuple[type[CkptsyncdError], ...] = (
    UsageError,
    DaemonUnreachable,
    Unsynced,
    PolicyRefused,
)


class Client:
    """Speaks to the daemon that listens on one socket.

    Every method raises DaemonUnreachable where nobody answers in time, and the error that the
    daemon answered with, under its exit code.
    """

    def __init__(self, path: Path) -> None:
        """Remember the socket; nothing is opened yet."""
        self._path = path

    def status(self) -> Json:
        """Return the document of ``docs/status-json.md``."""
        return self._ask({"request": "status"})

    def probe(self, name: str) -> Json:
        """Return the answer to a probe (``healthz``, ``readyz``, ``synced``): good, and why."""
        return self._ask({"request": "probe", "name": name})

    def store(self) -> Json:
        """Return where the daemon's bytes go, and what was asked of the store; it may ask it."""
        return self._ask({"request": "store"}, _STORE_SECONDS)

    def drain(self, deadline_seconds: float | None = None, *, pre_stop: bool = False) -> Json:
        """Ask for a drain that is over in so many seconds; return notice id and deadline.

        ``pre_stop``: the stop signal comes next; by default within the daemon's stop timeout.
        """
        wanted: Json = {"pre_stop": True} if pre_stop else {}
        if deadline_seconds is not None:
            wanted["deadline_seconds"] = deadline_seconds
        return self._ask({"request": "drain", **wanted})

    def drill(self, deadline_seconds: float) -> Json:
        """Pretend a notice; return its id and deadline, as ``drain`` does."""
        return self._ask({"request": "drill", "deadline_seconds": deadline_seconds})

    def commit(self, path: str) -> Json:
        """Say that what lies at a path is a whole checkpoint; return its name."""
        return self._ask({"request": "commit", "path": path})

    def stop(self, deadline_seconds: float | None = None) -> Json:
        """Ask the daemon to end, by default as on SIGTERM."""
        wanted = {} if deadline_seconds is None else {"deadline_seconds": deadline_seconds}
        return self._ask({"request": "stop", **wanted})

    def wait_for_checkpoint(self, checkpoint: str, timeout_seconds: float) -> Json:
        """Wait until what lies at a path now is safe, or never will be; return the outcome."""
        return self._wait({"checkpoint": checkpoint}, timeout_seconds)

    def wait_for_step(self, step: int, timeout_seconds: float) -> Json:
        """Wait until a checkpoint of this step or a later one is safe; return the outcome."""
        return self._wait({"step": step}, timeout_seconds)

    def wait_for_drain(self, drain: Mapping[str, Any], timeout_seconds: float) -> Json:
        """Wait until the drain that ``drain`` returned is over; return the outcome."""
        wanted = {"notice_id": drain["notice_id"], "deadline_boot": drain["deadline_boot"]}
        return self._wait(wanted, timeout_seconds)

    def _wait(self, wanted: Json, timeout_seconds: float) -> Json:
        request = {"request": "wait", **wanted, "timeout_seconds": timeout_seconds}
        return self._ask(request, timeout_seconds + _ANSWER_SECONDS)

    def _ask(self, request: Json, seconds: float = _ANSWER_SECONDS) -> Json:
        try:
            answer = json.loads(self._exchange(json.dumps(request).encode() + b"\n", seconds))
        except (TimeoutError, BlockingIOError) as error:
            msg = f"the daemon on {self._path} does not answer"
            raise DaemonUnreachable(msg, hint="it may hang; look at its log") from error
        except OSError as error:
            msg = f"no daemon answers on {self._path}: {error.strerror or error}"
            raise DaemonUnreachable(msg) from error
        except ValueError as error:
            msg = f"the daemon on {self._path} went away in the middle of its answer"
            raise DaemonUnreachable(msg) from error
        return _unpacked(answer)

    def _exchange(self, line: bytes, seconds: float) -> bytes:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            # A queue that is full is waited for only by a socket without a time-out of Python's.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _QUEUE_SECONDS)
            connection.connect(os.fspath(self._path))
            connection.settimeout(seconds)
            _check_peer(connection)
            connection.sendall(line)
            answer = bytearray()
            while b"\n" not in answer and len(answer) < _MAX_ANSWER_BYTES:
                more = connection.recv(1024 * 1024)
                if not more:
                    break
                answer += more
        return bytes(answer)


def _check_peer(connection: socket.socket) -> None:
    """Refuse a socket that another user put where ours might be; root asks anybody."""
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
    _, uid, _ = _UCRED.unpack(raw)
    if os.geteuid() != 0 and uid not in (0, os.geteuid()):
        raise PermissionError(1, f"it belongs to another user (uid {uid})")


def _unpacked(answer: Any) -> Json:
    found = answer.get("answer") if isinstance(answer, dict) else None
    if isinstance(found, dict):
        return found
    row = answer if isinstance(answer, dict) else {}
    code = row.get("exit_code")
    kind = next((kind for kind in _ERRORS if kind.exit_code == code), CkptsyncdError)
    text = row.get("error")
    raise kind(
        text if isinstance(text, str) else "the daemon's answer is not understood",
        hint=str(row.get("hint") or kind.hint),
    )
