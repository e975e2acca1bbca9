"""The real program as its users run it: a process with a watch root, a destination, a state."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Status = dict[str, Any]

#: Generous: the machine that runs the tests may be slow and busy.
PATIENCE_SECONDS = 60.0


def until(
    holds: Callable[[], object],
    what: str | Callable[[], str],
    seconds: float = PATIENCE_SECONDS,
) -> None:
    """Ask until something holds; AssertionError says what did not in time."""
    pause = threading.Event()
    deadline = time.monotonic() + seconds
    while not holds():
        late = time.monotonic() >= deadline
        assert not late, f"not within {seconds} s: {what if isinstance(what, str) else what()}"
        pause.wait(0.02)


def command(
    *arguments: str,
    env: Mapping[str, str] | None = None,
    seconds: float = PATIENCE_SECONDS,
    under: tuple[str, ...] = (),
) -> subprocess.CompletedProcess[str]:
    """Run one of the program's commands to its end. ``under``: a command that runs it."""
    return subprocess.run(
        [*under, sys.executable, "-m", "ckptsyncd", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds,
        env={**os.environ, **(env or {})},
    )


@dataclass
class Program:
    """A daemon for one watch root; ``start`` may be called again after it ended.

    ``under``: a command that runs the program.
    """

    root: Path
    url: str
    base: Path
    options: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    under: tuple[str, ...] = ()
    process: subprocess.Popen[bytes] | None = None
    starts: int = 0

    @property
    def socket_path(self) -> Path:
        """Where it answers."""
        return self.base / "s"

    @property
    def log(self) -> str:
        """Everything that it wrote since the first start."""
        return "".join(path.read_text() for path in sorted(self.base.glob("log-*")))

    def start(self, *trainer: str) -> Program:
        """Start it and wait until it answers."""
        self.begin(*trainer)
        until(lambda: self.status() or self.ended(), "the daemon answers")
        return self

    def begin(self, *trainer: str) -> None:
        """Start it and do not wait."""
        self.base.mkdir(parents=True, exist_ok=True)
        self.starts += 1
        with (self.base / f"log-{self.starts:03d}").open("wb") as log:
            self.process = subprocess.Popen(
                self._arguments(trainer), stdout=log, stderr=log, env={**os.environ, **self.env}
            )

    def _arguments(self, trainer: tuple[str, ...]) -> list[str]:
        places = ["--state-dir", str(self.base / "state"), "--socket", str(self.socket_path)]
        run = [*self.under, sys.executable, "-m", "ckptsyncd", "run", str(self.root), self.url]
        return [*run, *places, *self.options, *(("--", *trainer) if trainer else ())]

    def ended(self) -> bool:
        """Return whether the process has ended."""
        return self.process is None or self.process.poll() is not None

    def status(self) -> Status | None:
        """Return what the socket tells, or nothing where nobody answers."""
        try:
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(5.0)
                client.connect(str(self.socket_path))
                client.sendall(b'{"request":"status"}\n')
                answer: Status | None = json.loads(client.makefile("rb").readline()).get("answer")
        except (OSError, ValueError):
            return None
        return answer

    def states(self) -> dict[tuple[str, int], str]:
        """Return the state of each edition."""
        status = self.status() or {"checkpoints": []}
        return {(row["checkpoint"], row["edition"]): row["state"] for row in status["checkpoints"]}

    def until_safe(self, checkpoint: str, edition: int = 1) -> None:
        """Wait until an edition is safe."""
        until(
            lambda: self.states().get((checkpoint, edition)) == "safe",
            lambda: f"{checkpoint}@{edition} is safe; it is {self.states()}\n{self.log[-4000:]}",
        )

    def kill(self) -> None:
        """End it as a machine that vanishes would."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def signal(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Send it a signal."""
        assert self.process is not None
        self.process.send_signal(number)

    def stop(self, seconds: float = PATIENCE_SECONDS) -> int:
        """Ask it to stop and return its exit code."""
        self.signal()
        return self.wait(seconds)

    def wait(self, seconds: float = PATIENCE_SECONDS) -> int:
        """Wait for its end and return its exit code."""
        assert self.process is not None
        return self.process.wait(seconds)
