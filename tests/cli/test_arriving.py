"""A restore under a service manager: more time while bytes arrive, on a real socket."""

from __future__ import annotations

import contextlib
import socket
from pathlib import Path

from ckptsyncd.cli.arriving import MORE_SECONDS, Arriving
from ckptsyncd.edge.clock import FakeClock
from ckptsyncd.recover.request import Silence
from ckptsyncd.report.systemd import Systemd

MORE = f"EXTEND_TIMEOUT_USEC={int(MORE_SECONDS * 1e6)}"


def heard(server: socket.socket) -> list[str]:
    """Return everything that was sent."""
    found = []
    with contextlib.suppress(BlockingIOError):
        while True:
            found.append(server.recv(4096).decode())
    return found


def test_time_is_asked_for_while_bytes_arrive(tmp_path: Path) -> None:
    """At once, with every step, and at most every five seconds; without bytes nothing is asked."""
    clock = FakeClock()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
        server.bind(str(tmp_path / "notify"))
        server.setblocking(False)
        systemd = Systemd({"NOTIFY_SOCKET": str(tmp_path / "notify")})
        arriving = Arriving(Silence(), systemd, lambda: clock.now().boot)
        assert heard(server) == [MORE]
        arriving.began(1, 1000, 0)
        assert heard(server)[0] == MORE
        clock.advance(4.0)
        arriving.moved(100)
        assert heard(server) == []
        clock.advance(1.0)
        arriving.moved(100)
        asked, told = heard(server)
        assert asked == MORE
        assert told.startswith("STATUS=restoring: 20 %")
        clock.advance(100.0)
        assert heard(server) == []
        arriving.reached("fetched")
        assert heard(server)[0] == MORE
