"""How the program ends: stops, second signals, trainers as children, refusals."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.process.conftest import Start
from tests.process.program import Program, command, until
from tests.process.saving import MIB, by_rename, trainer_checkpoint
from tests.proxy import Proxy
from tests.servers import S3Server

#: A trainer of six lines: it saves once and ends with its own code.
TRAINER = """
import sys, zipfile
with zipfile.ZipFile(sys.argv[1] + "/ckpt.tmp", "w") as archive:
    archive.writestr("data", b"x" * 100000)
import os
os.replace(sys.argv[1] + "/ckpt.tmp", sys.argv[1] + "/ckpt.pt")
sys.exit(int(sys.argv[2]))
"""


def state(daemon: Program) -> str:
    """Return the daemon's own state, empty where nobody answers."""
    shown: str = (daemon.status() or {}).get("daemon", {}).get("state", "")
    return shown


def test_a_stop_waits_for_a_file_that_is_being_written(
    root: Path, durable: str, program: Start
) -> None:
    """SIGTERM is obeyed when the last checkpoint is closed, settled and safe, not before."""
    daemon = program(root, durable, "--stop-timeout", "60s", "--linger-seconds", "0.5").start()
    root.mkdir(exist_ok=True)
    target = root / "model.safetensors"
    data = trainer_checkpoint(root.parent / "elsewhere", 1) / "model.safetensors"
    content = data.read_bytes()
    with target.open("wb") as file:
        file.write(content[:1000])
        file.flush()
        until(lambda: ("model.safetensors", 1) in daemon.states(), "it is seen")
        daemon.signal()
        until(lambda: (daemon.status() or {}).get("daemon", {}).get("state") != "running", "told")
        file.write(content[1000:])
    assert daemon.wait() == 0
    assert "model.safetensors" in command("list", durable).stdout


def test_a_stop_waits_for_a_trainer_that_the_settings_name(
    root: Path, durable: str, program: Start
) -> None:
    """SIGTERM is obeyed when the named trainer has ended, with what it saved last made safe."""
    root.mkdir()
    wait = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    with subprocess.Popen(wait, stdin=subprocess.PIPE) as trainer:
        named = ("--tell-signal", "SIGUSR1", "--tell-pid", str(trainer.pid))
        brief = ("--linger-seconds", "0.1", "--stop-timeout", "600s")
        daemon = program(root, durable, *named, *brief).start()
        daemon.signal()
        until(lambda: state(daemon) in ("draining", "drained"), lambda: f"told\n{daemon.log}")
        # Much later than the linger: it is still there.
        trainer_checkpoint(root, 7)
        daemon.until_safe("checkpoint-7")
        trainer.kill()
        assert daemon.wait() == 0


def test_a_stop_waits_for_a_done_file(root: Path, durable: str, program: Start) -> None:
    """SIGTERM is obeyed when the file is there by which the trainer says that it is done."""
    root.mkdir()
    patient = ("--linger-seconds", "0.1", "--quiet-seconds", "1h", "--stop-timeout", "600s")
    daemon = program(root, durable, "--done-file", "DONE", *patient).start()
    folder = root / "checkpoint_best"
    folder.mkdir()
    (folder / "weights.npy").write_bytes(b"w" * MIB)
    until(lambda: ("checkpoint_best", 1) in daemon.states(), lambda: str(daemon.states()))
    daemon.signal()
    until(lambda: state(daemon) in ("draining", "drained"), lambda: f"told\n{daemon.log}")
    (folder / "optimizer.npy").write_bytes(b"o" * MIB)
    (folder / "DONE").touch()
    assert daemon.wait() == 0
    assert "checkpoint_best" in command("list", durable).stdout


@pytest.mark.server
def test_a_stop_that_cannot_finish_says_what_is_left(
    root: Path, program: Start, proxy: Proxy, s3_server: S3Server, prefix: str
) -> None:
    """When the time is over, the program ends with 6 and a line that tells the bytes."""
    del s3_server
    proxy.rule("refuse", "PUT", r"big\.pt", times=10**6)
    proxy.rule("refuse", "POST", r"big\.pt", times=10**6)
    options = ("--s3-endpoint", proxy.endpoint, "--s3-path-style", "--stop-timeout", "3s")
    daemon = program(root, prefix, *options).start()
    root.mkdir(exist_ok=True)
    by_rename(root / "big.pt", MIB, 1)
    until(lambda: daemon.states().get(("big.pt", 1)) == "uploading", "it is on its way")
    assert daemon.stop() == 6
    assert "bytes of finished checkpoints are not in the store" in daemon.log


