"""status against a daemon's socket, living, hanging and dead."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from dataclasses import replace
from pathlib import Path

from ckptsyncd.cli.status import fitting
from ckptsyncd.core.orders import Remember
from tests.cli.bench import PATIENCE, URL, Captured, Daemon, ended
from tests.report.examples import BUSY, CALM


def test_status_of_the_only_daemon(daemon: Daemon, capsys: Captured) -> None:
    """Without arguments the only running daemon is asked; its exit code is the answer."""
    assert ended("status", "--socket", str(daemon.path)) == 0
    capsys.readouterr()
    assert ended("status") == 0
    out = capsys.readouterr().out
    assert out.startswith(f"running: watching and uploading\n{daemon.root} -> {URL} (pid ")
    assert "at risk: nothing that is finished" in out
    daemon.shown = BUSY
    assert ended("status") == 6
    daemon.shown = replace(BUSY, store_failing="HTTP 503")
    assert ended("status") == 5
    assert "store failing: HTTP 503" in capsys.readouterr().out


def test_status_as_json(daemon: Daemon, capsys: Captured) -> None:
    """The document is one line of JSON on stdout, and nothing else."""
    daemon.shown = BUSY
    assert ended("status", "--json") == 6
    (line,) = capsys.readouterr().out.splitlines()
    document = json.loads(line)
    assert document["daemon"]["state"] == "running"
    assert document["unsynced_bytes"] == BUSY.unsynced_bytes


def test_a_dead_daemon_is_told_apart(home: Path, capsys: Captured) -> None:
    """When nobody answers, status says that first, shows what was last known, and exits 5."""
    daemon = Daemon(home)
    daemon.die()
    assert ended("status") == 5
    out = capsys.readouterr().out
    assert out.startswith("the daemon is dead: no daemon runs here; it was pid ")
    assert "3 min 5 s ago, when it was running" in out
    assert "step 4200 safe" in out
    assert ended("status", "--json", "--socket", str(daemon.path)) == 5
    document = json.loads(capsys.readouterr().out)
    assert (document["daemon"]["state"], document["daemon"]["last_state"]) == ("dead", "running")
    assert "no daemon answers" in document["daemon"]["reason"]
    assert document["exit_code"] == 5
    assert document["recovery_points"][0]["age_seconds"] > 1e6


def test_a_daemon_that_hangs_is_told_from_a_dead_one(home: Path, capsys: Captured) -> None:
    """Where nobody answers and the lock is held, status says so: it lives and hangs."""
    daemon = Daemon(home)
    daemon.api.close()
    assert ended("status", "--socket", str(daemon.path)) == 5
    assert "it holds its lock and does not answer" in capsys.readouterr().out
    daemon.die()


def test_nothing_to_tell(home: Path, capsys: Captured) -> None:
    """Where no daemon runs and none left anything, that is the error."""
    assert ended("status") == 5
    assert capsys.readouterr().err.startswith("error: no daemon runs here\nhint: start one")
    assert ended("status", "--socket", str(home / "x.sock")) == 5
    assert "no daemon answers on" in capsys.readouterr().err
    (home / "state" / "x").mkdir(parents=True)
    (home / "state" / "x" / "ledger.sqlite").write_text("garbage")
    (home / "state" / "x" / "lock").write_text("garbage")
    assert ended("status") == 5


def test_several_daemons_are_listed(home: Path, capsys: Captured) -> None:
    """Where several run, the error lists their sockets and watch roots, and --socket chooses."""
    daemons = [Daemon(home, name) for name in ("one", "two")]
    assert ended("status") == 2
    err = capsys.readouterr().err
    for daemon in daemons:
        assert f"{daemon.path} ({daemon.root})" in err
    assert "name one with --socket" in err
    assert ended("status", "--socket", str(daemons[1].path)) == 0
    daemons[0].die()
    assert ended("status") == 0
    daemons[1].die()


def test_the_config_file_names_the_daemon(daemon: Daemon, home: Path, capsys: Captured) -> None:
    """A config file with the daemon's socket is enough to find it."""
    config = home / "c.toml"
    config.write_text(f"socket = '{daemon.path}'\nstate_dir = '{daemon.state_dir}'\n")
    os.environ["RUNTIME_DIRECTORY"] = str(home / "nowhere")
    assert ended("status", "--config", str(config)) == 0
    os.environ["CKPTSYNCD_CONFIG"] = str(config)
    assert ended("status") == 0
    assert str(daemon.root) in capsys.readouterr().out


def test_watching(daemon: Daemon) -> None:
    """--watch shows the status again and again until it is interrupted, and then exits 130."""
    code = "from ckptsyncd.cli import main; main(['status', '--json', '--watch'])"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    states = [json.loads(process.stdout.readline())["daemon"]["state"]]
    daemon.shown = replace(CALM, state="draining")
    states += [json.loads(process.stdout.readline())["daemon"]["state"] for _ in range(2)]
    process.send_signal(2)
    process.stdout.read()
    assert process.wait(PATIENCE) == 130
    process.stdout.close()
    assert states[0] == "running"
    assert states[-1] == "draining"


def test_an_old_ledger_without_a_snapshot(home: Path) -> None:
    """A dead daemon that left no snapshot is told like one that left nothing."""
    daemon = Daemon(home)
    daemon.ledger.apply([Remember("status", "snapshot", "null")])
    daemon.die()
    assert ended("status") == 5


def test_a_screen_that_is_too_long_says_so() -> None:
    """What does not fit the terminal is counted; what fits is left as it is."""
    text = "\n".join(str(number) for number in range(50))
    shown = fitting(text, 24).splitlines()
    assert len(shown) == 23
    assert shown[-1].startswith("(28 more lines")
    assert fitting(text, 60) == text


def seen_on_a_terminal(width: int, *arguments: str, **env: str) -> str:
    """Return what a terminal of this width gets from the first screens of ``status``."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    code = f"from ckptsyncd.cli import main; main({['status', *arguments]!r})"
    # Whoever runs the tests may say another width, which outweighs the terminal's own.
    said = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=theirs, stdin=theirs, env={**said, **env}
    ) as process:
        os.close(theirs)
        seen = b""
        while b"rate:" not in seen:
            seen += os.read(ours, 4096)
        process.send_signal(2)
        with contextlib.suppress(OSError):  # what a terminal says at its end
            while data := os.read(ours, 4096):
                seen += data
    os.close(ours)
    return seen.decode()


def test_a_terminal_gets_bars_and_colours(daemon: Daemon) -> None:
    """--watch clears the screen, draws a bar for what is under way, and wraps at the width."""
    daemon.shown = BUSY
    text = seen_on_a_terminal(60, "--watch")
    assert text.startswith("\x1b[H\x1b[2J")
    assert "[#########.......] 61 %" in text
    screen = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text).partition("rate:")[0]
    assert max(len(line) for line in screen.splitlines()) <= 60


def test_colours_can_be_refused(daemon: Daemon) -> None:
    """NO_COLOR leaves words and bars without a single escape."""
    daemon.shown = BUSY
    text = seen_on_a_terminal(100, NO_COLOR="1")
    assert "\x1b" not in text
    assert "[#########.......] 61 %" in text
