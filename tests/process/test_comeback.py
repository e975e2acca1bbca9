"""``run --restore``: one command for a machine that comes and goes."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from tests.process.conftest import Start
from tests.process.program import until
from tests.process.saving import content, trainer_checkpoint

RESUMED = """
import pathlib, sys
found = sorted(path.name for path in pathlib.Path(sys.argv[1]).glob("checkpoint-*"))
pathlib.Path(sys.argv[2]).write_text(" ".join(found))
"""


def stored(root: Path, durable: str, program: Start, *steps: int) -> dict[str, str]:
    """Let a daemon store checkpoints, lose the machine, and return what it had."""
    daemon = program(root, durable).start()
    for step in steps:
        trainer_checkpoint(root, step)
        daemon.until_safe(f"checkpoint-{step}")
    daemon.kill()
    before = content(root)
    shutil.rmtree(root)
    return before


def test_the_newest_is_there_before_the_trainer_starts(
    root: Path, durable: str, program: Start, tmp_path: Path
) -> None:
    """The trainer of a new machine finds the newest checkpoint, and nothing is uploaded again."""
    before = stored(root, durable, program, 10, 20)
    newest = {name: mark for name, mark in before.items() if name.startswith("checkpoint-20/")}
    seen = tmp_path / "seen"
    daemon = program(root, durable, "--restore")
    daemon.start(sys.executable, "-c", RESUMED, str(root), str(seen))
    assert daemon.wait() == 0
    assert seen.read_text() == "checkpoint-20"
    assert content(root) == newest
    assert "restored checkpoint-20@1" in daemon.log
    editions = sorted(
        path.name for path in Path(durable[7:]).rglob("*.json") if "claims" in str(path)
    )
    assert editions == ["checkpoint-10.1.json", "checkpoint-20.1.json"]


def test_a_root_with_a_checkpoint_is_left_alone(root: Path, durable: str, program: Start) -> None:
    """Where something lies already nothing is restored."""
    stored(root, durable, program, 10)
    trainer_checkpoint(root, 5)
    daemon = program(root, durable, "--restore").start()
    daemon.until_safe("checkpoint-5")
    assert not (root / "checkpoint-10").exists()


def test_without_checkpoints_it_starts_afresh(root: Path, durable: str, program: Start) -> None:
    """An empty store means a fresh start: the daemon watches."""
    daemon = program(root, durable, "--restore").start()
    assert "starting from scratch" in daemon.log
    trainer_checkpoint(root, 10)
    daemon.until_safe("checkpoint-10")


def test_where_none_is_whole_it_ends(root: Path, durable: str, program: Start) -> None:
    """Checkpoints of which none is whole: code 4, and the trainer is never started."""
    stored(root, durable, program, 10)
    (Path(durable[7:]) / "checkpoint-10" / "model.safetensors").write_bytes(b"other")
    daemon = program(root, durable, "--restore").start("touch", str(root.parent / "started"))
    assert daemon.wait() == 4
    assert not (root.parent / "started").exists()


def test_every_series_comes_back(root: Path, durable: str, program: Start) -> None:
    """Two runs below one root: the newest of each is restored."""
    daemon = program(root, durable).start()
    for run in ("a", "b"):
        trainer_checkpoint(root / run, 10)
        daemon.until_safe(f"{run}/checkpoint-10")
    daemon.kill()
    before = content(root)
    shutil.rmtree(root)
    again = program(root, durable, "--restore").start()
    assert content(root) == before
    until(lambda: again.states().get(("a/checkpoint-10", 1)) == "safe", "it is known to be safe")


def test_a_second_one_waits_for_nobody(root: Path, durable: str, program: Start) -> None:
    """While a daemon has the root, another one neither restores nor starts."""
    root.mkdir()
    program(root, durable).start()
    other = program(root, durable, "--restore").start()
    assert other.wait() == 2
    assert "belongs to another daemon" in other.log
