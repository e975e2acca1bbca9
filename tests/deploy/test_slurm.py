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


#: As the cluster runs a step: on two nodes at once, each with a disk of its own.
SRUN = """#!/bin/sh
shift
for node in 0 1; do
  SLURM_NODEID=$node SLURM_NNODES=2 DISK=$DISK/$node "$@" & pids="$pids $!"
done
code=0
for pid in $pids; do wait "$pid" || code=$?; done
exit "$code"
"""
#: A training in which every node writes its share of one checkpoint.
TRAINING = """
import os, pathlib, sys
node = os.environ["SLURM_NODEID"]
folder = pathlib.Path(sys.argv[1]) / "step-5"
folder.mkdir()
(folder / f"shard-{node}.bin").write_bytes(node.encode() * 1000)
"""


def test_nodes_of_a_job_store_one_checkpoint(tmp_path: Path, node: dict[str, str]) -> None:
    """The batch script, told TOGETHER, trains on two nodes, and one restore has both shares."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, text in (("srun", SRUN), ("ckptsyncd", Path(node["CKPTSYNCD"]).read_text())):
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    (tmp_path / "training.py").write_text(TRAINING)
    environ = {
        **node,
        "PATH": f"{tools}:{node['PATH']}",
        "TRAIN": f"{sys.executable} {tmp_path / 'training.py'}",
        "TOGETHER": "1",
        "STATE_DIRECTORY": str(tmp_path / "state"),
        "RUNTIME_DIRECTORY": str(tmp_path / "sockets"),
        "CKPTSYNCD_RANKS_QUIET_SECONDS": "1s",
    }
    batch = ["bash", str(SLURM / "train.sbatch")]
    done = subprocess.run(
        batch, env=environ, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    command = [node["CKPTSYNCD"], "restore", f"{node['DESTINATION']}/{JOB}", str(tmp_path / "all")]
    restored = subprocess.run(command, env=node, capture_output=True, check=False, timeout=60)
    assert restored.returncode == 0, restored.stderr
    found = {path.name for path in (tmp_path / "all" / "step-5").iterdir()}
    assert found == {"shard-0.bin", "shard-1.bin"}
