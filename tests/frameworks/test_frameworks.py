"""Real trainings beside the running daemon: rotated, killed in a save, restored, and resumed."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.frameworks.groups import GROUPS, Group
from tests.frameworks.trainer import Trainer
from tests.process.conftest import Start
from tests.process.program import Program, command, until

pytestmark = [pytest.mark.frameworks, pytest.mark.slow]

#: So many saves come as fast as the trainer likes; then the newest has to be safe.
FREE_SAVES = 3
#: The ranks' quiet time is 30 s where nobody says otherwise; these ranks are on one machine.
OPTIONS = ("--ranks-quiet-seconds", "3s", "--linger-seconds", "0s")
#: Times in status are floating point numbers.
ROUNDED = 1e-6
#: What the daemon is done with.
AT_REST = {"safe", "parked", "superseded", "vanished"}

Train = Callable[..., Trainer]


@pytest.fixture
def train(tmp_path: Path) -> Iterator[Train]:
    """Start trainers; they are killed at the end of the test."""
    made: list[Trainer] = []

    def start(group: Group, root: Path, name: str, *options: str, **places: Any) -> Trainer:
        made.append(Trainer(group.training, root, tmp_path / name, options, **places))
        return made[-1].start()

    yield start
    for trainer in made:
        trainer.end()


@pytest.fixture
def temporary(group: Group, tmp_path: Path) -> Iterator[Path]:
    """Name the directory for temporary files, on the file system that the group wants."""
    if not group.shared_memory:
        yield tmp_path / "temporary"
        return
    shared = Path("/dev/shm")  # noqa: S108  (another file system is what is wanted)
    if not shared.is_dir() or shared.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("needs another file system at /dev/shm")
    with tempfile.TemporaryDirectory(dir=shared) as name:
        yield Path(name)


def rows(daemon: Program) -> list[dict[str, Any]]:
    """Return what status says of every checkpoint."""
    return list((daemon.status() or {"checkpoints": []})["checkpoints"])


def is_all_safe(daemon: Program, root: Path) -> bool:
    """Return whether the newest file on disk is part of something safe, and nothing is on its way.

    Names that are being written, and the parts that their framework keeps hidden, do not count.
    """
    seen = rows(daemon)
    saved = max((row["saved_at"] for row in seen if row["state"] == "safe"), default=0.0)
    try:
        files = [path for path in root.rglob("*") if path.is_file()]
        written = max((path.stat().st_mtime_ns / 1e9 for path in files), default=0.0)
    except FileNotFoundError:  # renamed or removed meanwhile: the framework is not done
        return False
    return 0.0 < written <= saved + ROUNDED and {row["state"] for row in seen} <= AT_REST


def is_at_rest(daemon: Program, half: str) -> bool:
    """Return whether nothing is on its way, whatever is half saved."""
    seen = [row for row in rows(daemon) if row["checkpoint"] != half or row["state"] == "safe"]
    return {row["state"] for row in seen} <= AT_REST


def is_judged(daemon: Program, half: str) -> bool:
    """Return whether what is half saved was found to be so, as far as it has a name."""
    mine = [row for row in rows(daemon) if row["checkpoint"] == half and row["state"] != "safe"]
    return all(
        row["state"] == "parked" or row["reason"].startswith("its siblings have") for row in mine
    )


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.name)
def test_killed_in_a_save_restored_and_resumed(
    group: Group,
    tmp_path: Path,
    root: Path,
    temporary: Path,
    program: Start,
    train: Train,
    record_property: Callable[[str, object], None],
) -> None:
    """The framework's own loader goes on from what comes back, and every loss is bit for bit."""
    if group.missing():
        pytest.skip(f"needs {', '.join(group.missing())} (pip install 'ckptsyncd[frameworks]')")
    durable = f"file://{tmp_path}/durable"
    reference = train(group, tmp_path / "untouched", "reference", "--free")
    daemon = program(root, durable, *OPTIONS).start()
    trainer = train(group, root, "trainer", temporary=temporary)
    for _ in range(FREE_SAVES):
        trainer.let_it_save()
    trainer.until_it_asks()
    until(lambda: is_all_safe(daemon, root), lambda: f"the newest is safe\n{rows(daemon)}")
    half = trainer.kill_in_a_save(lambda: group.half_saved(root, temporary))
    until(
        lambda: is_at_rest(daemon, half) and is_judged(daemon, half),
        lambda: f"the rest is safe but {half}\n{rows(daemon)}\n{daemon.log[-2000:]}",
    )
    assert daemon.stop() == 0
    shutil.rmtree(root)
    newest = json.loads(command("list", durable, "--json").stdout)[0]
    assert newest["layout"] == group.layout
    back = command("restore", durable, str(tmp_path / "new"))
    assert back.returncode == 0, back.stderr
    resume = ("--resume", newest["checkpoint"], "--free")
    resumed = train(group, tmp_path / "new", "resumed", *resume)
    resumed.until_it_ends()
    reference.until_it_ends()
    check_losses(reference.losses(), trainer, resumed.losses())
    record_property("trained", group.name)


def check_losses(expected: dict[int, str], killed: Trainer, resumed: dict[int, str]) -> None:
    """Assert that all losses are those of a training that was left alone, the last step too."""
    before = killed.losses()
    assert before == {step: expected[step] for step in before}
    # Some write two files at each save, and died in the second.
    assert min(resumed) - 1 in killed.asked[-2:]
    assert resumed == {step: expected[step] for step in range(min(resumed), max(expected) + 1)}
