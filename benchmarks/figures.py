"""What is no plain upload: latency, rest, memory, large trees, the cap, reading back, volumes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks import sidecars
from benchmarks.daemon import Daemon, daemon
from benchmarks.data import MIB, Case, linked, make
from benchmarks.meter import cpu_of, resident_mib, run, warmed
from benchmarks.peers import program
from benchmarks.results import Figure
from benchmarks.server import BUCKET, sink

LARGE = Case("large", "1 x 4 GiB", (4096 * MIB,))
#: A capped upload is watched for so long.
CAP_SECONDS = 5.0
CAP_BYTES = 40 * MIB


def all_of(work: Path, *, quick: bool) -> Iterator[Figure]:
    """Measure all of them; ``quick`` tries only that they work."""
    yield from close_to_safe(work, quick=quick)
    yield from at_rest(work, quick=quick)
    if quick:
        return
    yield from capped(work)
    yield from trees(work)
    yield from read_back(work)
    yield from volumes(work)
    yield from sidecars.ages(work)


@contextmanager
def fresh(work: Path) -> Iterator[Path]:
    """Give a new directory, and remove it."""
    base = Path(tempfile.mkdtemp(dir=work, prefix="daemon-"))
    try:
        yield base
    finally:
        shutil.rmtree(base, ignore_errors=True)


def rest(seconds: float) -> None:
    """Let time pass: nothing of ours happens meanwhile."""
    threading.Event().wait(seconds)


def close_to_safe(work: Path, *, quick: bool) -> Iterator[Figure]:
    """From the rename of a 1 MiB checkpoint to its manifest, at once and at 20 ms a request."""
    slow = ("20", "claim, object and manifest take 20 ms each of it")
    for delay, note in (("0", ""),) if quick else (("0", ""), slow):
        with (
            sink(work, name="latency", options=("-d", delay)) as target,
            fresh(work) as base,
            daemon(target, base) as ours,
        ):
            found = tuple(latencies(ours, 2 if quick else 15))
        yield Figure(f"rename to safe, 1 MiB, {delay} ms a request", found, "ms", note)


def latencies(ours: Daemon, count: int) -> Iterator[float]:
    """Save small checkpoints one after the other; yield milliseconds."""
    for number in range(count):
        place = ours.base / f"new-{number}"
        place.mkdir()
        (place / "weights.bin").write_bytes(os.urandom(MIB))
        rest(0.5)
        yield ours.safe(place) * 1000


def at_rest(work: Path, *, quick: bool) -> Iterator[Figure]:
    """CPU and memory of a daemon that has nothing to do, with a hundred checkpoints on disk."""
    count, seconds = (3, 0.2) if quick else (100, 60.0)
    with sink(work, name="rest") as target, fresh(work) as base, daemon(target, base) as ours:
        for number in range(count):
            place = ours.base / f"new-{number}"
            place.mkdir()
            (place / "weights.bin").write_bytes(b"w" * 1000)
            ours.safe(place)
        assert ours.process is not None  # noqa: S101 - it runs
        rest(seconds / 10)
        spent = cpu_of(ours.process.pid)
        rest(seconds)
        share = (cpu_of(ours.process.pid) - spent) / seconds * 100
        memory = resident_mib(ours.process.pid)
    yield Figure(f"at rest, {count} checkpoints: CPU", (share,), "% of a core")
    yield Figure(f"at rest, {count} checkpoints: memory", (memory,), "MiB")


def capped(work: Path) -> Iterator[Figure]:
    """Show how much of a cap is used over five seconds in the middle of an upload."""
    source = make(Case("cap", "cap", (8 * 60 * MIB,)), work)
    cap = f"{CAP_BYTES // MIB}MiB/s"
    with (
        sink(work, name="cap") as target,
        fresh(work) as base,
        daemon(target, base, "--bandwidth", cap) as ours,
    ):
        linked(source, ours.base / "next").rename(ours.root / "checkpoint-9")
        while target.counts()["arrived"] < CAP_BYTES:
            rest(0.05)
        before, at = target.counts()["arrived"], time.perf_counter()
        rest(CAP_SECONDS)
        rate = (target.counts()["arrived"] - before) / (time.perf_counter() - at)
    used = rate / CAP_BYTES * 100
    yield Figure(f"bandwidth cap of {cap}: used over 5 s", (used,), "%", "bodies, as they arrive")


def trees(work: Path) -> Iterator[Figure]:
    """Start on a root with many files: until the first checkpoint is safe, and the next ones."""
    for count, title in ((1_000, "1 k"), (100_000, "100 k"), (1_000_000, "1 M")):
        with sink(work, name="tree", options=("-s", "100000000")) as target, fresh(work) as base:
            ours = Daemon(target, base, ("--no-companions",))
            many(ours.root / "cache", count)
            begun = time.perf_counter()
            try:
                ours.start()
                first = time.perf_counter() - begun
                found = tuple(latencies(ours, 5))
                assert ours.process is not None  # noqa: S101 - it runs
                memory = resident_mib(ours.process.pid)
            finally:
                ours.stop()
        yield Figure(f"{title} files in the tree: start to first checkpoint safe", (first,), "s")
        yield Figure(f"{title} files in the tree: a new checkpoint", found, "ms")
        yield Figure(f"{title} files in the tree: memory", (memory,), "MiB")


def many(place: Path, count: int) -> None:
    """Make so many empty files, a thousand in a directory."""
    for start in range(0, count, 1000):
        folder = place / f"{start // 1000:04d}"
        folder.mkdir(parents=True)
        for index in range(min(1000, count - start)):
            os.close(os.open(folder / f"{index:04d}.tmp", os.O_CREAT | os.O_WRONLY))


def read_back(work: Path) -> Iterator[Figure]:
    """Restore a large file, every byte verified, beside what the peers download without that."""
    source = make(LARGE, work)
    with sink(work, name="restore", options=("-s", str(64 * MIB))) as target, fresh(work) as base:
        with daemon(target, base) as ours:
            ours.measured(source)
        prefix = f"s3://{BUCKET}/{ours.prefix}"
        here = [sys.executable, "-m", "ckptsyncd", "restore", prefix]
        options = ["--s3-endpoint", target.endpoint, "--s3-path-style"]
        key = f"{prefix}/checkpoint-2/{LARGE.names()[0]}"

        def by_sdk(name: str) -> Callable[[Path], list[str]]:
            module = [sys.executable, "-m", "benchmarks.downloaders", name, target.endpoint]
            return lambda to: [*module, key.removeprefix(f"s3://{BUCKET}/"), str(to)]

        commands: dict[str, Callable[[Path], list[str]]] = {
            "ckptsyncd restore": lambda to: [*here, str(to), *options],
            # Its start and what it asks first.
            "ckptsyncd restore --dry-run": lambda to: [*here, str(to), *options, "--dry-run"],
            "awscli s3 cp": lambda to: [
                program("aws") or "aws", "--endpoint-url", target.endpoint,
                "s3", "cp", "--only-show-errors", key, str(to),
            ],
            "s5cmd cp": lambda to: [
                program("s5cmd") or "s5cmd", "--endpoint-url", target.endpoint, "cp", key, str(to)
            ],
            "boto3 download_file": by_sdk("boto3"),
            "boto3 download_file, tuned": by_sdk("boto3-tuned"),
            "obstore": by_sdk("obstore"),
        }  # fmt: skip
        yield from compared(f"read back {LARGE.title}", commands, base, target.environment)


def volumes(work: Path) -> Iterator[Figure]:
    """Store a large file on a mounted volume, beside cp and a sync of what it wrote."""
    source = make(LARGE, work)
    file = source / LARGE.names()[0]
    commands: dict[str, Callable[[Path], list[str]]] = {
        "cp and fsync": lambda to: ["sh", "-c", f"cp --reflink=never {file} {to} && sync {to}"],
        "rsync --fsync": lambda to: ["rsync", "--fsync", str(file), str(to)],
    }
    what = f"store {LARGE.title} on a volume"
    with fresh(work) as base:
        yield from compared(what, commands, base, {})
        costs = [stored(source, base / f"ours-{turn}") for turn in range(3)]
    yield Figure(f"{what}: ckptsyncd, wall", tuple(wall for wall, _ in costs), "s")
    yield Figure(f"{what}: ckptsyncd, CPU", tuple(cpu for _, cpu in costs), "s")


def stored(source: Path, base: Path) -> tuple[float, float]:
    """Let a daemon store links to these files on a volume; return wall and CPU seconds."""
    root, to = base / "root", base / "durable"
    root.mkdir(parents=True)
    made = base / "state"
    command = [sys.executable, "-m", "ckptsyncd", "run", str(root), f"file://{to}"]
    command += ["--state-dir", str(made), "--socket", str(base / "s"), "--log-level", "error"]
    manifests = to / ".ckptsyncd" / "manifests"
    with subprocess.Popen(command) as process:
        try:
            while not (base / "s").exists() or not to.exists():
                rest(0.05)
            rest(1.0)
            begun, spent = time.perf_counter(), cpu_of(process.pid)
            linked(source, base / "next").rename(root / "checkpoint-1")
            while not (manifests / "checkpoint-1.1.json").exists():
                rest(0.005)
            return time.perf_counter() - begun, cpu_of(process.pid) - spent
        finally:
            process.kill()
            shutil.rmtree(to, ignore_errors=True)


def compared(
    what: str,
    commands: dict[str, Callable[[Path], list[str]]],
    base: Path,
    env: dict[str, str],
    rounds: int = 3,
) -> Iterator[Figure]:
    """Run commands in turn, each with a new target; yield wall and CPU seconds of each.

    Every one is measured from the start of its process to its end.
    """
    walls: dict[str, list[float]] = {}
    cpus: dict[str, list[float]] = {}
    for turn in range(rounds):
        for name, command in commands.items():
            to = base / f"to-{turn}-{len(name)}"
            made = command(to)
            if shutil.which(made[0]) is None:
                continue
            warmed(LARGE.total_bytes)
            cost = run(made, env)
            walls.setdefault(name, []).append(cost.wall_seconds)
            cpus.setdefault(name, []).append(cost.cpu_seconds)
            shutil.rmtree(to) if to.is_dir() else to.unlink(missing_ok=True)
    for name, seconds in walls.items():
        yield Figure(f"{what}: {name}, wall", tuple(seconds), "s")
        yield Figure(f"{what}: {name}, CPU", tuple(cpus[name]), "s")
