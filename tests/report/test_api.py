"""The socket's requests, end to end: client, threads, snapshot and inbox."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from queue import SimpleQueue

import pytest

from ckptsyncd.client import Client
from ckptsyncd.core.messages import CommitRequested, Message, Noticed, StopRequested
from ckptsyncd.edge.clock import FakeClock
from ckptsyncd.errors import DaemonUnreachable, PathRefused, PolicyRefused, UsageError
from ckptsyncd.report.api import MAX_CLIENTS, MAX_REQUEST_BYTES, Api
from ckptsyncd.report.probes import Verdict
from ckptsyncd.report.status_read import from_json
from tests.report.examples import BUSY, CALM, DAEMON
from tests.report.socket_bench import PATIENCE, Daemon, poll_until, read_answer


def test_status_is_the_snapshot(daemon: Daemon) -> None:
    """Status answers with the newest snapshot and the process."""
    daemon.shown = BUSY
    snapshot, process = from_json(daemon.client.status())
    assert (snapshot, process.pid) == (BUSY, DAEMON.pid)


def test_status_says_that_the_loop_stands(daemon: Daemon) -> None:
    """Who asks a daemon whose loop does not turn is told so, and not that all is well."""
    daemon.health = Verdict(is_good=True, text="the loop turned 0.1 s ago")
    assert (daemon.client.status()["stands"], daemon.client.status()["exit_code"]) == ("", 0)
    daemon.health = Verdict(is_good=False, text="the loop turned 31 s ago")
    told = daemon.client.status()
    assert (told["stands"], told["exit_code"]) == ("the loop turned 31 s ago", 5)


def test_drain_is_a_binding_notice(daemon: Daemon) -> None:
    """A drain arrives as a notice with its deadline, each under a name of its own."""
    first = daemon.client.drain(30)
    second = daemon.client.drain(60)
    assert first["notice_id"] != second["notice_id"]
    message = daemon.inbox.get(timeout=PATIENCE)
    assert isinstance(message, Noticed)
    assert (message.notice.source, message.notice.severity) == ("drain", "binding")
    assert message.notice.notice_id == first["notice_id"]
    assert message.notice.deadline_boot == daemon.clock.now().boot + 30
    assert first["deadline_at"] == daemon.clock.now().wall + 30


def test_commit_names_a_path_below_the_root(daemon: Daemon) -> None:
    """Absolute, relative and oddly written paths arrive relative to the watch root."""
    (daemon.root / "llama" / "c-1").mkdir()
    (daemon.root / "link").symlink_to("llama")
    for path in (str(daemon.root / "llama" / "c-1"), "llama/c-1", "llama/../llama/./c-1"):
        assert daemon.client.commit(path) == {"checkpoint": "llama/c-1"}
        assert daemon.inbox.get(timeout=PATIENCE) == CommitRequested("llama/c-1")
    assert daemon.client.commit("link/c-1") == {"checkpoint": "llama/c-1"}
    assert daemon.client.commit("link") == {"checkpoint": "link"}


@pytest.mark.parametrize("path", ["..", "../x", "/etc/passwd", ".", "llama/..", "out/x"])
def test_commit_refuses_what_lies_outside(daemon: Daemon, path: str) -> None:
    """A path that leaves the watch root, by dots or by a link, is refused with exit code 7."""
    (daemon.root / "out").symlink_to(daemon.root.parent)
    with pytest.raises(PolicyRefused, match="does not lie below the watch root") as caught:
        daemon.client.commit(path)
    assert caught.value.exit_code == PathRefused.exit_code
    assert daemon.inbox.empty()


def test_commit_refuses_what_is_not_there(daemon: Daemon) -> None:
    """A typing error is told at once, not after a wait."""
    with pytest.raises(UsageError, match="nothing lies at"):
        daemon.client.commit("llama/c-2")


def test_stop_is_a_stop_request(daemon: Daemon) -> None:
    """A stop has the time that SIGTERM would give, or the one that was asked for."""
    daemon.client.stop()
    daemon.client.stop(90)
    boot = daemon.clock.now().boot
    assert daemon.inbox.get(timeout=PATIENCE) == StopRequested(boot + 8)
    assert daemon.inbox.get(timeout=PATIENCE) == StopRequested(boot + 90)


@pytest.mark.parametrize(
    ("data", "part"),
    [
        (b"nonsense\n", "no JSON"),
        (b"\xff\n", "no JSON"),
        (b"[" * 60_000 + b"\n", "no JSON"),
        (b"[]\n", "unknown request"),
        (b'{"request": ["status"]}\n', "unknown request"),
        (b'{"request": "status", "x": 1}\n', "status has no field 'x'"),
        (b'{"request": "drain", "deadline_seconds": "soon"}\n', "a number of seconds"),
        (b'{"request": "drain", "deadline_seconds": NaN}\n', "a number of seconds"),
        (b'{"request": "drain", "deadline_seconds": -1}\n', "not between 0 and"),
        (b'{"request": "drain", "deadline_seconds": true}\n', "a number of seconds"),
        (b'{"request": "commit"}\n', "a path is needed"),
        (b'{"request": "commit", "path": "a\\u0000b"}\n', "a path is needed"),
        (b'{"request": "wait"}\n', "wait needs one of"),
        (b'{"request": "wait", "step": 1, "checkpoint": "x"}\n', "wait needs one of"),
        (b'{"request": "wait", "step": 1.5}\n', "no whole number"),
        (b"x" * (MAX_REQUEST_BYTES + 2) + b"\n", "too long"),
        (b"\n", "no JSON"),
    ],
)
def test_wrong_requests_are_answered(daemon: Daemon, data: bytes, part: str) -> None:
    """Whatever is sent gets an answer with exit code 2 and a hint, and is posted nowhere."""
    answer = daemon.raw(data)
    assert part in answer["error"]
    assert answer["exit_code"] == 2
    assert answer["hint"]
    assert daemon.inbox.empty()


def test_a_request_may_come_in_drops_and_without_its_end(daemon: Daemon) -> None:
    """Bytes that trickle in make a request, also where only the closed end finishes the line."""
    with daemon.connect() as connection:
        for byte in b'{"request": "status"}':
            connection.sendall(bytes([byte]))
        connection.shutdown(socket.SHUT_WR)
        assert read_answer(connection)["answer"]["version"] == 1
    with daemon.connect() as connection:
        connection.sendall(b'{"request": "wait", "step": 4200}')
        connection.shutdown(socket.SHUT_WR)
        assert read_answer(connection)["answer"]["outcome"] == "safe"


def test_a_slow_client_is_left(daemon: Daemon) -> None:
    """A client that does not finish its request in time is hung up on."""
    with daemon.connect() as connection:
        connection.sendall(b'{"request"')
        poll_until(lambda: len(daemon.api._threads) == 1)
        daemon.clock.advance(10)
        connection.sendall(b": ")
        assert connection.recv(10) == b""


def test_too_many_clients_are_turned_away(daemon: Daemon) -> None:
    """One client more than there are places is told so at once."""
    held = [daemon.connect() for _ in range(MAX_CLIENTS)]
    poll_until(lambda: len(daemon.api._threads) == MAX_CLIENTS)
    with daemon.connect() as connection:
        answer = read_answer(connection)
    assert (answer["error"], answer["exit_code"]) == ("too many clients", 5)
    for connection in held:
        connection.close()
    poll_until(lambda: daemon.client.status()["version"] == 1)


def test_a_client_that_leaves_is_forgotten(daemon: Daemon) -> None:
    """A client that goes away while it waits gives its place back."""
    connection = daemon.connect()
    connection.sendall(b'{"request": "wait", "step": 9000}\n')
    daemon.wait_for_looks(2)
    connection.close()
    poll_until(lambda: not daemon.api._threads)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_is_not_heard(daemon: Daemon) -> None:
    """Even where file modes let somebody else in, the kernel says who it is, and it is refused."""
    daemon.path.chmod(0o666)
    daemon.path.parent.chmod(0o755)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                path = f"/proc/self/fd/{os.open(daemon.path.parent, os.O_PATH)}/api.sock"
                os.setuid(12345)
                connection.settimeout(PATIENCE)
                connection.connect(path)
                connection.sendall(b'{"request": "stop"}\n')
                os.write(writer, connection.recv(4096))
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(writer)
    with os.fdopen(reader, "rb") as answer:
        assert json.loads(answer.read())["error"] == "not your daemon"
    assert daemon.inbox.empty()


def test_nothing_was_started(tmp_path: Path) -> None:
    """Closing an api that never started does nothing; a client without a daemon is told so."""
    clock = FakeClock()
    api = Api(
        tmp_path / "a.sock",
        snapshot=lambda: CALM,
        post=SimpleQueue[Message]().put,
        now=clock.now,
        daemon=DAEMON,
    )
    api.close()
    for path in (tmp_path / "a.sock", tmp_path / ("x" * 150)):
        with pytest.raises(DaemonUnreachable, match="no daemon answers") as caught:
            Client(path).status()
        assert caught.value.exit_code == 5
