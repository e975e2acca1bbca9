"""drain, drill, commit and wait against a daemon's socket, and the settings that run is given."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

from ckptsyncd.core.draining.drain_report import DrainReport, LeftBehind
from ckptsyncd.core.messages import CommitRequested, Noticed
from ckptsyncd.core.snapshot import Snapshot
from ckptsyncd.settings.table import Settings
from tests.cli.bench import PATIENCE, Captured, Daemon, ended
from tests.report.examples import BUSY, CALM, view


def answer_drain(daemon: Daemon, then: Snapshot) -> threading.Thread:
    """Let the daemon see the notice and drain, as the loop would."""

    def loop() -> None:
        message = daemon.inbox.get(timeout=PATIENCE)
        assert isinstance(message, Noticed)
        daemon.shown = replace(then, notice=message.notice)

    thread = threading.Thread(target=loop)
    thread.start()
    return thread


def test_drain(daemon: Daemon, capsys: Captured) -> None:
    """Drain returns when everything is safe, with 0."""
    thread = answer_drain(daemon, replace(CALM, state="drained"))
    assert ended("drain", "--deadline", "30s") == 0
    thread.join(PATIENCE)
    assert capsys.readouterr().out == "everything that was finished is safe\n"


def test_drain_too_late(daemon: Daemon, capsys: Captured) -> None:
    """When the deadline comes first the exit code is 6, and the reason says what is missing."""
    thread = answer_drain(daemon, replace(BUSY, state="draining"))
    assert ended("drain", "--deadline", "300ms") == 6
    thread.join(PATIENCE)
    err = capsys.readouterr().err
    assert f"timeout: {BUSY.unsynced_bytes} bytes of finished checkpoints" in err


def test_drain_without_waiting(daemon: Daemon, capsys: Captured) -> None:
    """With --no-wait the notice is given and the command ends."""
    assert ended("drain", "--no-wait") == 0
    assert capsys.readouterr().out == "draining, 120s left\n"
    assert isinstance(daemon.inbox.get(timeout=PATIENCE), Noticed)


def test_a_pre_stop_hook(daemon: Daemon, capsys: Captured) -> None:
    """The deadline is the daemon's own stop timeout, and the notice says what it is."""
    thread = answer_drain(daemon, replace(CALM, state="drained"))
    assert ended("drain", "--pre-stop") == 0
    thread.join(PATIENCE)
    notice = daemon.shown.notice
    assert notice is not None
    assert notice.source == "pre-stop"
    assert notice.severity == "binding"
    assert capsys.readouterr().out == "everything that was finished is safe\n"


def answer_drill(daemon: Daemon, *left: LeftBehind) -> threading.Thread:
    """Let the daemon drain on the pretended notice, report, and run on, as the loop would."""

    def loop() -> None:
        message = daemon.inbox.get(timeout=PATIENCE)
        assert isinstance(message, Noticed)
        name = message.notice.notice_id
        at = CALM.taken_at
        report = DrainReport(
            "drill", name, "", "deadline", at, at + 7, at + 30, ("llama/a@1",), left=left
        )
        daemon.shown = replace(CALM, last_drain=report)

    thread = threading.Thread(target=loop)
    thread.start()
    return thread


def test_a_drill_that_would_lose_something(daemon: Daemon, capsys: Captured) -> None:
    """Names and sizes of what would be lost, what a restore would find, and exit code 6."""
    lost = LeftBehind("llama/b", "llama", 1, 2, 4 * 2**30, 2**30, "")
    thread = answer_drill(daemon, lost)
    assert ended("drill", "--deadline", "30s") == 6
    thread.join(PATIENCE)
    assert capsys.readouterr().out == (
        "3.0 GiB would have been lost with 30 s of warning:\n"
        "  llama/b: 3.0 GiB of 4.0 GiB not in the store\n"
        "a restore would have found: llama/a@1\n"
    )


def test_a_drill_that_would_lose_nothing(daemon: Daemon, capsys: Captured) -> None:
    """One line says so, with the time that it took."""
    thread = answer_drill(daemon)
    assert ended("drill") == 0
    thread.join(PATIENCE)
    shown = capsys.readouterr().out
    assert shown.startswith("nothing would have been lost: all that is finished was safe after 7.0")


