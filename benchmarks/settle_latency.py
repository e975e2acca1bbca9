"""How long from the last close, or the rename, to ``settled``: by evidence, at rest and under load.

``python benchmarks/settle_latency.py [ROUNDS [LOAD...]]``. The real program, in this process, on a
real directory; each save is a small one, made by this script, which notes the moment after its last
system call. *refused*: the same where the kernel tells nothing of writers, as on a network file
system. *busy*: as many processes as there are cores do nothing but compute. *uploading*: the
program sends a large file meanwhile.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from queue import SimpleQueue

from ckptsyncd.app import Program
from ckptsyncd.core.facts import Instant
from ckptsyncd.core.moves import Move, Moved
from ckptsyncd.core.snapshot import Snapshot
from ckptsyncd.settings import load

PATIENCE_SECONDS = 60.0
MIB = 1024 * 1024
#: The bars, in seconds.
WITH_LEASE, WITHOUT = 0.150, 0.250
#: A large upload that lasts: so many bytes are written anew whenever the last are safe.
LARGE_BYTES = 256 * MIB


def tensors(path: Path) -> None:
    """Write a whole safetensors file in place."""
    header = json.dumps({"w": {"dtype": "U8", "shape": [4096], "data_offsets": [0, 4096]}}).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + os.urandom(4096))


def renamed(root: Path, number: int) -> str:
    """Save under a temporary name and rename."""
    name = f"step_{number}.safetensors"
    tensors(root / f".tmp{number:06d}")
    (root / f".tmp{number:06d}").rename(root / name)
    return name


def closed(root: Path, number: int) -> str:
    """Save in place a file whose format has an end."""
    name = f"epoch_{number}.safetensors"
    tensors(root / name)
    return name


def marked(root: Path, number: int) -> str:
    """Save as the Hugging Face Trainer does, its marker last."""
    name = f"checkpoint-{number}"
    (root / name).mkdir()
    tensors(root / name / "model.safetensors")
    (root / name / "trainer_state.json").write_text('{"global_step": 1}')
    return name


def sharded(root: Path, number: int) -> str:
    """Save as PyTorch's distributed checkpoint does: ``.metadata`` last, by a rename."""
    name = f"dcp/step-{number}"
    (root / name).mkdir(parents=True)
    for rank in range(2):
        (root / name / f"__{rank}_0.distcp").write_bytes(os.urandom(4096))
    (root / name / ".metadata.tmp").write_bytes(os.urandom(100))
    (root / name / ".metadata.tmp").rename(root / name / ".metadata")
    return name


WAYS: dict[str, Callable[[Path, int], str]] = {
    "rename": renamed,
    "format": closed,
    "marker": marked,
    "marker, by rename": sharded,
}


class Watched:
    """The program, and a queue of what settled when, on what evidence."""

    def __init__(self, base: Path, *, has_leases: bool) -> None:
        """Start everything."""
        self.root = base / "root"
        self.root.mkdir()
        (base / "state").mkdir()
        flags: dict[str, str | bool | tuple[str, ...] | None] = {
            "dir": str(self.root),
            "url": f"file://{base}/durable",
            "state_dir": str(base / "state"),
            "socket": str(base / "s"),
            "sources": (),
            "log_level": "error",
        }
        self.settled: SimpleQueue[tuple[str, str, float]] = SimpleQueue()
        self.program = Program(load(flags, {}).settings)
        if not has_leases:
            writers = self.program.disk._writers  # noqa: SLF001 - as on a network file system
            writers._hidden[self.root.stat().st_dev] = True  # noqa: SLF001
        self.program.loop.taps = (*self.program.loop.taps, self._tap)
        self.thread = threading.Thread(target=self.program.turn, daemon=True)
        self.thread.start()
        self.program.watch()
        pause = threading.Event()
        while not self._is_watching():
            pause.wait(0.02)

    def _is_watching(self) -> bool:
        watcher = self.program.watcher
        running = self.program.snapshot().state == "running"
        return running and watcher is not None and watcher.watches > 0

    def _tap(self, moves: Sequence[Move], now: Instant, shown: Snapshot) -> None:
        del now, shown
        for move in moves:
            if isinstance(move, Moved) and move.new == "settled":
                self.settled.put((move.checkpoint, move.reason, time.perf_counter()))

    def until_settled(self, name: str) -> tuple[str, float]:
        """Return on what evidence a checkpoint settled, and when."""
        while True:
            found, reason, at = self.settled.get(timeout=PATIENCE_SECONDS)
            if found == name:
                return reason, at

    def close(self) -> None:
        """End it."""
        self.program.stop(0.0)
        self.thread.join(PATIENCE_SECONDS)
        self.program.close()


