"""Drains of the real program against a real S3 server behind a link that is slow and gets stuck."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ckptsyncd.sources.pretend.scene import Scene
from ckptsyncd.sources.pretend.server import PretendedMetadata
from tests.process.conftest import Start
from tests.process.program import Program, command, until
from tests.process.saving import MIB, by_rename, trainer_checkpoint
from tests.proxy import Proxy

pytestmark = pytest.mark.server

#: Four checkpoints of 64 MiB, of which a link of 16 MiB/s carries two in ten seconds. With
#: ``CKPTSYNCD_TEST_DRAIN=full`` it is a gibibyte, 60 MB/s, and 15 s.
IS_FULL = os.environ.get("CKPTSYNCD_TEST_DRAIN") == "full"
SIZE = (256 if IS_FULL else 64) * MIB
SPEED = 60e6 if IS_FULL else 16.0 * MIB
NOTICE_SECONDS = 15.0 if IS_FULL else 10.0

#: A trainer that saves once more when it gets the signal, and goes on.
TRAINER = """
import os, signal, sys, zipfile
def save(name):
    with zipfile.ZipFile(sys.argv[1] + "/" + name + ".tmp", "w") as archive:
        archive.writestr("data", os.urandom(100000))
    os.replace(sys.argv[1] + "/" + name + ".tmp", sys.argv[1] + "/" + name)
signal.signal(signal.SIGUSR1, lambda *_: save("step=200.ckpt"))
save("step=100.ckpt")
while True:
    signal.pause()
"""


@pytest.fixture
def cloud() -> Iterator[PretendedMetadata]:
    """Pretend a cloud's metadata service, in real time."""
    with closing(PretendedMetadata(Scene(time.time))) as one:
        yield one


def options(proxy: Proxy, *more: str) -> tuple[str, ...]:
    """Return the flags that lead to the proxy."""
    return ("--s3-endpoint", proxy.endpoint, "--s3-path-style", *more)


def report_of(daemon: Program) -> dict[str, Any]:
    """Return the report that a drain left in the state directory."""
    found: dict[str, Any] = json.loads((daemon.base / "state" / "drain-report.json").read_text())
    return found


def state_of(daemon: Program) -> str:
    """Return the daemon's state, empty where it does not answer."""
    return str((daemon.status() or {}).get("daemon", {}).get("state", ""))


STEPS = (100, 200, 300, 400)


def prepare(elsewhere: Path, size: int) -> None:
    """Write four checkpoints beside the watch root: making them up takes all of the processor."""
    elsewhere.mkdir()
    for step in STEPS:
        by_rename(elsewhere / f"step={step}.ckpt", size, step)


def backlog(root: Path, elsewhere: Path, daemon: Program) -> None:
    """Let them arrive, oldest first, and see that all of them are known."""
    for step in STEPS:
        (elsewhere / f"step={step}.ckpt").rename(root / f"step={step}.ckpt")
        until(lambda step=step: (f"step={step}.ckpt", 1) in daemon.states(), "it is seen")  # type: ignore[misc]
    names = {f"step={step}.ckpt" for step in STEPS}
    until(lambda: names <= {name for name, _ in daemon.states()}, "all checkpoints are seen")


@pytest.mark.slow
def test_the_newest_is_safe_and_the_process_gone_before_the_deadline(
    root: Path, program: Start, proxy: Proxy, prefix: str, cloud: PretendedMetadata
) -> None:
    """With a backlog of twice the time, and a request that is never answered, until EC2's end."""
    env = {"AWS_EC2_METADATA_SERVICE_ENDPOINT": cloud.url, "AWS_EC2_METADATA_DISABLED": "false"}
    flags = (
        "--exit-when-drained",
        "--backlog",
        "keep-all",
        "--sources",
        "aws",
        "--piece-bytes",
        "5MiB",
    )
    daemon = program(root, prefix, *options(proxy, *flags), env=env)
    root.mkdir()
    prepare(root.parent / "elsewhere", SIZE)
    daemon.start()
    by_rename(root / "step=1.ckpt", 16 * MIB, 1)
    daemon.until_safe("step=1.ckpt")
    proxy.speed = SPEED
    stuck = proxy.rule("hold", "PUT", r"step%3D400.*partNumber|step=400.*partNumber")
    backlog(root, root.parent / "elsewhere", daemon)
    deadline = time.monotonic() + NOTICE_SECONDS
    cloud.aws.interrupt(seconds=NOTICE_SECONDS)
    assert daemon.wait(NOTICE_SECONDS) == 6
    assert time.monotonic() < deadline
    assert stuck.reached.is_set()
    report = report_of(daemon)
    left = {row["checkpoint"] for row in report["left"]}
    assert report["outcome"] in ("deadline", "stopped")
    assert report["source"] == "aws-spot"
    assert "step=400.ckpt" not in left
    assert left
    assert report["points"] == ["step=400.ckpt@1"]
    proxy.speed = None
    listed = command("list", prefix, "--json", *options(proxy))
    safe = {row["checkpoint"] for row in json.loads(listed.stdout)}
    assert "step=400.ckpt" in safe
    assert not safe & left
    assert "drain.planned" in daemon.log