def test_commit(daemon: Daemon, capsys: Captured) -> None:
    """Commit takes an absolute path or one below the watch root, and can wait until it is safe."""
    (daemon.root / "llama").mkdir()
    (daemon.root / "llama" / "checkpoint-4200").mkdir()
    assert ended("commit", str(daemon.root / "llama" / "checkpoint-4200")) == 0
    assert daemon.inbox.get(timeout=PATIENCE) == CommitRequested("llama/checkpoint-4200")
    assert ended("commit", "llama/checkpoint-4200", "--wait") == 0
    assert capsys.readouterr().out == (
        "llama/checkpoint-4200 is taken for whole\nllama/checkpoint-4200 (edition 1) is safe\n"
    )
    assert ended("commit", "/etc/passwd") == 7
    assert ended("commit", "llama/none") == 2


def test_wait(daemon: Daemon, capsys: Captured) -> None:
    """Wait ends with 0 when it is safe, with 6 when it is not in time or never will be."""
    assert ended("wait", "--step", "4200") == 0
    assert ended("wait", "llama/checkpoint-4200", "--timeout", "1s") == 0
    daemon.shown = replace(CALM, checkpoints=(view(4300, "superseded", reason="4400 went first"),))
    assert ended("wait", "llama/checkpoint-4300") == 6
    assert "superseded: llama/checkpoint-4300 is superseded: 4400" in capsys.readouterr().err
    assert ended("wait", "--step", "5000", "--timeout", "200ms") == 6


def test_asking_nobody(home: Path) -> None:
    """Every command that needs a daemon exits 5 where there is none."""
    asking: tuple[tuple[str, ...], ...] = (
        ("drain",),
        ("commit", "x"),
        ("wait", "x"),
        ("wait", "--step", "1"),
    )
    for arguments in asking:
        assert ended(*arguments) == 5
    assert not (home / "run").exists()


def run_with(arguments: list[str], code: str) -> subprocess.CompletedProcess[str]:
    """Return a finished run of the program in which the daemon is another function."""
    program = (
        "import sys, types\n"
        "app = types.ModuleType('ckptsyncd.app')\n"
        f"{code}\n"
        "sys.modules['ckptsyncd.app'] = app\n"
        "from ckptsyncd.cli import main\n"
        f"main({arguments!r})\n"
    )
    return subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True
    )


SHOW = (
    "app.run = lambda settings, command, read_again: print(settings.dir, settings.hands,"
    " settings.companions, settings.exclude, command) or 42\n"
    "app.sync = lambda settings: print(settings.url) or 6"
)


def test_run_reads_flags_and_the_trainers_command(home: Path) -> None:
    """Flags before ``--`` are settings, everything after it is the trainer's, its code is ours."""
    watched = home / "watched"
    watched.mkdir()
    flags = ["--hands", "7", "--no-companions", "--exclude", "*.tmp", "--exclude", "a,b"]
    trainer = ["python", "train.py", "--hands", "9", "--", "-x"]
    done = run_with(["run", str(watched), "s3://b/p", *flags, "--", *trainer], SHOW)
    assert done.returncode == 42, done.stderr
    assert done.stdout == f"{watched} 7 False ('*.tmp', 'a,b') {tuple(trainer)}\n"
    done = run_with(["sync", str(watched), "s3://b/p/"], SHOW)
    assert (done.returncode, done.stdout) == (6, "s3://b/p\n")


def test_run_needs_no_flags(home: Path) -> None:
    """Everything may come from the environment: then even DIR and URL are left away."""
    watched = home / "watched"
    watched.mkdir()
    os.environ |= {"CKPTSYNCD_DIR": str(watched), "CKPTSYNCD_URL": "s3://b/p"}
    done = run_with(["run", "--", "true"], SHOW)
    assert done.stdout == f"{watched} {Settings().hands} True () ('true',)\n"
    assert (home / "state").is_dir()
    assert (home / "run").is_dir()


#: The second of two machines.
TWO = ("--nodes", "2", "--node", "1")


def test_config(home: Path, capsys: Captured) -> None:
    """The sample is printed as it is; what holds is shown with where it was said."""
    (home / "watched").mkdir()
    assert ended("config", "--sample") == 0
    assert "#quiet_seconds = " in capsys.readouterr().out
    os.environ["CKPTSYNCD_HANDS"] = "3"
    assert ended("config", "--show", str(home / "watched"), "s3://b/p", *TWO) == 0
    out = capsys.readouterr().out
    assert "hands = 3  # CKPTSYNCD_HANDS\n" in out
    assert "nodes = 2  # --nodes\n" in out
