"""The Slurm scripts: clean, and run as the cluster runs them, with the real program."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.process.program import until
from tests.process.saving import content, trainer_checkpoint

SLURM = Path(__file__).parent.parent.parent / "docker" / "slurm"
SCRIPTS = ("prolog.sh", "epilog.sh", "train.sbatch")
JOB = "4711"

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="a prolog is run by root")


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="needs shellcheck")
@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_are_clean(name: str) -> None:
    """The shell's judge finds nothing to say."""
    command = ["shellcheck", str(SLURM / name)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_batch_script_leaves_time_to_drain() -> None:
    """What the job is told ahead of its end is more than the sidecar takes."""
    text = (SLURM / "train.sbatch").read_text()
    assert "#SBATCH --signal=B:TERM@120\n" in text
    assert "CKPTSYNCD_STOP_TIMEOUT=110s\n" in text


@pytest.fixture
def node(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Return a node's environment: a disk, a destination, and the program under a name."""
    (tmp_path / "store" / JOB).mkdir(parents=True)
    program = tmp_path / "ckptsyncd"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ckptsyncd "$@"\n')
    program.chmod(0o755)
    yield {
        **os.environ,
        "CKPTSYNCD": str(program),
        "DESTINATION": f"file://{tmp_path}/store",
        "DISK": str(tmp_path / "disk"),
        "RUN_DIR": str(tmp_path / "run"),
        "LOG_DIR": str(tmp_path / "log"),
        "DRAIN_SECONDS": "60",
        "SLURM_JOB_ID": JOB,
        "SLURM_JOB_UID": str(os.getuid()),
        "SLURM_JOB_GID": str(os.getgid()),
        "PYTHONPATH": str(SLURM.parent.parent),
    }
    left = tmp_path / "run" / f"{JOB}.pid"
    if left.exists():
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(left.read_text()), signal.SIGKILL)


def script(name: str, node: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a script as the daemon of the node does."""
    command = [str(SLURM / name)]
    return subprocess.run(
        command, env=node, capture_output=True, text=True, check=False, timeout=120
    )


@needs_root
def test_a_job_is_saved_and_comes_back(tmp_path: Path, node: dict[str, str]) -> None:
    """Prolog, two saves, epilog: the disk is empty, and the next prolog brings the newest back."""
    disk = tmp_path / "disk" / JOB
    log = tmp_path / "log" / f"{JOB}.log"
    assert (script("prolog.sh", node).returncode, disk.is_dir()) == (0, True)
    until((tmp_path / "run" / JOB / "s").exists, "the sidecar answers")
    for step in (1, 2):
        trainer_checkpoint(disk, step)
    saved = content(disk / "checkpoint-2")
    done = script("epilog.sh", node)
    assert (done.returncode, done.stdout) == (0, ""), log.read_text()
    assert not disk.exists()
    assert script("prolog.sh", node).returncode == 0
    assert content(disk / "checkpoint-2") == saved
    until((tmp_path / "run" / JOB / "s").exists, "the sidecar answers")
    assert script("epilog.sh", node).returncode == 0


@needs_root
def test_wreckage_keeps_a_job_from_starting(tmp_path: Path, node: dict[str, str]) -> None:
    """Where checkpoints exist and none is whole the prolog fails, for a fresh start wastes them."""
    test_a_job_is_saved_and_comes_back(tmp_path, node)
    for manifest in (tmp_path / "store").rglob("manifests/*.json"):
        manifest.write_bytes(b"{")
    done = script("prolog.sh", node)
    assert done.returncode == 1
    assert "(exit code 4)" in done.stdout


@needs_root
def test_an_epilog_without_a_prolog_does_nothing(node: dict[str, str]) -> None:
    """Where no sidecar was started, for whatever reason, the epilog leaves everything alone."""
    assert script("epilog.sh", node).returncode == 0
