"""Whether a trainer runs that the settings name."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ckptsyncd.core.messages import TrainerSeen
from ckptsyncd.edge.attendance import Attendance, runs
from ckptsyncd.edge.telling import Ways
from tests.edge.world import Inbox

RUNS, ENDED = TrainerSeen(is_alive=True), TrainerSeen(is_alive=False)


@pytest.fixture
def trainer() -> Iterator[subprocess.Popen[bytes]]:
    """Return a process that runs until it is ended."""
    wait = [sys.executable, "-c", "import sys; sys.stdin.read()", "a-trainer-of-this-test"]
    with subprocess.Popen(wait, stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


def told(ways: Ways, *ends: subprocess.Popen[bytes]) -> list[TrainerSeen]:
    """Return what is told of these ways in two turns, and in a third after these have ended."""
    found: list[TrainerSeen] = []
    attendance = Attendance(ways, found.append)
    attendance.turn()
    attendance.turn()
    for process in ends:
        process.kill()
        # It has ended although nobody waited for it: a zombie trains no more.
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert not runs(process.pid)
        attendance.turn()
    return found


def test_by_its_number(trainer: subprocess.Popen[bytes]) -> None:
    """It is told once that it runs, and once that it has ended."""
    assert told(Ways(pid=trainer.pid), trainer) == [RUNS, ENDED]


def test_by_a_file(trainer: subprocess.Popen[bytes], tmp_path: Path) -> None:
    """The file that holds its number need not be there yet, and may hold rubbish."""
    path = tmp_path / "pid"
    ways = Ways(pid_file=str(path))
    assert told(ways) == [ENDED]
    path.write_text("rubbish")
    assert told(ways) == [ENDED]
    path.write_text(f"{trainer.pid}\n")
    assert told(ways, trainer) == [RUNS, ENDED]


def test_by_its_name(trainer: subprocess.Popen[bytes]) -> None:
    """Any program of that name counts; one that nobody has is not there."""
    assert told(Ways(process="no-program-is-called-so")) == [ENDED]
    assert told(Ways(process=os.path.basename(sys.executable)), trainer)[0] == RUNS  # noqa: PTH119


def test_its_thread(trainer: subprocess.Popen[bytes]) -> None:
    """Once started it asks by itself."""
    inbox = Inbox()
    attendance = Attendance(Ways(pid=trainer.pid), inbox.put)
    attendance.start()
    inbox.until(lambda seen: seen == [RUNS])
    trainer.kill()
    inbox.until(lambda seen: seen == [RUNS, ENDED])
    attendance.stop()
