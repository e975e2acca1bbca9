"""A trainer as a test sees it: a process that asks before each save, and can be killed in one."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.process.program import until
from tests.servers import free_ports

#: Imports of large frameworks from a cold disk take their time.
PATIENCE_SECONDS = 240.0

ENVIRONMENT = {
    "CUDA_VISIBLE_DEVICES": "",
    "HF_HUB_OFFLINE": "1",
    "JAX_PLATFORMS": "cpu",
    "OMP_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
}


@dataclass
class Trainer:
    """One start of ``tests.frameworks.trainings.NAME``; ``room`` is for its log and temporaries."""

    name: str
    root: Path
    room: Path
    options: tuple[str, ...] = ()
    temporary: Path | None = None
    process: subprocess.Popen[str] | None = None
    #: Steps whose save it asked for, and the one that it waits for now.
    asked: list[int] = field(default_factory=list)
    waiting: int | None = None
    _lines: queue.SimpleQueue[str] = field(default_factory=queue.SimpleQueue)
    _reader: threading.Thread | None = None

    def start(self) -> Trainer:
        """Begin to train."""
        self.room.mkdir(parents=True)
        self.root.mkdir(parents=True, exist_ok=True)
        temporary = self.temporary or self.room / "tmp"
        temporary.mkdir(exist_ok=True)
        module = f"tests.frameworks.trainings.{self.name}"
        place = {"TMPDIR": str(temporary), "TRAINING_PORT": str(free_ports(1)[0])}
        with (self.room / "log").open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", module, str(self.root), str(self.losses_at), *self.options],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, **ENVIRONMENT, **place},
                start_new_session=True,
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        return self

    def _read(self) -> None:
        assert self.process is not None
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("save "):
                self._lines.put(line)
        self._lines.put("")

    @property
    def losses_at(self) -> Path:
        """Where it notes its losses."""
        return self.room / "losses"

    @property
    def log(self) -> str:
        """The end of what it complained about."""
        return (self.room / "log").read_text()[-3000:]

    def losses(self) -> dict[int, str]:
        """Return the loss of each step, every bit of it."""
        rows = [line.split() for line in self.losses_at.read_text().splitlines()]
        return {int(step): loss for step, loss in rows}

    # Saves --------------------------------------------------------------------------------------

    def until_it_asks(self) -> int:
        """Wait until it asks to save, and return the step."""
        if self.waiting is None:
            line = self._lines.get(timeout=PATIENCE_SECONDS)
            assert line, f"{self.name} ended\n{self.log}"
            self.waiting = int(line.split()[1])
            self.asked.append(self.waiting)
        return self.waiting

    def let_it_save(self) -> None:
        """Let it save and go on."""
        self.until_it_asks()
        self.waiting = None
        assert self.process is not None
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def kill_in_a_save(self, half: Callable[[], str]) -> str:
        """Kill it while ``half`` names what is half saved, and return that name.

        Saves in which it was not caught are let through.
        """
        while True:
            self.let_it_save()
            while self._lines.empty():
                if half():
                    self._signal(signal.SIGSTOP)
                    until(self._has_stopped, "it stops")
                    name = half()
                    if name:
                        self.end()
                        return name
                    self._signal(signal.SIGCONT)
            self.until_it_asks()

    # The process --------------------------------------------------------------------------------

    def until_it_ends(self) -> None:
        """Wait until it has trained to the end."""
        assert self.process is not None
        assert self.process.wait(PATIENCE_SECONDS) == 0, self.log

    def end(self) -> None:
        """Kill it and every process of it, if it still runs, and let go of it."""
        if self.process is None or self._reader is None:
            return
        if self.process.poll() is None:
            self._signal(signal.SIGKILL)
        with self.process:  # waits, and closes the pipes
            self._reader.join()

    def _signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        os.killpg(self.process.pid, number)

    def _has_stopped(self) -> bool:
        """Return whether every process of its session stands still."""
        assert self.process is not None
        states = [_session_and_state(path) for path in Path("/proc").glob("[0-9]*")]
        return all(state in "TtZX" for session, state in states if session == self.process.pid)


def _session_and_state(path: Path) -> tuple[int, str]:
    try:
        words = (path / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0, "X"  # it ended meanwhile
    return int(words[3]), words[0]