@pytest.mark.server
def test_what_is_stored_and_not_committed_is_not_called_safe(
    root: Path, program: Start, proxy: Proxy, s3_server: S3Server, prefix: str
) -> None:
    """Every byte is in the store and the manifest is not: a stop says so, and ends with 6."""
    del s3_server
    manifest = proxy.rule("refuse", "PUT", r"/manifests/", times=10**6)
    options = ("--s3-endpoint", proxy.endpoint, "--s3-path-style", "--stop-timeout", "3s")
    daemon = program(root, prefix, *options).start()
    root.mkdir(exist_ok=True)
    by_rename(root / "a.pt", MIB, 1)
    until(manifest.reached.is_set, "the manifest is refused")
    assert daemon.stop() == 6
    assert "1 finished checkpoint in the store, but not committed yet" in daemon.log
    assert "everything that was whole is safe" not in daemon.log


@pytest.mark.server
def test_a_second_signal_ends_it_at_once(
    root: Path, program: Start, proxy: Proxy, s3_server: S3Server, prefix: str
) -> None:
    """Whoever asks twice does not wait for the stop timeout."""
    del s3_server
    proxy.rule("refuse", "PUT", r"big\.pt", times=10**6)
    options = ("--s3-endpoint", proxy.endpoint, "--s3-path-style", "--stop-timeout", "600s")
    daemon = program(root, prefix, *options).start()
    root.mkdir(exist_ok=True)
    by_rename(root / "big.pt", MIB, 1)
    until(lambda: daemon.states().get(("big.pt", 1)) == "uploading", "it is on its way")
    daemon.signal()
    until(lambda: (daemon.status() or {}).get("daemon", {}).get("state") == "draining", "told")
    daemon.signal(signal.SIGINT)
    assert daemon.wait(10.0) == 128 + signal.SIGINT


@pytest.mark.parametrize("code", [0, 3])
def test_a_trainer_as_a_child(code: int, root: Path, durable: str, program: Start) -> None:
    """What the trainer saved in its last moment is safe, and its exit code is the program's."""
    root.mkdir()
    script = root.parent / "trainer.py"
    script.write_text(TRAINER)
    daemon = program(root, durable, "--linger-seconds", "0.2")
    daemon.start(sys.executable, str(script), str(root), str(code))
    assert daemon.wait() == code
    assert "ckpt.pt" in command("list", durable).stdout


def test_a_second_daemon_is_refused_and_told_who_is_first(
    tmp_path: Path, root: Path, durable: str, program: Start
) -> None:
    """Another daemon on the same watch root, with another state directory, ends with 2."""
    root.mkdir()
    first = program(root, durable).start()
    assert first.process is not None
    second = command(
        "run", str(root), f"file://{tmp_path}/other",
        "--state-dir", str(tmp_path / "state-2"), "--socket", str(tmp_path / "s2"),
    )  # fmt: skip
    assert second.returncode == 2
    assert str(first.process.pid) in second.stderr
    assert str(first.socket_path) in second.stderr


def test_status_of_a_dead_daemon_says_so(root: Path, durable: str, program: Start) -> None:
    """After kill -9 status tells what was last known, marks it as old, and exits with 5."""
    daemon = program(root, durable).start()
    trainer_checkpoint(root, 9)
    daemon.until_safe("checkpoint-9")
    until(lambda: "checkpoint-9" in str(daemon.status()), "shown")
    daemon.kill()
    places = {"CKPTSYNCD_STATE_DIR": str(daemon.base / "state")}
    shown = command("status", "--socket", str(daemon.socket_path), env=places)
    assert shown.returncode == 5
    assert "dead" in shown.stdout + shown.stderr


def test_exit_codes_of_restore(tmp_path: Path, root: Path, durable: str) -> None:
    """Nothing there is 3; something there that does not verify is 4; neither starts afresh."""
    (tmp_path / "durable").mkdir()
    assert command("restore", durable, str(tmp_path / "back")).returncode == 3
    trainer_checkpoint(root, 5)
    assert command("sync", str(root), durable, "--state-dir", str(tmp_path / "s")).returncode == 0
    (tmp_path / "durable/checkpoint-5/model.safetensors").write_bytes(b"damaged")
    assert command("restore", durable, str(tmp_path / "back")).returncode == 4
    assert not (tmp_path / "back" / "checkpoint-5").exists()
