"""A daemon as far as its socket sees it, and clients that wait in threads of their own."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from ckptsyncd.client import Client
from ckptsyncd.core.messages import Message
from ckptsyncd.core.snapshot import Snapshot
from ckptsyncd.edge.clock import FakeClock
from ckptsyncd.errors import DaemonUnreachable
from ckptsyncd.report.api import Api
from ckptsyncd.report.probes import Verdict
from tests.report.examples import CALM, DAEMON

PATIENCE = 10.0


@dataclass
class Daemon:
    """A daemon as far as the socket sees it: a snapshot, an inbox, a clock."""

    path: Path
    root: Path
    shown: Snapshot = CALM
    clock: FakeClock = field(default_factory=FakeClock)
    inbox: SimpleQueue[Message] = field(default_factory=SimpleQueue)
    health: Verdict | None = None
    looks: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def __post_init__(self) -> None:
        """Start to serve."""
        self.api = Api(
            self.path,
            snapshot=self._look,
            post=self.inbox.put,
            now=self.clock.now,
            daemon=replace(DAEMON, watch_root=str(self.root)),
            probe=lambda _: self.health,
        )
        self.api.start()
        self.client = Client(self.path)

    def _look(self) -> Snapshot:
        self.looks.release()
        return self.shown

    def wait_for_looks(self, count: int) -> None:
        """Return once the snapshot was looked at so many times more."""
        for _ in range(count):
            assert self.looks.acquire(timeout=PATIENCE)

    def raw(self, data: bytes) -> dict[str, Any]:
        """Return the answer to some bytes."""
        with self.connect() as connection:
            connection.sendall(data)
            return read_answer(connection)

    def connect(self) -> socket.socket:
        """Return a connection of a client that does as it likes."""
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(PATIENCE)
        connection.connect(str(self.path))
        return connection


def read_answer(connection: socket.socket) -> dict[str, Any]:
    """Return the line that came back."""
    data = b""
    while not data.endswith(b"\n"):
        more = connection.recv(65536)
        assert more, "the daemon said nothing"
        data += more
    return dict(json.loads(data))


class Asking:
    """A request on its way in a thread of its own."""

    def __init__(self, action: Callable[[], Any]) -> None:
        """Begin."""
        self.result: Any = None
        self._thread = threading.Thread(target=self._run, args=(action,))
        self._thread.start()

    def _run(self, action: Callable[[], Any]) -> None:
        try:
            self.result = action()
        except DaemonUnreachable as error:
            self.result = error

    def join(self) -> Any:
        """Return what came back."""
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()
        return self.result


def poll_until(check: Callable[[], bool]) -> None:
    """Return once a check that may be refused for now holds; fail after a while."""
    pause = threading.Event()
    for _ in range(100):
        with contextlib.suppress(DaemonUnreachable):
            if check():
                return
        pause.wait(0.1)
    pytest.fail("never")
