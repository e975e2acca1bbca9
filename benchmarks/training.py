"""What a training that keeps the machine busy loses by whoever saves its checkpoints for it.

``python -m benchmarks.training [--rounds 3] [--seconds 60] [--who ckptsyncd,nothing]``: a loop of
matrix products on every core (PyTorch where it is installed, numpy elsewhere), which reads its
batches from a file and saves 500 MiB every 20 s, alone and beside each sidecar in turn. What is
compared are the steps in a minute, in rounds that are interleaved, against the loop alone in the
same round. The server runs on the same machine, without TLS and at the lowest priority, so that it
takes as little as a server elsewhere would.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.daemon import daemon
from benchmarks.data import MIB
from benchmarks.meter import cpu_of
from benchmarks.peers import program
from benchmarks.results import FOLDER, Figure, figures_table, newest
from benchmarks.server import BUCKET, Target, sink

SAVE_SECONDS = 20.0
SAVE_BYTES = 500 * MIB
BATCH_BYTES = MIB
BATCHES = 512
WIDTH = 1024
#: Trainers keep their newest few.
KEPT = 2
#: Between two passes of a loop around a program.
LOOP_SECONDS = 10
CAP = "50MiB/s"


def product() -> Callable[[bytes], object]:
    """Return one step: a product of matrices on every core."""
    try:
        import torch  # noqa: PLC0415 - where it is installed
    except ImportError:
        import numpy as np  # noqa: PLC0415 - only the loop needs it

        made = np.random.default_rng(1).random((WIDTH, WIDTH), dtype=np.float32)
        made /= made.sum(axis=0)
        held: Any = [made]

        def step(batch: bytes) -> object:
            held[0] = held[0] @ made
            return np.frombuffer(batch, dtype=np.uint8)[::4096].sum() + held[0][0, 0]

        return step
    weights = torch.rand(WIDTH, WIDTH)
    weights /= weights.sum(dim=0)
    state = [weights]

    def torch_step(batch: bytes) -> object:
        state[0] = state[0] @ weights
        return sum(batch[::4096]) + float(state[0][0, 0])

    return torch_step


def train(root: Path, batches: Path, seconds: float) -> None:
    """Step and save for so long; print how many steps were done, and how long a save took."""
    step, block = product(), os.urandom(MIB)
    steps = saves = 0
    saving = 0.0
    with batches.open("rb") as source:
        begun = time.monotonic()
        while (now := time.monotonic() - begun) < seconds:
            if now >= (saves + 0.5) * SAVE_SECONDS:
                saves += 1
                save(root, saves, block)
                saving += time.monotonic() - begun - now
            step(os.pread(source.fileno(), BATCH_BYTES, steps % BATCHES * BATCH_BYTES))
            steps += 1
    told = {"steps": steps, "saves": saves, "saving": saving}
    sys.stdout.write(json.dumps(told) + "\n")


def save(root: Path, number: int, block: bytes) -> None:
    """Write a checkpoint beside, give it its name, and drop what is old."""
    beside = root / f".step-{number}.tmp"
    with beside.open("wb") as file:
        for turn in range(SAVE_BYTES // MIB):
            file.write(turn.to_bytes(8, "big") + block[8:])
    beside.rename(root / f"step-{number}.bin")
    (root / f"step-{number - KEPT}.bin").unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class Run:
    """One loop: steps in a minute, seconds of one save, CPU seconds of the sidecar in a minute."""

    steps: float
    saving: float
    cpu: float


def beside(target: Target, work: Path, *options: str) -> Iterator[tuple[Path, Callable[[], float]]]:
    """Run our daemon."""
    base = Path(tempfile.mkdtemp(dir=work, prefix="daemon-"))
    with daemon(target, base, *options) as ours:
        process = ours.process
        assert process is not None  # noqa: S101 - it runs
        yield ours.root, lambda: cpu_of(process.pid)
    shutil.rmtree(base)


def alone(work: Path) -> Iterator[tuple[Path, Callable[[], float]]]:
    """Run nothing."""
    with tempfile.TemporaryDirectory(dir=work) as folder:
        yield Path(folder), lambda: 0.0


def looped(
    target: Target, work: Path, command: Sequence[str]
) -> Iterator[tuple[Path, Callable[[], float]]]:
    """Run a program again and again, as people do; ``ROOT`` in it is what it watches."""
    with tempfile.TemporaryDirectory(dir=work) as folder:
        line = " ".join(command).replace("ROOT", folder)
        script = f"while :; do {line}; sleep {LOOP_SECONDS}; done"
        env = {**os.environ, **target.environment}
        with subprocess.Popen(["sh", "-c", script], env=env, start_new_session=True) as shell:
            try:
                yield Path(folder), lambda: family_cpu(shell.pid)
            finally:
                os.killpg(shell.pid, 9)


def family_cpu(pid: int) -> float:
    """Return the CPU seconds of a shell and of the children that it has waited for."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(one) for one in fields[11:15]) / os.sysconf("SC_CLK_TCK")


