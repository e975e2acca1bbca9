"""How the program begins: signals that come before it is put together, a root that is not there."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.process.conftest import Start
from tests.process.program import until
from tests.process.saving import MIB, by_rename


def catches(process: subprocess.Popen[bytes], number: signal.Signals) -> bool:
    """Return whether a process has a handler for a signal, by what the kernel says."""
    text = Path(f"/proc/{process.pid}/status").read_text()
    mask = next(line for line in text.splitlines() if line.startswith("SigCgt:"))
    return bool(int(mask.split()[1], 16) >> (number - 1) & 1)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_in_its_first_moment(
    number: signal.Signals, root: Path, durable: str, program: Start
) -> None:
    """Asked to stop before it is put together, it ends in good order, and says so."""
    root.mkdir()
    by_rename(root / "model.pt", MIB, 1)
    daemon = program(root, durable, "--stop-timeout", "30s", "--linger-seconds", "100ms")
    daemon.begin()
    process = daemon.process
    assert process is not None
    until(lambda: catches(process, signal.SIGTERM), "it catches the signal")
    process.send_signal(number)
    assert daemon.wait() == 0
    assert "everything that was whole is safe" in daemon.log
    assert (root.parent / "durable/model.pt").exists()


def test_a_second_stop_in_its_first_moment(root: Path, durable: str, program: Start) -> None:
    """Whoever asks twice does not wait, even then."""
    root.mkdir()
    daemon = program(root, durable)
    daemon.under = (sys.executable, "-c", HOLD)
    daemon.begin()
    process = daemon.process
    assert process is not None
    until(lambda: catches(process, signal.SIGTERM), "it catches the signal")
    process.send_signal(signal.SIGTERM)
    until(lambda: b"held" in Path(daemon.base / "log-001").read_bytes(), "the first one came")
    process.send_signal(signal.SIGTERM)
    assert daemon.wait() == 128 + signal.SIGTERM


#: Holds stops as the program does, and never comes to its own handlers.
HOLD = """
import threading
from ckptsyncd.signals import held_stops, hold_stops
hold_stops()
while not held_stops():
    threading.Event().wait(0.01)
print("held", flush=True)
threading.Event().wait()
"""


def test_a_root_that_is_not_there_is_told(root: Path, durable: str, program: Start) -> None:
    """Status warns of a watch root that does not exist, until it does."""
    daemon = program(root, durable).start()

    def warnings() -> str:
        return str((daemon.status() or {}).get("warnings"))

    until(lambda: "watch root does not exist" in warnings(), warnings)
    root.mkdir()
    until(lambda: warnings() == "[]", warnings)
    shutil.rmtree(root)
    until(lambda: "watch root does not exist" in warnings(), warnings)
