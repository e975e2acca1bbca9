"""How a trainer is told of a notice: every way, and what becomes of those that fail."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue

import pytest

from ckptsyncd.core.messages import TrainerTold
from ckptsyncd.core.orders import RecallTrainer, TellTrainer
from ckptsyncd.edge import report_file
from ckptsyncd.edge.telling import Teller, Ways, named

ORDER = TellTrainer("aws-spot", "EC2 will terminate", 87.5, 1_750_000_000.0)
PATIENCE = 20.0

#: Says that it is ready, and ends with status 7 on the signal.
WAITER = """
import signal, sys
signal.signal(signal.SIGUSR1, lambda *_: sys.exit(7))
print("ready", flush=True)
while True:
    signal.pause()
"""


@pytest.fixture
def waiter(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program called ``trainer-of-tests.py`` that waits for the signal."""
    script = tmp_path / "trainer-of-tests.py"
    script.write_text(WAITER)
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


def told(ways: Ways, order: TellTrainer = ORDER) -> str:
    """Tell in these ways and return what became of it."""
    inbox: SimpleQueue[TrainerTold] = SimpleQueue()
    Teller(ways, inbox.put, os.environ, lambda _: True).tell(order)
    return inbox.get(timeout=PATIENCE).text


def test_a_signal_reaches_a_process_by_number_by_file_and_by_name(
    tmp_path: Path, waiter: subprocess.Popen[bytes]
) -> None:
    """All three find the same process, and say its number."""
    pid = waiter.pid
    assert list(named("trainer-of-tests.py")) == [pid]
    file = tmp_path / "trainer.pid"
    file.write_text(f"{pid}\n")
    waiter.send_signal(signal.SIGSTOP)  # so that it is there for all of them
    assert told(Ways("SIGUSR1", pid=pid)) == f"SIGUSR1 to process {pid}"
    assert told(Ways("SIGUSR1", pid_file=str(file))) == f"SIGUSR1 to process {pid}"
    assert told(Ways("SIGUSR1", process="trainer-of-tests.py")) == f"SIGUSR1 to process {pid}"
    waiter.send_signal(signal.SIGCONT)
    assert waiter.wait(PATIENCE) == 7


def test_our_own_child_gets_the_signal_where_nobody_is_named() -> None:
    """With somebody named, the child is left alone."""
    numbers: list[int] = []
    inbox: SimpleQueue[TrainerTold] = SimpleQueue()
    for ways in (Ways("SIGUSR2"), Ways("SIGUSR2", process="nobody-is-called-so")):
        teller = Teller(ways, inbox.put, os.environ, lambda n: numbers.append(n) or True)  # type: ignore[func-returns-value]
        teller.tell(ORDER)
    texts = {inbox.get(timeout=PATIENCE).text for _ in range(2)}
    assert texts == {"SIGUSR2 to the trainer", "no process is called nobody-is-called-so"}
    assert numbers == [signal.SIGUSR2]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot be read"),
        ("", "names no process"),
        ("1", "names no process"),
        ("-1", "names no process"),
        ("4242 4243", "names no process"),
        ("4194304", "failed (No such process)"),
    ],
)
def test_a_pid_file_that_names_nobody(tmp_path: Path, content: str | None, words: str) -> None:
    """Nobody is signalled by mistake: not the first process, not a group, not everybody."""
    file = tmp_path / "pid"
    if content is not None:
        file.write_text(content)
    assert words in told(Ways("SIGUSR1", pid_file=str(file)))


def test_a_command_knows_how_long_there_is(tmp_path: Path) -> None:
    """It is told source, text and seconds, and its status is told on."""
    out = tmp_path / "out"
    script = f'echo "$CKPTSYNCD_NOTICE_SOURCE $CKPTSYNCD_NOTICE_SECONDS" > {out}; exit 3'
    assert told(Ways(command=("/bin/sh", "-c", script))) == "/bin/sh ended with status 3"
    assert out.read_text() == "aws-spot 87.5\n"


def test_a_command_that_hangs_or_is_not_there() -> None:
    """It is stopped when there is no time left; one that cannot be run says why."""
    late = TellTrainer("x", "", 0.0, 0.0)
    text = told(Ways(command=("/bin/sh", "-c", "sleep 600")), late)
    assert text == "/bin/sh was stopped after 1 s"
    assert "cannot be run" in told(Ways(command=("/nonexistent/save",)))


def test_a_file_is_written_whole_and_taken_back(tmp_path: Path) -> None:
    """It tells source, text and deadline, and is gone when the notice is withdrawn."""
    file = tmp_path / "save-now.json"
    inbox: SimpleQueue[TrainerTold] = SimpleQueue()
    teller = Teller(Ways(file=str(file)), inbox.put, os.environ)
    teller.tell(ORDER)
    assert inbox.get(timeout=PATIENCE).text == f"{file} written"
    row = json.loads(file.read_text())
    assert row["source"] == "aws-spot"
    assert row["deadline_at"] == 1_750_000_087.5
    assert list(tmp_path.iterdir()) == [file]
    teller.recall(RecallTrainer())
    teller.tell(ORDER)  # one after the other, so this one comes last
    inbox.get(timeout=PATIENCE)
    assert "cannot be written" in told(Ways(file=str(tmp_path / "missing" / "file")))


def test_without_any_way_nobody_is_told() -> None:
    """A signal alone is for a child of ours; without one there is nothing to do."""
    assert not Ways().tell_anybody(has_child=True)
    assert not Ways("SIGUSR1").tell_anybody(has_child=False)
    assert Ways("SIGUSR1").tell_anybody(has_child=True)
    assert Ways("SIGUSR1", pid=4242).tell_anybody(has_child=False)
    assert Ways(file="/run/x").tell_anybody(has_child=False)


def test_a_report_is_replaced_whole_and_private(tmp_path: Path) -> None:
    """There is one file, the newest, for the owner only; where it cannot be, that is an OSError."""
    for data in (b"first, and longer\n", b"second\n"):
        report_file.keep(tmp_path, data)
    (path,) = tmp_path.iterdir()
    assert (path.name, path.read_bytes()) == ("drain-report.json", b"second\n")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(OSError, match="No such file"):
        report_file.keep(tmp_path / "missing", b"")
