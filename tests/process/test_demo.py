"""The demo as its viewers run it: the real program, in plain lines and on a terminal."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.process.program import PATIENCE_SECONDS

DEMO = (sys.executable, "-m", "ckptsyncd", "demo")


@pytest.fixture
def place() -> Iterator[Path]:
    """Name a directory for temporary files, short enough for a unix socket below it."""
    made = Path(tempfile.mkdtemp(prefix="demo-"))
    yield made
    shutil.rmtree(made)


def environment(place: Path, **more: str) -> dict[str, str]:
    """Return the environment of a viewer whose own settings and home must play no part."""
    own = {"CKPTSYNCD_URL": "s3://not/this", "CKPTSYNCD_BANDWIDTH": "nonsense"}
    return {**os.environ, **own, "TMPDIR": str(place), "HOME": str(place / "home"), **more}


def processes(place: Path) -> list[str]:
    """Return the command lines of running processes that name a directory."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(place) in words:
            found.append(words)
    return found


@pytest.mark.slow
def test_the_story_is_told_in_plain_lines(place: Path) -> None:
    """It saves, drains, loses the machine, restores and compares, and leaves nothing behind."""
    began = time.monotonic()
    done = subprocess.run(
        DEMO,
        capture_output=True,
        text=True,
        check=False,
        timeout=2 * PATIENCE_SECONDS,
        env=environment(place),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert time.monotonic() - began < 60
    assert "\x1b" not in done.stdout + done.stderr
    told = re.compile(
        r"1\. .*ckptsyncd run .*checkpoint-20@1 is uploading.*checkpoint-20@1 is safe"
        r".*2\. A notice.*not safe, newest first: checkpoint-\d+.*the daemon is drained"
        r".*3\. The machine is gone.*SIGKILL"
        r".*4\. A new machine.*ckptsyncd list.*huggingface-trainer"
        r".*restored checkpoint-(?P<restored>\d+)@1 into .*: 8 files"
        r".*5\. .*Saved: checkpoint-(?P<saved>\d+); all 8 files have the trainer's SHA-256"
        r".*Lost:  \d+ steps? of training after it",
        re.DOTALL,
    ).search(done.stdout)
    assert told is not None, done.stdout
    assert told["restored"] == told["saved"]
    assert int(told["saved"]) >= 60
    assert list(place.iterdir()) == []
    assert processes(place) == []


def test_an_interrupt_ends_everything(place: Path) -> None:
    """On a terminal there are bars and colours; Ctrl-C leaves no process and no file."""
    terminal, other_side = pty.openpty()
    env = environment(place, TERM="xterm", NO_COLOR="")
    with subprocess.Popen(DEMO, stdout=other_side, stderr=other_side, env=env) as demo:
        os.close(other_side)
        shown = read_until(terminal, rb"\[#+\.*\] checkpoint-20")
        assert b"\x1b[1;36m1. A trainer saves" in shown
        assert len(processes(place)) == 2
        demo.send_signal(signal.SIGINT)
        read_until(terminal, b"")
        assert demo.wait(PATIENCE_SECONDS) == 128 + signal.SIGINT
    os.close(terminal)
    assert list(place.iterdir()) == []
    assert processes(place) == []


def read_until(terminal: int, wanted: bytes) -> bytes:
    """Read until a pattern was shown (an empty one: to the end); return all that was shown."""
    shown = b""
    end = time.monotonic() + PATIENCE_SECONDS
    while not (wanted and re.search(wanted, shown)):
        ready, _, _ = select.select([terminal], [], [], max(end - time.monotonic(), 0.0))
        assert ready, shown.decode(errors="replace")
        try:
            block = os.read(terminal, 65536)
        except OSError:  # Linux says so where the other side is closed
            block = b""
        if not block:
            assert not wanted, shown.decode(errors="replace")
            return shown
        shown += block
    return shown