@contextmanager
def busy(watched: Watched) -> Iterator[None]:
    """Keep every core computing."""
    del watched
    spin = [sys.executable, "-c", "while True: pass"]
    hogs = [subprocess.Popen(spin) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()


@contextmanager
def uploading(watched: Watched) -> Iterator[None]:
    """Keep the program sending something large."""
    done = threading.Event()
    block = os.urandom(MIB)

    def feed() -> None:
        number = 0
        while not done.is_set():
            number += 1
            path = watched.root / f"other/large_{number}.bin"
            path.parent.mkdir(exist_ok=True)
            with path.with_suffix(".tmp").open("wb") as file:
                for _ in range(LARGE_BYTES // MIB):
                    file.write(block)
            path.with_suffix(".tmp").rename(path)
            while not done.wait(0.05) and watched.program.snapshot().unsynced_bytes:
                pass
            path.unlink()

    feeder = threading.Thread(target=feed, daemon=True)
    feeder.start()
    try:
        yield
    finally:
        done.set()
        feeder.join(PATIENCE_SECONDS)


@contextmanager
def at_rest(watched: Watched) -> Iterator[None]:
    """Do nothing else."""
    del watched
    yield


LOADS = {"at rest": at_rest, "uploading": uploading, "busy": busy}


def measured(load_name: str, rounds: int, *, has_leases: bool) -> dict[str, list[float]]:
    """Return the latencies of so many saves of each way, in seconds; AssertionError: not so."""
    pause = threading.Event()
    found: dict[str, list[float]] = {way: [] for way in WAYS}
    with (
        tempfile.TemporaryDirectory() as base,
        closing(Watched(Path(base), has_leases=has_leases)) as watched,
        LOADS[load_name](watched),
    ):
        for number in range(1, rounds + 1):
            for way, save in WAYS.items():
                name = save(watched.root, number)
                begun = time.perf_counter()
                reason, at = watched.until_settled(name)
                assert way.split(",")[0] in reason, reason  # noqa: S101 - else it measures nothing
                found[way].append(at - begun)
                pause.wait(0.05)
    return found


def main() -> None:
    """Print one row for each load and way of saving."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    loads = sys.argv[2:] or LOADS
    row = "{:<10} {:<9} {:<18} {:>6} {:>8} {:>8} {:>8} {:>8}\n"
    heads = ("load", "leases", "whole by", "saves", "median", "p95", "most", "bar")
    sys.stdout.write(row.format(*heads))
    for load_name in loads:
        for has_leases in (True, False):
            for way, times in measured(load_name, rounds, has_leases=has_leases).items():
                times.sort()
                p95 = times[min(int(0.95 * len(times)), len(times) - 1)]
                bar = WITH_LEASE if has_leases else WITHOUT
                figures = (statistics.median(times), p95, times[-1], bar)
                shown = (f"{1000 * x:.0f} ms" for x in figures)
                leases = "yes" if has_leases else "refused"
                sys.stdout.write(row.format(load_name, leases, way, len(times), *shown))
                sys.stdout.flush()


if __name__ == "__main__":
    main()
