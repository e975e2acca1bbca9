"""The service manager's protocol: what is sent, how often, and that nobody need listen."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ckptsyncd.core.facts import Instant
from ckptsyncd.report.systemd import STUCK_SECONDS, Systemd
from tests.report.examples import BUSY, CALM, NOW


@pytest.fixture(params=["path", "abstract"])
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[socket.socket, str]]:
    """Return a listening service manager and the address it announces."""
    path = str(tmp_path / "notify")
    abstract = request.param == "abstract"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
        server.bind("\0" + path if abstract else path)
        server.setblocking(False)
        yield server, "@" + path if abstract else path


def heard(server: socket.socket) -> list[str]:
    """Return everything that was sent."""
    found = []
    with contextlib.suppress(BlockingIOError):
        while True:
            found.append(server.recv(4096).decode())
    return found


def at(seconds: float) -> Instant:
    """Return a moment so many seconds after the first."""
    return Instant(100.0 + seconds, NOW + seconds)


def test_every_message(manager: tuple[socket.socket, str]) -> None:
    """Each method sends its message, over either kind of address."""
    server, address = manager
    systemd = Systemd({"NOTIFY_SOCKET": address})
    told = [
        systemd.ready(),
        systemd.status("two\nlines"),
        systemd.stopping(),
        systemd.reloading(12.5),
        systemd.extend_timeout(90),
        systemd.watchdog(),
    ]
    assert all(told)
    assert heard(server) == [
        "READY=1",
        "STATUS=two lines",
        "STOPPING=1",
        "RELOADING=1\nMONOTONIC_USEC=12500000",
        "EXTEND_TIMEOUT_USEC=90000000",
        "WATCHDOG=1",
    ]


def test_turns_tell_ready_status_and_life(manager: tuple[socket.socket, str]) -> None:
    """Ready once, the status when it changed and at most once a second, life in time."""
    server, address = manager
    environ = {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "8000000"}
    systemd = Systemd(environ)
    assert systemd.watchdog_seconds == 8.0
    systemd.turn([], at(0), CALM)
    assert heard(server) == [
        "READY=1",
        "STATUS=running: step 4200 safe 38 s ago",
        "WATCHDOG=1",
    ]
    systemd.turn([], at(0.5), BUSY)
    assert heard(server) == []
    systemd.turn([], at(1.0), BUSY)
    assert heard(server)[0].startswith("STATUS=running: step 4200 safe 39 s ago; step 4300")
    systemd.turn([], at(2.0), replace(CALM, recovery_points=()))
    assert heard(server) == ["STATUS=running: nothing safe yet", "WATCHDOG=1"]


def test_nobody_need_listen(tmp_path: Path) -> None:
    """Without a service manager, or with one that is gone, nothing is sent and nothing fails."""
    for address in ("", str(tmp_path / "gone")):
        systemd = Systemd({"NOTIFY_SOCKET": address})
        systemd.turn([], at(0), CALM)
        assert not systemd.stopping()


def test_a_full_queue_does_not_hold_up_the_loop(manager: tuple[socket.socket, str]) -> None:
    """A service manager that does not read is given up on at once, and told again later."""
    server, address = manager
    systemd = Systemd({"NOTIFY_SOCKET": address})
    sent = 0
    while systemd.watchdog():
        sent += 1
        assert sent < 100_000
    heard(server)
    assert systemd.watchdog()


@pytest.mark.parametrize(
    ("environ", "seconds"),
    [
        ({}, None),
        ({"WATCHDOG_USEC": "x"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(os.getpid())}, 30.0),
    ],
)
def test_whose_watchdog_it_is(environ: dict[str, str], seconds: float | None) -> None:
    """Only a watchdog that is meant for this process is fed."""
    assert Systemd(environ).watchdog_seconds == seconds


def busy_turns(progress: Callable[[], int], server: socket.socket, address: str) -> list[bool]:
    """Return whether the watchdog was fed at the beginning, half-way to stuck, and beyond."""
    environ = {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "8000000"}
    systemd = Systemd(environ, progress)
    fed = []
    for seconds in (0.0, STUCK_SECONDS / 2, STUCK_SECONDS + 1):
        systemd.turn([], at(seconds), BUSY)
        fed.append("WATCHDOG=1" in heard(server))
    return fed


def test_a_stuck_upload_starves_the_watchdog(manager: tuple[socket.socket, str]) -> None:
    """With something on its way and no byte moving for ten minutes, a restart is asked for."""
    server, address = manager
    assert busy_turns(lambda: 7, server, address) == [True, True, False]


def test_slow_progress_feeds_the_watchdog(manager: tuple[socket.socket, str]) -> None:
    """However slow bytes move and however often calls fail, only standing still is stuck."""
    server, address = manager
    numbers = iter(range(10))
    assert busy_turns(lambda: next(numbers), server, address) == [True, True, True]


def test_an_idle_daemon_is_not_stuck(manager: tuple[socket.socket, str]) -> None:
    """Between two checkpoints nothing moves for hours, and the watchdog is fed."""
    server, address = manager
    systemd = Systemd({"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "8000000"}, lambda: 7)
    for seconds in (0.0, 2 * STUCK_SECONDS):
        heard(server)
        systemd.turn([], at(seconds), CALM)
        assert "WATCHDOG=1" in heard(server)


def test_a_drain_asks_for_its_time(manager: tuple[socket.socket, str]) -> None:
    """While draining the manager is asked to wait for the deadline; without one it is not."""
    server, address = manager
    systemd = Systemd({"NOTIFY_SOCKET": address})
    draining = replace(BUSY, state="draining", notice_deadline_at=NOW + 90)
    systemd.turn([], at(0), draining)
    assert "EXTEND_TIMEOUT_USEC=95000000" in heard(server)
    systemd.turn([], at(2), replace(draining, notice_deadline_at=None))
    systemd.turn([], at(4), replace(draining, notice_deadline_at=float("inf")))
    systemd.turn([], at(6), replace(draining, notice_deadline_at=NOW))
    assert not [text for text in heard(server) if text.startswith("EXTEND")]