@pytest.mark.parametrize("way", ["file", "socket"])
def test_a_notice_by_hand_is_drained_and_withdrawn(
    way: str, tmp_path: Path, root: Path, program: Start, proxy: Proxy, prefix: str
) -> None:
    """What is finished is safe, the state says so, and without the notice all goes on as before."""
    notice = tmp_path / "notice"
    daemon = program(root, prefix, *options(proxy, "--notice-file", str(notice)))
    root.mkdir()
    daemon.start()
    by_rename(root / "step=100.ckpt", 4 * MIB, 1)
    if way == "file":
        notice.write_text("60s")
        until(lambda: state_of(daemon) == "drained", lambda: daemon.log[-2000:])
        notice.unlink()
        until(lambda: state_of(daemon) == "running", "it runs on")
    else:
        asked = command("drain", "--deadline", "60s", "--socket", str(daemon.socket_path))
        assert asked.returncode == 0, asked.stderr
        assert state_of(daemon) == "drained"
    assert daemon.states()[("step=100.ckpt", 1)] == "safe"
    by_rename(root / "step=200.ckpt", 4 * MIB, 2)
    daemon.until_safe("step=200.ckpt")
    assert report_of(daemon)["outcome"] == "drained"
    # It goes to the store too, when there is time: before a deadline large pieces may stand first.
    assert proxy.sent("PUT", r"reports/")
    assert daemon.stop() == 0


def test_a_drill_says_what_would_be_lost_and_ends_nothing(
    root: Path, program: Start, proxy: Proxy, prefix: str
) -> None:
    """With a slow link something would be lost, and its name is told; with a fast one nothing."""
    daemon = program(root, prefix, *options(proxy))
    root.mkdir()
    daemon.start()
    proxy.speed = 4.0 * MIB
    by_rename(root / "step=100.ckpt", 40 * MIB, 1)
    until(lambda: ("step=100.ckpt", 1) in daemon.states(), "it is seen")
    asked = command("drill", "--deadline", "3s", "--socket", str(daemon.socket_path))
    assert asked.returncode == 6, asked.stdout + asked.stderr
    assert "would have been lost" in asked.stdout
    assert "step=100.ckpt" in asked.stdout
    until(lambda: state_of(daemon) == "running", "it runs on")
    proxy.speed = None
    daemon.until_safe("step=100.ckpt")
    asked = command("drill", "--deadline", "30s", "--socket", str(daemon.socket_path))
    assert asked.returncode == 0, asked.stderr
    assert "nothing would have been lost" in asked.stdout
    assert state_of(daemon) == "running"
    assert daemon.stop() == 0


def test_a_pre_stop_hook_returns_when_all_is_safe(
    root: Path, program: Start, proxy: Proxy, prefix: str
) -> None:
    """The stop that follows has nothing left to do."""
    daemon = program(root, prefix, *options(proxy, "--stop-timeout", "30s"))
    root.mkdir()
    daemon.start()
    by_rename(root / "step=100.ckpt", 4 * MIB, 1)
    until(lambda: ("step=100.ckpt", 1) in daemon.states(), "it is seen")
    asked = command("drain", "--pre-stop", "--socket", str(daemon.socket_path))
    assert asked.returncode == 0, asked.stderr
    assert daemon.states()[("step=100.ckpt", 1)] == "safe"
    assert report_of(daemon)["source"] == "pre-stop"
    assert daemon.stop() == 0


def test_a_trainer_of_ours_is_told_and_its_last_checkpoint_is_safe(
    root: Path, program: Start, proxy: Proxy, prefix: str
) -> None:
    """The child gets the signal of the settings; what it saves then is part of the drain."""
    script = root.parent / "trainer.py"
    script.write_text(TRAINER)
    root.mkdir()
    daemon = program(root, prefix, *options(proxy, "--tell-signal", "SIGUSR1"))
    daemon.start(sys.executable, str(script), str(root))
    daemon.until_safe("step=100.ckpt")
    asked = command("drain", "--deadline", "60s", "--socket", str(daemon.socket_path))
    assert asked.returncode == 0, asked.stderr
    assert daemon.states()[("step=200.ckpt", 1)] == "safe"
    assert report_of(daemon)["trainer"] == "SIGUSR1 to the trainer"
    assert daemon.stop() == 128 + 15


def test_the_size_of_a_notice_is_compared_before_there_is_one(
    root: Path, program: Start, proxy: Proxy, prefix: str
) -> None:
    """After the first upload, status says whether a notice would do."""
    daemon = program(root, prefix, *options(proxy, "--notice-seconds", "2s"))
    root.mkdir()
    daemon.start()
    proxy.speed = 8.0 * MIB
    trainer_checkpoint(root, 1, weights=8 * MIB)
    daemon.until_safe("checkpoint-1")
    until(lambda: (daemon.status() or {})["would_fit_notice"]["fits"] is not None, "measured")
    found = (daemon.status() or {})["would_fit_notice"]
    assert found["fits"] is False
    assert found["bytes"] > 24 * MIB
    assert found["seconds_needed"] > 2.0
    shown = command("status", "--socket", str(daemon.socket_path))
    assert "a notice of 2.0 s would not do" in shown.stdout
    assert daemon.stop() == 0
