"""ckptsyncd itself, measured whole: from the rename that finishes a checkpoint to its manifest."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.data import linked
from benchmarks.meter import Cost, PeerFailedError, cpu_of, resident_mib
from benchmarks.server import Target

PATIENCE_SECONDS = 300.0
#: The store is asked so often at first whether the manifest is there; later after a hundredth of
#: what has passed, so that asking costs a long upload nothing.
LOOK_SECONDS = 0.002


@dataclass
class Daemon:
    """A running daemon with a watch root of its own."""

    target: Target
    base: Path
    options: tuple[str, ...] = ()
    under: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None
    count: int = 0

    @property
    def root(self) -> Path:
        """What it watches."""
        return self.base / "root"

    @property
    def prefix(self) -> str:
        """Where it puts things."""
        return f"run-{self.base.name}"

    def start(self) -> None:
        """Start it and wait until it has tried the store out."""
        self.root.mkdir(parents=True, exist_ok=True)
        cloud = self.target.cloud
        command = [
            *self.under, sys.executable, "-m", "ckptsyncd", "run", str(self.root),
            f"{cloud.url}/{self.prefix}", cloud.flags[0], self.target.endpoint,
            *cloud.flags[1:], "--state-dir", str(self.base / "state"),
            "--socket", str(self.base / "s"), "--log-format", "json",
            "--quiet-seconds", "0.5s",  # for the first one, which lies there before the watch does
            *self.options,
        ]  # fmt: skip
        env = {**os.environ, **self.target.environment, **self.env}
        with (self.base / "log").open("wb") as log:
            self.process = subprocess.Popen(command, env=env, stdout=log, stderr=log)
        first = self.base / "first"
        first.mkdir()
        (first / "weights.bin").write_bytes(b"first")
        self.safe(first)

    def safe(self, checkpoint: Path) -> float:
        """Move something into the root; return the seconds until its manifest is there."""
        assert self.process is not None  # noqa: S101 - started before
        self.count += 1
        name = f"checkpoint-{self.count}" + checkpoint.suffix
        key = self.target.cloud.path(f"{self.prefix}/.ckptsyncd/manifests/{name}.1.json")
        connection, pause = self.target.connect(), threading.Event()
        self.is_there(connection, key)
        begun = time.perf_counter()
        checkpoint.rename(self.root / name)
        while True:
            passed = time.perf_counter() - begun
            if self.is_there(connection, key):
                connection.close()
                return time.perf_counter() - begun
            if passed > PATIENCE_SECONDS or self.process.poll() is not None:
                raise PeerFailedError((self.base / "log").read_text()[-1000:])
            pause.wait(max(LOOK_SECONDS, passed / 100))

    def is_there(self, connection: http.client.HTTPConnection, key: str) -> bool:
        """Ask the store for the manifest."""
        connection.request("HEAD", key, headers={"x-bench-at-once": "1"})
        answer = connection.getresponse()
        answer.read()
        return answer.status == http.client.OK

    def measured(self, source: Path) -> Cost:
        """Let it upload links to these files, as a checkpoint of their own."""
        assert self.process is not None  # noqa: S101 - started before
        checkpoint = linked(source, self.base / f"next-{self.count}")
        server, own = self.target.cpu_seconds(), cpu_of(self.process.pid)
        wall = self.safe(checkpoint)
        spent = cpu_of(self.process.pid) - own
        peak = resident_mib(self.process.pid, "VmHWM")
        return Cost(wall, spent, peak, self.target.cpu_seconds() - server)

    def stop(self) -> None:
        """End it as a machine that vanishes would."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()


@contextmanager
def daemon(
    target: Target, base: Path, *options: str, under: tuple[str, ...] = ()
) -> Iterator[Daemon]:
    """Run a daemon on an empty root."""
    made = Daemon(target, base, options, under)
    try:
        made.start()
        yield made
    finally:
        made.stop()
