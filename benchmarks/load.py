"""The daemon under load on a volume: memory, processor time, and how long until all is safe.

``python -m benchmarks.load FILES SERIES COMPANIONS``: one checkpoint of so many small files, so
many series at once, so many companions. Prints one line for each.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.process.program import Program, until
from tests.process.saving import by_rename, safetensors_bytes, trainer_checkpoint

PATIENCE_SECONDS = 1800.0


def many_files(root: Path, count: int) -> int:
    """Save one checkpoint of many files; return how many checkpoints there are."""
    folder = root / "checkpoint-1"
    folder.mkdir()
    for number in range(count):
        (folder / f"part-{number:06d}.safetensors").write_bytes(safetensors_bytes(100, number))
    trainer_checkpoint(root, 1, weights=1000)
    return 1


def many_series(root: Path, count: int) -> int:
    """Save one checkpoint in each of many runs."""
    for number in range(count):
        (root / f"run-{number}").mkdir()
        by_rename(root / f"run-{number}" / "step-1.pt", 10_000, number)
    return count


def many_companions(root: Path, count: int) -> int:
    """Lay out many files that belong to no checkpoint, and save one checkpoint beside them."""
    for number in range(count):
        folder = root / "logs" / str(number // 1000)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number}.txt").write_text("x")
    by_rename(root / "step-1.pt", 10_000, 1)
    return 1


def safe(daemon: Program) -> int:
    """Return how many checkpoints are safe."""
    return sum(state == "safe" for state in daemon.states().values())


def measured(name: str, save: Callable[[Path, int], int], count: int) -> str:
    """Run a daemon beside what is saved, until all is safe; return what it took in one line."""
    with tempfile.TemporaryDirectory() as around:
        root = Path(around) / "root"
        root.mkdir()
        more = ("--backlog", "keep-all", "--linger-seconds", "0s")
        daemon = Program(root, f"file://{around}/durable", Path(around) / "daemon", more).start()
        process = daemon.process
        wanted = save(root, count)
        begun = time.monotonic()
        until(lambda: safe(daemon) == wanted, name, PATIENCE_SECONDS)
        took = time.monotonic() - begun
        proc = Path(f"/proc/{process.pid if process else 0}")
        peak = int(proc.joinpath("status").read_text().split("VmHWM:")[1].split()[0]) // 1024
        fields = proc.joinpath("stat").read_text().rpartition(")")[2].split()
        ticks = int(fields[11]) + int(fields[12])
        daemon.kill()
    cpu = ticks / os.sysconf("SC_CLK_TCK")
    return (
        f"{count} {name}: safe after {took:.1f} s, {cpu:.1f} s of processor, {peak} MiB at most\n"
    )


def main() -> None:
    """Measure each kind of load."""
    kinds = {"files": many_files, "series": many_series, "companions": many_companions}
    for (name, save), count in zip(kinds.items(), sys.argv[1:], strict=False):
        sys.stdout.write(measured(name, save, int(count)))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
