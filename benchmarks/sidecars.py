"""What people run today beside a training, and how old its recovery point gets.

A checkpoint is saved on a schedule as trainers save: written under its own name over a while. All
sidecars watch the same saves at the same time, each with a prefix of its own. Every quarter of a
second it is asked which is the newest checkpoint whose files are all in the store; the age of the
recovery point is the time since that one was begun.
"""

from __future__ import annotations

import http.client
import os
import statistics
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.daemon import Daemon
from benchmarks.data import MIB
from benchmarks.meter import cpu_of
from benchmarks.peers import program
from benchmarks.results import Figure
from benchmarks.server import BUCKET, Target, sink

SAVE_SECONDS = 20.0
TOTAL_SECONDS = 240.0
#: The second half counts: then every loop has gone round at least once.
SETTLED_SECONDS = 120.0
FILES = 4
FILE_BYTES = 32 * MIB
HOUR_SECONDS = 3600.0


@dataclass
class Sidecar:
    """One of them. ``key`` names the object that shows last that a checkpoint is there."""

    name: str
    prefix: str
    pid: int
    is_ours: bool = False
    ages: list[float] = field(default_factory=list)
    newest: int = 0

    def keys(self, number: int) -> list[str]:
        """Return the objects that must all be there."""
        if self.is_ours:
            return [f"/{BUCKET}/{self.prefix}/.ckptsyncd/manifests/checkpoint-{number}.1.json"]
        folder = f"/{BUCKET}/{self.prefix}/checkpoint-{number}"
        return [f"{folder}/part-{index}.bin" for index in range(FILES)]


def save(root: Path, number: int) -> None:
    """Write one checkpoint as trainers do, the file that ends it last."""
    place = root / f"checkpoint-{number}"
    place.mkdir()
    for index in range(FILES):
        (place / f"part-{index}.bin").write_bytes(os.urandom(FILE_BYTES))
    (place / "trainer_state.json").write_text("{}")


def loops(target: Target, root: Path) -> dict[str, str]:
    """Return the shell loops that watch a root, by name."""
    aws = f"{program('aws')} --endpoint-url {target.endpoint} s3"
    sync = f"{aws} sync --only-show-errors {root} s3://{BUCKET}/sync/ --exclude '.ckptsyncd/*'"
    old = (
        f"find {root} -mindepth 2 -name '*.*' -mmin +1 -newer {root}/../mark -not -path '*/.ckpt*'"
    )
    copy = f"{aws} cp --only-show-errors $f s3://{BUCKET}/find/${{f#{root}/}}"
    return {
        "aws s3 sync every 60 s": f"while :; do {sync}; sleep 60; done",
        "find -mmin +1 every 60 s": (
            f"touch {root}/../mark; while :; do touch {root}/../now; "
            f"for f in $({old}); do [ -e {root}/../done/$f ] || {{ {copy}; "
            f"mkdir -p {root}/../done/$(dirname $f); touch {root}/../done/$f; }}; done; "
            "sleep 60; done"
        ),
    }


def ages(work: Path) -> Iterator[Figure]:
    """Run them all, and yield the age of each recovery point and the CPU of each in an hour."""
    if program("aws") is None:
        return
    base = work / f"sidecars-{os.getpid()}"
    base.mkdir()
    with sink(work, name="sidecars") as target:
        ours = Daemon(target, base)
        shells: list[subprocess.Popen[bytes]] = []
        try:
            ours.start()
            assert ours.process is not None  # noqa: S101 - it runs
            all_of = [Sidecar("ckptsyncd", ours.prefix, ours.process.pid, is_ours=True)]
            env = {**os.environ, **target.environment}
            for name, script in loops(target, ours.root).items():
                shell = subprocess.Popen(["sh", "-c", script], env=env, start_new_session=True)
                shells.append(shell)
                all_of.append(Sidecar(name, name.split()[1 if "aws" in name else 0], shell.pid))
            all_of[1].prefix, all_of[2].prefix = "sync", "find"
            yield from watched(target, ours.root, all_of)
        finally:
            ours.stop()
            for shell in shells:
                os.killpg(shell.pid, 9)
                shell.wait()


def watched(target: Target, root: Path, all_of: list[Sidecar]) -> Iterator[Figure]:
    """Save on schedule and look; yield what was seen in the second half."""
    begun: dict[int, float] = {}
    spent = {one.name: cpu_with_children(one.pid) for one in all_of}
    pause, start, number = threading.Event(), time.monotonic(), 100
    connection = target.connect()
    while (now := time.monotonic() - start) < TOTAL_SECONDS:
        if now >= (number - 100) * SAVE_SECONDS:
            number += 1
            begun[number] = now
            threading.Thread(target=save, args=(root, number), daemon=True).start()
        for one in all_of:
            look(connection, one, number)
            if now >= SETTLED_SECONDS:
                one.ages.append(now - begun.get(one.newest, 0.0))
        pause.wait(0.25)
    connection.close()
    note = f"{FILES} x {FILE_BYTES // MIB} MiB saved every {SAVE_SECONDS:.0f} s, all at once"
    for one in all_of:
        cpu = (cpu_with_children(one.pid) - spent[one.name]) * HOUR_SECONDS / TOTAL_SECONDS
        worst = max(one.ages)
        figure = (statistics.median(one.ages), min(one.ages), worst)
        yield Figure(f"age of the recovery point: {one.name}", figure, "s", note)
        yield Figure(f"CPU in an hour: {one.name}", (cpu,), "s")


def look(connection: http.client.HTTPConnection, one: Sidecar, number: int) -> None:
    """Note the newest checkpoint of which everything is there."""
    for candidate in range(number, max(one.newest, 100), -1):
        if all(is_there(connection, key) for key in one.keys(candidate)):
            one.newest = candidate
            return


def is_there(connection: http.client.HTTPConnection, key: str) -> bool:
    """Ask the store for one object."""
    connection.request("HEAD", key)
    answer = connection.getresponse()
    answer.read()
    return answer.status == http.client.OK


def cpu_with_children(pid: int) -> float:
    """Return the CPU seconds of a process and of the children it has waited for."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    tick = os.sysconf("SC_CLK_TCK")
    return cpu_of(pid) + (int(fields[13]) + int(fields[14])) / tick
