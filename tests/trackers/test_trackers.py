"""What the real program tells trackers, read back by TensorBoard's and W&B's own code."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ckptsyncd.report.readings import Reading
from ckptsyncd.report.wandb_pipe import AGAIN_SECONDS, WandbPipe
from tests.process.program import Program, until
from tests.process.saving import trainer_checkpoint
from tests.report.examples import NOW
from tests.trackers.reading import history

needs_tensorboard = pytest.mark.skipif(
    importlib.util.find_spec("tensorboard") is None, reason="the extra 'trackers' is not installed"
)
needs_wandb = pytest.mark.skipif(
    importlib.util.find_spec("wandb") is None, reason="the extra 'wandb' is not installed"
)
OFFLINE = {"WANDB_MODE": "offline", "WANDB_RUN_ID": "of-the-trainer"}


@pytest.fixture
def daemons() -> Iterator[list[Program]]:
    """Hold programs; they are killed at the end of the test."""
    made: list[Program] = []
    yield made
    for one in made:
        if not one.ended():
            one.kill()


def started(tmp_path: Path, daemons: list[Program], *options: str) -> Program:
    """Return a running daemon for a new watch root."""
    one = Program(
        tmp_path / "root", f"file://{tmp_path}/durable", tmp_path / "daemon", options, OFFLINE
    )
    daemons.append(one)
    return one.start()


def scalars(directory: Path) -> dict[str, list[Any]]:
    """Return what TensorBoard shows of a run, by tag."""
    from tensorboard.backend.event_processing import (  # noqa: PLC0415 - where it is installed
        event_accumulator,
    )

    board = event_accumulator.EventAccumulator(str(directory))
    board.Reload()
    return {tag: board.Scalars(tag) for tag in board.Tags()["scalars"]}


@needs_tensorboard
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_tensorboard_reads_what_was_written(tmp_path: Path, daemons: list[Program]) -> None:
    """Two saves later its own reader finds both safe steps, sizes, latencies and unsynced bytes."""
    board = tmp_path / "logs"
    daemon = started(tmp_path, daemons, "--tensorboard-dir", str(board))
    for step in (10, 20):
        trainer_checkpoint(tmp_path / "root", step)
        daemon.until_safe(f"checkpoint-{step}")
    assert daemon.stop() == 0
    shown = scalars(board / "ckptsyncd")
    steps = {(event.step, event.value) for event in shown["ckptsyncd/safe_step"]}
    assert {(10, 10.0), (20, 20.0)} <= steps
    assert shown["ckptsyncd/safe_bytes"][-1].value > 0
    assert shown["ckptsyncd/commit_latency_seconds"][-1].value > 0
    assert shown["ckptsyncd/unsynced_bytes"][-1].value == 0


@needs_wandb
@pytest.mark.slow
def test_wandb_keeps_what_was_told_offline(tmp_path: Path, daemons: list[Program]) -> None:
    """The offline run's file holds the safe step of each save; the trainer's run is not joined."""
    daemon = started(tmp_path, daemons, "--wandb-project", "llama", "--tracker-seconds", "1s")
    trainer_checkpoint(tmp_path / "root", 10)
    daemon.until_safe("checkpoint-10")
    assert daemon.stop() == 0
    place = tmp_path / "daemon" / "state" / "wandb"

    def rows() -> list[dict[str, Any]]:
        files = list(place.rglob("run-*.wandb"))
        return history(files[0]) if files else []

    until(
        lambda: any(row.get("ckptsyncd/safe_step") == 10 for row in rows()),
        "the safe step is in the file",
    )
    row = next(row for row in rows() if row.get("ckptsyncd/safe_step") == 10)
    assert row["ckptsyncd/step"] == 10
    assert row["ckptsyncd/safe_bytes"] > 0
    assert row["ckptsyncd/commit_latency_seconds"] > 0
    assert row["ckptsyncd/unsynced_bytes"] == 0
    assert not list(place.rglob("*of-the-trainer*"))


def test_a_process_that_ends_is_told_and_not_started_at_once(tmp_path: Path) -> None:
    """Where W&B cannot start, readings fail with the place of its words, and rarely try again."""
    hollow = tmp_path / "hollow" / "wandb"
    hollow.mkdir(parents=True)
    (hollow / "__init__.py").write_text("raise SystemExit(3)")
    environ = {**os.environ, "PYTHONPATH": str(hollow.parent)}
    pipe = WandbPipe("llama", "run", tmp_path / "wandb", environ)
    one = Reading("llama", NOW, 1, 1, 1, None, 0)

    def fails(seconds: float) -> str:
        try:
            pipe.write(Reading("llama", NOW + seconds, 1, 1, 1, None, 0))
        except OSError as error:
            return str(error)
        return ""

    pipe.write(one)
    until(lambda: "ended with code 3" in fails(1.0), "its end is seen")
    assert "see " in fails(AGAIN_SECONDS - 1)
    assert fails(AGAIN_SECONDS) == ""
    assert pipe.close(60.0)


def test_a_missing_library_is_told_before_anything_starts(
    tmp_path: Path, daemons: list[Program]
) -> None:
    """Asking for W&B without its package is an error of usage that names the extra."""
    if importlib.util.find_spec("wandb") is not None:
        pytest.skip("wandb is installed here")
    daemon = started(tmp_path, daemons, "--wandb-project", "llama")
    assert daemon.wait() == 2
    assert "ckptsyncd[wandb]" in daemon.log
