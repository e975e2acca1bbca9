"""The unix socket on which commands ask the daemon: one line of JSON in, one line out.

Threads of this module read the newest snapshot and put messages into the inbox; they hold nothing
that the loop needs, so a slow or hostile client costs one thread for some seconds, no more. Only
the daemon's own user and root are heard.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import socket
import threading
from collections.abc import Callable
from pathlib import Path

from ckptsyncd.core.facts import Instant
from ckptsyncd.core.messages import Message
from ckptsyncd.core.snapshot import Snapshot
from ckptsyncd.errors import CkptsyncdError
from ckptsyncd.report.listening import listen, peer_uid, remove
from ckptsyncd.report.probes import Verdict
from ckptsyncd.report.requests import Desk, Json, answered
from ckptsyncd.report.status_json import DaemonView

#: No request is longer.
MAX_REQUEST_BYTES = 64 * 1024
#: A client has so long to send its request, and again to take the answer (guessed).
CLIENT_SECONDS = 5.0
#: Clients served at once; each may wait for hours, so there is one thread each (guessed).
MAX_CLIENTS = 32
_PAUSE_SECONDS = 0.1
_CLOSE_SECONDS = 1.0
#: Whether our socket is still there is looked at this often (guessed: a person tries again).
LOOK_SECONDS = 5.0
#: So many descriptors are left to everybody else, or half of all (guessed: some for each hand).
RESERVED_DESCRIPTORS = 64
_PART_SECONDS = 1.0
_PART_READS = 16
_BUSY: Json = {"error": "too many clients", "hint": "try again", "exit_code": 5}
_NOT_YOU: Json = {"error": "not your daemon", "hint": "ask as its user or root", "exit_code": 7}
_TOO_LONG: Json = {"error": "the request is too long", "hint": "see docs/socket.md", "exit_code": 2}


class Api:
    """Serves the socket from ``start`` to ``close``."""

    def __init__(  # noqa: PLR0913 - all by keyword: the doors of the program that it opens
        self,
        path: Path,
        *,
        snapshot: Callable[[], Snapshot],
        post: Callable[[Message], None],
        now: Callable[[], Instant],
        daemon: DaemonView,
        stop_seconds: float = 8.0,
        probe: Callable[[str], Verdict | None] = lambda _: None,
        store: Callable[[], Json] = dict,
    ) -> None:
        """Remember where to listen; what is given to be called is called from threads."""
        self._path = path
        self._desk = Desk(snapshot, post, now, daemon, stop_seconds, probe, store)
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        self._most_descriptors = most - min(RESERVED_DESCRIPTORS, most // 2)
        self._stopped = threading.Event()
        self._places = threading.BoundedSemaphore(MAX_CLIENTS)
        self._threads: set[threading.Thread] = set()
        self._wake, self._woken = socket.socketpair()
        self._server: socket.socket | None = None
        self._ours: os.stat_result | None = None
        self._acceptor: threading.Thread | None = None

    def start(self) -> None:
        """Listen and serve in threads of its own; raises UsageError and AlreadyRunning."""
        server = listen(self._path, MAX_CLIENTS)
        server.setblocking(False)
        self._server, self._ours = server, self._path.lstat()
        self._acceptor = threading.Thread(
            target=self._accept, args=(server,), name="api", daemon=True
        )
        self._acceptor.start()

    def close(self) -> None:
        """Answer those who wait with how things stand, stop serving, and remove the socket.

        Takes two seconds at most. Does nothing where nothing was started.
        """
        self._stopped.set()
        self._wake.close()
        if self._acceptor is not None:
            self._acceptor.join(_CLOSE_SECONDS)
        self._woken.close()
        if self._server is not None and self._ours is not None:
            self._server.close()
            remove(self._path, self._ours)
        deadline = self._desk.now().boot + _CLOSE_SECONDS
        for thread in list(self._threads):
            thread.join(max(deadline - self._desk.now().boot, 0.0))

    def _accept(self, server: socket.socket) -> None:
        while not self._stopped.is_set():
            ready = _ready(server, self._woken, seconds=LOOK_SECONDS, events=select.POLLIN)
            if server.fileno() in ready:
                self._take_client(server)
            elif not ready:
                server = self._still_there(server)

    def _still_there(self, server: socket.socket) -> socket.socket:
        """Return where to listen: at a new socket if somebody removed ours, as tidiers of /tmp do.

        Not in a directory that is another user's by now.
        """
        if os.path.lexists(self._path):
            return server
        above = self._path.parent
        try:
            if os.path.lexists(above) and above.lstat().st_uid not in (0, os.geteuid()):
                return server
            fresh = listen(self._path, MAX_CLIENTS)
        except (OSError, CkptsyncdError):
            return server  # tried again at the next look
        fresh.setblocking(False)
        self._server, self._ours = fresh, self._path.lstat()
        server.close()
        return fresh

    def _take_client(self, server: socket.socket) -> None:
        try:
            connection, _ = server.accept()
        except BlockingIOError:
            return
        except OSError:
            # No descriptor is left. The client stays in the queue; others will free some.
            self._stopped.wait(_PAUSE_SECONDS)
            return
        # The lowest number that is free is given: a high one means that few are left.
        is_scarce = connection.fileno() >= self._most_descriptors
        if is_scarce or not self._places.acquire(blocking=False):
            self._turn_away(connection)
            return
        thread = threading.Thread(target=self._serve, args=(connection,), name="api", daemon=True)
        self._threads.add(thread)
        thread.start()

    def _turn_away(self, connection: socket.socket) -> None:
        """Say that there is no room, without ever waiting for the client to listen."""
        with connection:
            connection.setblocking(False)
            with contextlib.suppress(OSError):
                connection.sendall(_line(_BUSY))
                connection.shutdown(socket.SHUT_WR)
                connection.recv(MAX_REQUEST_BYTES)

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection:
                self._converse(connection)
        except OSError:
            return  # the client went away, or was too slow: nobody is left to be told
        finally:
            self._places.release()
            self._threads.discard(threading.current_thread())

    def _converse(self, connection: socket.socket) -> None:
        if peer_uid(connection) not in (0, os.geteuid()):
            answer = _NOT_YOU
        elif (line := self._read(connection)) is None:
            answer = _TOO_LONG
        else:
            answer = answered(line, self._desk, lambda: self._pause(connection))
        connection.settimeout(CLIENT_SECONDS)
        connection.sendall(_line(answer))
        _part(connection)

    def _read(self, connection: socket.socket) -> bytes | None:
        """Return the first line, ``None`` where it is too long; TimeoutError where too slow."""
        deadline = self._desk.now().boot + CLIENT_SECONDS
        data = b""
        while b"\n" not in data:
            if len(data) > MAX_REQUEST_BYTES:
                return None
            left = deadline - self._desk.now().boot
            if left <= 0:
                raise TimeoutError
            connection.settimeout(left)
            more = connection.recv(MAX_REQUEST_BYTES)
            if not more:
                break
            data += more
        line, _, _ = data.partition(b"\n")
        return line if len(line) <= MAX_REQUEST_BYTES else None

    def _pause(self, connection: socket.socket) -> bool:
        """Wait a moment; return whether the daemon goes on, raise where the client went away."""
        ended = self._stopped.wait(_PAUSE_SECONDS)
        # A client that only said that it has sent everything does not count as gone.
        if _ready(connection, seconds=0.0, events=select.POLLHUP):
            raise ConnectionAbortedError
        return not ended


def _part(connection: socket.socket) -> None:
    """Let the client close first: what it sent and we did not read would reset the connection."""
    connection.shutdown(socket.SHUT_WR)
    connection.settimeout(_PART_SECONDS)
    for _ in range(_PART_READS):
        if not connection.recv(MAX_REQUEST_BYTES):
            return


def _ready(*watched: socket.socket, seconds: float | None, events: int) -> set[int]:
    """Return the descriptors on which something happened; unlike select, of any number."""
    poll = select.poll()
    for one in watched:
        poll.register(one, events)
    return {number for number, _ in poll.poll(None if seconds is None else seconds * 1000)}


def _line(answer: Json) -> bytes:
    return json.dumps(answer, separators=(",", ":")).encode() + b"\n"
