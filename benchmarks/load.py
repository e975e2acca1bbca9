"""The daemon under load on a volume: memory, processor time, and how long until all is safe.

``python -m benchmarks.load files=100000 series=200 companions=1000000 saves=600 sparse=64`` runs
each kind that is named and prints one line for it: one checkpoint of so many small files, so many
series at once, so many companions, a save every 200 ms for so many seconds, and one file of so many
GiB that is nearly all hole.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.figures import rest
from benchmarks.meter import cpu_of, resident_mib, run
from tests.process.program import Program, until
from tests.process.saving import by_rename, safetensors_bytes, trainer_checkpoint

PATIENCE_SECONDS = 3600.0
MIB = 1024 * 1024
SAVE_SECONDS = 0.2
#: How many checkpoints a trainer keeps that saves without end.
KEPT_SAVES = 5
#: What is written into a file with holes: so many blocks of a MiB, at even distances.
REAL_BLOCKS = 64


@dataclass(frozen=True, slots=True)
class Bench:
    """A watch root, a store and a state below one directory, and the daemon between them."""

    around: Path
    daemon: Program

    @property
    def root(self) -> Path:
        """Where is saved."""
        return self.around / "root"

    @property
    def store(self) -> Path:
        """Where it is made safe."""
        return self.around / "durable"

    def until_safe(self, what: str, count: int) -> None:
        """Wait until at least so many checkpoints are safe."""
        until(lambda: self._safe() >= count, what, PATIENCE_SECONDS)

    def _safe(self) -> int:
        return sum(state == "safe" for state in self.daemon.states().values())

    def cost(self) -> str:
        """Return what the daemon took until now."""
        pid = self.daemon.process.pid if self.daemon.process else 0
        cpu, peak = cpu_of(pid), resident_mib(pid, "VmHWM")
        return f"{cpu:.1f} s of processor, {peak:.0f} MiB at most"


def many_files(bench: Bench, count: int) -> str:
    """Save one checkpoint of many files."""
    folder = bench.root / "checkpoint-1"
    folder.mkdir()
    for number in range(count):
        (folder / f"part-{number:06d}.safetensors").write_bytes(safetensors_bytes(100, number))
    trainer_checkpoint(bench.root, 1, weights=1000)
    return _waited(bench, 1)


def many_series(bench: Bench, count: int) -> str:
    """Save one checkpoint in each of many runs."""
    for number in range(count):
        (bench.root / f"run-{number}").mkdir()
        by_rename(bench.root / f"run-{number}" / "step-1.pt", 10_000, number)
    return _waited(bench, count)


def many_companions(bench: Bench, count: int) -> str:
    """Lay out many files that belong to no checkpoint, and save one checkpoint beside them."""
    for number in range(count):
        # A directory called by a number alone would count as a checkpoint.
        folder = bench.root / "logs" / f"day-{number // 1000}"
        if number % 1000 == 0:
            folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number}.txt").write_text("x")
    by_rename(bench.root / "step-1.pt", 10_000, 1)
    said = _waited(bench, 1)
    by_rename(bench.root / "step-2.pt", 10_000, 2)
    return f"{said}; one more {_waited(bench, 2)}"


def many_saves(bench: Bench, seconds: int) -> str:
    """Save five times a second, and keep the newest few."""
    begun, number, early = time.monotonic(), 0, 0.0
    pid = bench.daemon.process.pid if bench.daemon.process else 0
    while (now := time.monotonic()) < begun + seconds:
        by_rename(bench.root / f"step-{number}.pt", 100_000, number)
        (bench.root / f"step-{number - KEPT_SAVES}.pt").unlink(missing_ok=True)
        if not early and now > begun + seconds / 10:
            early = resident_mib(pid)
        number += 1
        rest(max(begun + number * SAVE_SECONDS - time.monotonic(), 0))
    bench.daemon.until_safe(f"step-{number - 1}.pt")
    late = sorted(_latencies(bench.store))
    return (
        f"{number} saves, {len(late)} of them safe, in the middle {late[len(late) // 2]:.2f} s "
        f"after their save and {late[-1]:.2f} s at most, {early:.0f} MiB after a tenth and "
        f"{resident_mib(pid):.0f} MiB in the end, ledger {_size(bench.daemon.base / 'state')} KiB, "
        f"log {len(bench.daemon.log) // 1024} KiB"
    )


def _latencies(store: Path) -> Iterator[float]:
    """Yield how long each checkpoint in a volume took from its save to its manifest."""
    for path in (store / ".ckptsyncd" / "manifests").glob("*.json"):
        files = json.loads(path.read_text())["files"]
        yield (path.stat().st_mtime_ns - max(file["mtime_ns"] for file in files)) / 1e9


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) // 1024


def one_with_holes(bench: Bench, gib: int) -> str:
    """Save one file of many GiB of which only some MiB are real, and bring it back."""
    size = gib * 1024 * MIB
    header = {"w": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}
    text = json.dumps(header).encode()
    saved = bench.root / ".tmp-sparse"
    with saved.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for block in range(REAL_BLOCKS):
            file.seek(block * (size // REAL_BLOCKS) + 3 * MIB)
            file.write(os.urandom(MIB))
        file.truncate(8 + len(text) + size)
    saved.replace(bench.root / "step-1.safetensors")
    said = _waited(bench, 1)
    back = bench.around / "back"
    restore = [sys.executable, "-m", "ckptsyncd", "restore", f"file://{bench.store}", str(back)]
    cost = run(restore, {})
    real = [_blocks_mib(place / "step-1.safetensors") for place in (bench.root, bench.store, back)]
    return (
        f"{said}; restored in {cost.wall_seconds:.1f} s, {cost.cpu_seconds:.1f} s of processor, "
        f"{cost.peak_mib:.0f} MiB at most; on disk {real} MiB (source, store, restored)"
    )


def _blocks_mib(path: Path) -> int:
    return path.stat().st_blocks * 512 // MIB


def _waited(bench: Bench, count: int) -> str:
    begun = time.monotonic()
    bench.until_safe("all is safe", count)
    return f"safe after {time.monotonic() - begun:.1f} s"


KINDS: dict[str, tuple[str, Callable[[Bench, int], str]]] = {
    "files": ("small files", many_files),
    "series": ("series", many_series),
    "companions": ("companions", many_companions),
    "saves": ("seconds of saves", many_saves),
    "sparse": ("GiB of holes", one_with_holes),
}


def measured(kind: str, count: int) -> str:
    """Run a daemon beside what is saved, until all is safe; return what it took in one line."""
    name, save = KINDS[kind]
    backlog = () if kind == "saves" else ("--backlog", "keep-all")
    with tempfile.TemporaryDirectory() as around:
        root = Path(around) / "root"
        root.mkdir()
        more = (*backlog, "--linger-seconds", "0s")
        daemon = Program(root, f"file://{around}/durable", Path(around) / "daemon", more).start()
        bench = Bench(Path(around), daemon)
        try:
            said = save(bench, count)
            return f"{count} {name}: {said}; {bench.cost()}\n"
        finally:
            daemon.kill()
            # A tree of a million files: the library's own removal takes minutes.
            subprocess.run(["rm", "-rf", str(root), str(bench.store)], check=False)


def main() -> None:
    """Measure each kind of load that is named."""
    for argument in sys.argv[1:]:
        kind, _, count = argument.partition("=")
        sys.stdout.write(measured(kind, int(count)))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
