"""A real distributed checkpoint whose shards lie on two disks, made one again and loaded."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.frameworks.trainer import ENVIRONMENT
from tests.process.conftest import Start
from tests.process.program import command
from tests.servers import free_ports

pytestmark = [pytest.mark.frameworks, pytest.mark.slow]

NAME = "step-5"
OPTIONS = ("--ranks-quiet-seconds", "2s")
#: Imports of a large framework from a cold disk take their time.
PATIENCE_SECONDS = 240.0


def torch_does(*arguments: str) -> int:
    """Run the trainer's program to its end and return its exit code."""
    made = [sys.executable, "-m", "tests.frameworks.trainings.two_machines", *arguments]
    environment = {**os.environ, **ENVIRONMENT}
    return subprocess.run(made, check=False, env=environment, timeout=PATIENCE_SECONDS).returncode


@pytest.mark.parametrize("counted", [("--nodes", "2"), ()], ids=["counted", "by the metadata"])
def test_four_ranks_in_two_directories_load_as_one(
    counted: tuple[str, ...], tmp_path: Path, program: Start
) -> None:
    """Each daemon sees two of four shards and one sees .metadata; restored, one process loads all.

    Before both have their part in the store there is no checkpoint.
    """
    if importlib.util.find_spec("torch") is None:
        pytest.skip("needs torch (pip install 'ckptsyncd[frameworks]')")
    roots = [tmp_path / "a", tmp_path / "b"]
    for root in roots:
        root.mkdir()
    durable, sums = f"file://{tmp_path}/durable", str(tmp_path / "sums")
    first = program(roots[0], durable, *OPTIONS, *counted, "--node", "0").start()
    port = str(free_ports(1)[0])
    assert torch_does("save", str(roots[0]), str(roots[1]), sums, port) == 0
    assert (roots[0] / NAME / ".metadata").exists()
    assert sorted(path.name for path in (roots[1] / NAME).iterdir()) == [
        "__2_0.distcp",
        "__3_0.distcp",
    ]
    assert command("restore", durable, str(tmp_path / "early")).returncode == 3
    second = program(roots[1], durable, *OPTIONS, *counted, "--node", "1").start()
    for daemon in (first, second):
        daemon.until_safe(NAME)
    back = command("restore", durable, str(tmp_path / "new"))
    assert back.returncode == 0, back.stderr
    assert torch_does("load", str(tmp_path / "new"), sums) == 0
    own = command("restore", durable, str(tmp_path / "own"), "--node", "1")
    assert own.returncode == 0, own.stderr
    assert sorted(path.name for path in (tmp_path / "own" / NAME).iterdir()) == [
        "__2_0.distcp",
        "__3_0.distcp",
    ]
