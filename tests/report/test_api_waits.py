"""Waiting over the socket: for steps, checkpoints and drains, as long as it takes or is allowed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ckptsyncd.core.facts import Notice
from ckptsyncd.core.messages import Noticed
from ckptsyncd.errors import DaemonUnreachable
from ckptsyncd.report.requests import MAX_WAITS
from tests.report.examples import BUSY, CALM, view
from tests.report.socket_bench import PATIENCE, Asking, Daemon, poll_until


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
