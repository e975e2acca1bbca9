"""The socket's requests, end to end: client, threads, snapshot and inbox."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from ckptsyncd.client import Client
from ckptsyncd.core.facts import Notice
from ckptsyncd.core.messages import CommitRequested, Message, Noticed, StopRequested
from ckptsyncd.core.snapshot import Snapshot
from ckptsyncd.edge.clock import FakeClock
from ckptsyncd.errors import DaemonUnreachable, PathRefused, PolicyRefused, UsageError
from ckptsyncd.report.api import MAX_CLIENTS, MAX_REQUEST_BYTES, Api
from ckptsyncd.report.requests import MAX_WAITS
from ckptsyncd.report.status_read import from_json
from tests.report.examples import BUSY, CALM, DAEMON, view

PATIENCE = 10.0


@dataclass
class Daemon:
    """A daemon as far as the socket sees it: a snapshot, an inbox, a clock."""

    path: Path
    root: Path
    shown: Snapshot = CALM
    clock: FakeClock = field(default_factory=FakeClock)
    inbox: SimpleQueue[Message] = field(default_factory=SimpleQueue)
    looks: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def __post_init__(self) -> None:
        """Start to serve."""
        self.api = Api(
            self.path,
            snapshot=self._look,
            post=self.inbox.put,
            now=self.clock.now,
            daemon=replace(DAEMON, watch_root=str(self.root)),
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


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """Return a daemon that serves a socket."""
    (tmp_path / "root" / "llama").mkdir(parents=True)
    running = Daemon(tmp_path / "api.sock", tmp_path / "root")
    yield running
    running.api.close()


def test_status_is_the_snapshot(daemon: Daemon) -> None:
    """Status answers with the newest snapshot and the process."""
    daemon.shown = BUSY
    snapshot, process = from_json(daemon.client.status())
    assert (snapshot, process.pid) == (BUSY, DAEMON.pid)


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


def test_wait_for_a_step(daemon: Daemon) -> None:
    """Waiting ends when this step or a later one is safe, and not before."""
    assert daemon.client.wait_for_step(4200, 0)["outcome"] == "safe"
    daemon.shown = BUSY
    asking = Asking(lambda: daemon.client.wait_for_step(4300, 60))
    daemon.wait_for_looks(4)
    point = replace(BUSY.recovery_points[0], step=4301)
    daemon.shown = replace(CALM, recovery_points=(point,))
    answer = asking.join()
    assert (answer["outcome"], answer["exit_code"]) == ("safe", 0)
    assert "step 4301" in answer["reason"]


def test_wait_for_a_checkpoint(daemon: Daemon) -> None:
    """Waiting ends when the checkpoint is safe; superseded or vanished ends it too, with 6."""
    name = "llama/checkpoint-4300"
    daemon.shown = BUSY
    asking = Asking(lambda: daemon.client.wait_for_checkpoint(name, 60))
    daemon.wait_for_looks(4)
    daemon.shown = replace(CALM, checkpoints=(view(4300, "safe"),))
    assert asking.join()["outcome"] == "safe"
    daemon.shown = replace(CALM, checkpoints=(view(4300, "superseded", reason="4400 went first"),))
    answer = daemon.client.wait_for_checkpoint(name, 60)
    assert (answer["outcome"], answer["exit_code"]) == ("superseded", 6)
    assert "4400 went first" in answer["reason"]


def test_wait_runs_out(daemon: Daemon) -> None:
    """After the timeout the answer says why it is not safe yet, with exit code 6."""
    daemon.shown = BUSY
    asking = Asking(lambda: daemon.client.wait_for_checkpoint("llama/checkpoint-4300", 60))
    daemon.wait_for_looks(3)
    daemon.clock.advance(61)
    answer = asking.join()
    assert (answer["outcome"], answer["exit_code"]) == ("timeout", 6)
    assert answer["reason"] == "llama/checkpoint-4300 is uploading"
    assert answer["status_exit_code"] == 6
    assert "no checkpoint of step 9999 was seen" in daemon.client.wait_for_step(9999, 0)["reason"]


def test_an_older_content_is_not_called_safe(daemon: Daemon) -> None:
    """A file rewritten just now is not safe because its last content is."""
    path = daemon.root / "last.ckpt"
    path.write_text("new")
    written = path.stat().st_mtime_ns / 1e9
    old = view(7, "safe", checkpoint="last.ckpt", series="", saved_at=written - 60)
    daemon.shown = replace(CALM, checkpoints=(old,))
    asking = Asking(lambda: daemon.client.wait_for_checkpoint(str(path), 600))
    daemon.wait_for_looks(3)
    daemon.clock.advance(30)
    daemon.wait_for_looks(3)
    daemon.shown = replace(CALM, checkpoints=(old, replace(old, edition=2, saved_at=written)))
    answer = asking.join()
    assert answer["reason"] == "last.ckpt (edition 2) is safe"


def test_a_foreign_file_in_a_directory_does_not_hold_it_up(daemon: Daemon) -> None:
    """A newer file that belongs to no checkpoint delays the answer only while it may be noticed."""
    (daemon.root / "llama" / "checkpoint-1").mkdir()
    (daemon.root / "llama" / "checkpoint-1" / "editor.swp").write_text("")
    daemon.shown = replace(CALM, checkpoints=(view(1, "safe", saved_at=5.0),))
    asking = Asking(lambda: daemon.client.wait_for_checkpoint("llama/checkpoint-1", 600))
    daemon.wait_for_looks(3)
    daemon.clock.advance(3)
    assert asking.join()["outcome"] == "safe"


def test_a_hook_before_the_stop_and_a_drill(daemon: Daemon) -> None:
    """Each is a notice with a source of its own; the hook has the time that a stop has."""
    hook = daemon.client.drain(pre_stop=True)
    drill = daemon.client.drill(30)
    assert (hook["deadline_seconds"], drill["deadline_seconds"]) == (8.0, 30.0)
    found = [daemon.inbox.get(timeout=PATIENCE) for _ in range(2)]
    notices = [message.notice for message in found if isinstance(message, Noticed)]
    assert [notice.source for notice in notices] == ["pre-stop", "drill"]
    assert notices[0].deadline_boot == daemon.clock.now().boot + 8.0


def test_wait_for_a_drain(daemon: Daemon) -> None:
    """The drain that was asked for must be over, not one before it."""
    drain = daemon.client.drain(30)
    mine = daemon.inbox.get(timeout=PATIENCE)
    assert isinstance(mine, Noticed)
    other = Notice("aws", "x", "binding", mine.notice.deadline_boot + 5)  # type: ignore[operator]
    daemon.shown = replace(CALM, state="drained", notice=other)
    asking = Asking(lambda: daemon.client.wait_for_drain(drain, 30))
    daemon.wait_for_looks(3)
    daemon.shown = replace(CALM, state="drained", notice=mine.notice)
    answer = asking.join()
    assert (answer["outcome"], answer["exit_code"], answer["status_exit_code"]) == ("drained", 0, 0)


def test_a_stopping_daemon_answers_those_who_wait(daemon: Daemon) -> None:
    """When the daemon ends, every wait is answered with how it stands."""
    asking = Asking(lambda: daemon.client.wait_for_step(9000, 600))
    daemon.wait_for_looks(3)
    daemon.api.close()
    answer = asking.join()
    assert (answer["outcome"], answer["exit_code"]) == ("stopping", 5)
    assert not daemon.path.exists()
    with pytest.raises(DaemonUnreachable, match="no daemon answers"):
        daemon.client.status()


def test_waiting_clients_leave_room_for_others(daemon: Daemon) -> None:
    """However many wait, status is answered; one wait too many is refused."""
    waiting = []
    for _ in range(MAX_WAITS):
        connection = daemon.connect()
        connection.sendall(b'{"request": "wait", "step": 9000}\n')
        waiting.append(connection)
    daemon.wait_for_looks(MAX_WAITS * 2)
    answer = daemon.raw(b'{"request": "wait", "step": 9000}\n')
    assert "clients wait already" in answer["error"]
    assert daemon.client.status()["version"] == 1
    for connection in waiting:
        connection.close()
    daemon.clock.advance(1)
    poll_until(lambda: daemon.client.wait_for_step(1, 0)["outcome"] == "safe")


def poll_until(check: Callable[[], bool]) -> None:
    """Return once a check that may be refused for now holds; fail after a while."""
    pause = threading.Event()
    for _ in range(100):
        with contextlib.suppress(DaemonUnreachable):
            if check():
                return
        pause.wait(0.1)
    pytest.fail("never")


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
