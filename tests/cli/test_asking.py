"""status, drain, commit and wait against a daemon's socket, living and dead."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from queue import SimpleQueue

import pytest

from ckptsyncd.cli import main
from ckptsyncd.core.draining.drain_report import DrainReport, LeftBehind
from ckptsyncd.core.messages import CommitRequested, Message, Noticed
from ckptsyncd.core.orders import Remember
from ckptsyncd.core.snapshot import Snapshot
from ckptsyncd.edge.clock import BootClock
from ckptsyncd.edge.holder import Holder
from ckptsyncd.edge.ledger import Ledger, scope_of
from ckptsyncd.edge.lock import Locks, lock_root
from ckptsyncd.report.api import Api
from ckptsyncd.report.last_snapshot import LastSnapshot
from ckptsyncd.report.status_json import DaemonView
from tests.report.examples import BUSY, CALM, view

PATIENCE = 10.0
URL = "s3://bucket/run"
Captured = pytest.CaptureFixture[str]


@dataclass
class Daemon:
    """A daemon as far as commands see it: socket, lock and ledger."""

    home: Path
    name: str = "one"
    shown: Snapshot = CALM
    inbox: SimpleQueue[Message] = field(default_factory=SimpleQueue)

    def __post_init__(self) -> None:
        """Lock, listen, and leave a snapshot in the ledger."""
        self.root = self.home / f"root-{self.name}"
        self.root.mkdir()
        self.state_dir = self.home / "state" / self.name
        self.path = self.home / "run" / f"{self.name}.sock"
        clock = BootClock()
        self.locks: Locks = lock_root(
            Holder(
                pid=os.getpid(),
                host="gpu-7",
                socket=str(self.path),
                state_dir=str(self.state_dir),
                watch_root=str(self.root),
                url=URL,
            )
        )
        self.ledger = Ledger(self.state_dir / "ledger.sqlite", scope_of(str(self.root), URL))
        process = DaemonView(os.getpid(), clock.now().wall - 60, str(self.root), URL, "gpu-7")
        self.last = LastSnapshot(self.ledger.apply, process)
        self.last.keep(clock.now(), replace(BUSY, taken_at=clock.now().wall - 185))
        self.api = Api(
            self.path,
            snapshot=lambda: self.shown,
            post=self.inbox.put,
            now=clock.now,
            daemon=process,
        )
        self.api.start()

    def die(self) -> None:
        """End as a killed daemon does, leaving lock file and ledger behind."""
        self.api.close()
        self.locks.release()
        self.ledger.close()


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """Return a directory in which daemons are looked for, and only there."""
    before = dict(os.environ)
    for name in [name for name in os.environ if name.startswith("CKPTSYNCD_")]:
        del os.environ[name]
    os.environ["RUNTIME_DIRECTORY"] = str(tmp_path / "run")
    os.environ["STATE_DIRECTORY"] = str(tmp_path / "state")
    os.environ["HOME"] = str(tmp_path)
    for name in ("XDG_RUNTIME_DIR", "XDG_STATE_HOME"):
        os.environ.pop(name, None)
    yield tmp_path
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture
def daemon(home: Path) -> Iterator[Daemon]:
    """Return a running daemon."""
    running = Daemon(home)
    yield running
    running.die()


def ended(*arguments: str) -> int:
    """Return the exit code of a command run in this process."""
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    code = caught.value.code
    assert isinstance(code, int)
    return code


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
    assert done.stdout == f"{watched} 4 True () ('true',)\n"
    assert (home / "state").is_dir()
    assert (home / "run").is_dir()


def test_config(home: Path, capsys: Captured) -> None:
    """The sample is printed as it is; what holds is shown with where it was said."""
    (home / "watched").mkdir()
    assert ended("config", "--sample") == 0
    assert "#quiet_seconds = " in capsys.readouterr().out
    os.environ["CKPTSYNCD_HANDS"] = "3"
    assert ended("config", "--show", str(home / "watched"), "s3://b/p", "--nodes", "2") == 0
    out = capsys.readouterr().out
    assert "hands = 3  # CKPTSYNCD_HANDS\n" in out
    assert "nodes = 2  # --nodes\n" in out


def test_an_old_ledger_without_a_snapshot(home: Path) -> None:
    """A dead daemon that left no snapshot is told like one that left nothing."""
    daemon = Daemon(home)
    daemon.ledger.apply([Remember("status", "snapshot", "null")])
    daemon.die()
    assert ended("status") == 5