def sidecars(target: Target, work: Path) -> dict[str, Callable[[], Any]]:
    """Return who is tried, the loop alone first."""
    to, where = f"s3://{BUCKET}", ["--endpoint-url", target.endpoint]
    aws = [program("aws") or "", *where, "s3", "sync", "--only-show-errors", "--exclude='.*'"]
    s5cmd = [program("s5cmd") or "", "--log", "error", *where, "sync", "--exclude='.*'"]
    remote = f":s3,provider=Other,env_auth=true,endpoint='{target.endpoint}':{BUCKET}/rclone"
    rclone = [program("rclone") or "", "--config", "/dev/null", "--s3-no-check-bucket"]
    rclone += ["--s3-force-path-style", "copy", "--exclude='.*'", "ROOT", f'"{remote}"']
    loops = {
        "aws s3 sync": [*aws, "ROOT", f"{to}/sync/"],
        "s5cmd sync": [*s5cmd, "ROOT/", f"{to}/s5cmd/"],
        "rclone copy": rclone,
    }
    found: dict[str, Callable[[], Any]] = {
        "nothing": lambda: alone(work),
        "ckptsyncd": lambda: beside(target, work),
        f"ckptsyncd, at most {CAP}": lambda: beside(target, work, "--bandwidth", CAP),
    }
    for name, command in loops.items():
        if command[0]:
            found[f"{name} every {LOOP_SECONDS} s"] = lambda made=command: looped(  # type: ignore[misc]
                target, work, made
            )
    return found


def measured(ways: Callable[[], Any], batches: Path, seconds: float) -> Run:
    """Train once beside one of them."""
    with contextmanager(ways)() as (root, cpu):
        before = cpu()
        command = [sys.executable, "-m", "benchmarks.training", "--loop", str(root)]
        done = subprocess.run(
            [*command, str(batches), str(seconds)], capture_output=True, check=True
        )
        told = json.loads(done.stdout)
        spent = cpu() - before
    minute = 60.0 / seconds
    return Run(told["steps"] * minute, told["saving"] / max(told["saves"], 1), spent * minute)


def compared(work: Path, rounds: int, seconds: float, who: Sequence[str]) -> Iterator[Figure]:
    """Train beside each in turn, and yield what each takes of the loop's steps."""
    batches = work / "batches"
    batches.write_bytes(os.urandom(MIB) * (BATCHES * BATCH_BYTES // MIB))
    runs: dict[str, list[Run]] = {}
    with sink(work, name="training", options=("-s", "20000")) as target:
        os.setpriority(os.PRIO_PROCESS, target.pid, 19)
        chosen = {
            name: way
            for name, way in sidecars(target, work).items()
            if not who or any(part in name for part in who) or name == "nothing"
        }
        for _ in range(rounds):
            for name, way in chosen.items():
                runs.setdefault(name, []).append(measured(way, batches, seconds))
                sys.stderr.write(f"{name}: {runs[name][-1]}\n")
    note = f"{SAVE_BYTES // MIB} MiB saved every {SAVE_SECONDS:.0f} s"
    first = runs["nothing"]
    yield Figure("training alone: steps", tuple(one.steps for one in first), "/min", note)
    for name, found in runs.items():
        cpus = tuple(one.cpu for one in found)
        if name != "nothing":
            pairs = zip(found, first, strict=True)
            lost = tuple(100.0 * (1.0 - one.steps / free.steps) for one, free in pairs)
            yield Figure(f"training beside {name}: steps lost", lost, "%", note)
            yield Figure(f"training beside {name}: its CPU", cpus, "s/min")
        saving = tuple(one.saving for one in found)
        yield Figure(f"training beside {name}: one save", saving, "s")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table, and add it to the results of the day where there are some."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.training", description=__doc__)
    parser.add_argument("--loop", nargs=3, metavar=("ROOT", "BATCHES", "SECONDS"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--who", default="", help="only sidecars whose names contain one of these")
    parser.add_argument("--work", type=Path, help="where data is made (default: a temporary one)")
    parser.add_argument("--add", action="store_true", help="add to the newest results kept")
    options = parser.parse_args(arguments)
    if options.loop:
        train(Path(options.loop[0]), Path(options.loop[1]), float(options.loop[2]))
        return 0
    who = tuple(filter(None, options.who.split(",")))
    with tempfile.TemporaryDirectory(dir=options.work) as folder:
        found = list(compared(Path(folder), options.rounds, options.seconds, who))
    sys.stdout.write("\n".join(figures_table(found)) + "\n")
    kept = newest(FOLDER) if options.add else None
    if kept is not None:
        names = {one.name for one in found}
        kept.figures = [one for one in kept.figures if one.name not in names] + found
        sys.stdout.write(f"{kept.save(FOLDER)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
