"""A machine that will vanish: the real daemon and a trainer as processes, and their directory."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from ckptsyncd.client import Client, Json
from ckptsyncd.errors import CkptsyncdError, DaemonUnreachable

#: Slower than the trainer saves, so that there is something to see and something at risk.
BANDWIDTH = "2MiB/s"
PIECE = "256KiB"
#: An error is two lines and the end of the last one.
_LAST_LINES = 3


@dataclass(frozen=True, slots=True)
class Places:
    """Where everything of the story lies: what vanishes is below ``machine``, the rest stays."""

    base: Path

    @property
    def machine(self) -> Path:
        """Everything that is lost with the first machine."""
        return self.base / "machine"

    @property
    def root(self) -> Path:
        """The watch root on the first machine."""
        return self.machine / "checkpoints"

    @property
    def notice(self) -> Path:
        """The notice file."""
        return self.machine / "notice"

    @property
    def socket(self) -> Path:
        """The daemon's socket; short, for the kernel takes 107 bytes."""
        return self.machine / "socket"

    @property
    def second_root(self) -> Path:
        """Where the second machine restores to."""
        return self.base / "machine-2" / "checkpoints"

    @property
    def url(self) -> str:
        """The store, which is on neither machine."""
        return f"file://{self.base}/durable"

    @property
    def trainer_log(self) -> Path:
        """What the trainer writes down, kept where neither the machine nor the store is."""
        return self.base / "trainer.log"

    @property
    def daemon_log(self) -> Path:
        """What the daemon says."""
        return self.base / "daemon.log"


@dataclass(slots=True)
class Machine:
    """The two processes of the first machine; ``vanish`` ends both whatever they are doing."""

    places: Places
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def run_command(self) -> tuple[str, ...]:
        """Return the daemon's command as a user would type it."""
        places = self.places
        return (
            "ckptsyncd", "run", str(places.root), places.url,
            "--bandwidth", BANDWIDTH, "--piece-bytes", PIECE,
            "--notice-file", str(places.notice),
            "--state-dir", str(places.machine / "state"), "--socket", str(places.socket),
        )  # fmt: skip

    def start_daemon(self) -> None:
        """Start the daemon; it may take a moment until it answers."""
        self.places.machine.mkdir(parents=True)
        self._start(*module(self.run_command()), "--log-format", "human")

    def start_trainer(self) -> None:
        """Start the trainer."""
        trainer = ("-m", "ckptsyncd.demo.trainer")
        self._start(sys.executable, *trainer, str(self.places.root), str(self.places.trainer_log))

    def answers(self) -> Json | None:
        """Return the daemon's status, ``None`` while it is not up; raises where it has ended."""
        try:
            return Client(self.places.socket).status()
        except DaemonUnreachable:
            self._check()
            return None

    def vanish(self) -> None:
        """Kill both processes, as a machine without power would, and remove all that it held."""
        self.close()
        shutil.rmtree(self.places.machine)

    def close(self) -> None:
        """Kill what still runs, without a chance to tidy up."""
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.wait()
        self.processes.clear()

    def _start(self, *arguments: str) -> None:
        """Start a process in a session of its own: a Ctrl-C is ours to handle."""
        with self.places.daemon_log.open("ab") as log:
            self.processes.append(
                subprocess.Popen(
                    arguments,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=environment(),
                    start_new_session=True,
                )
            )

    def _check(self) -> None:
        for process in self.processes:
            code = process.poll()
            if code is not None:
                told = self.places.daemon_log.read_text(errors="replace").split("\n")
                msg = f"a process ended with exit code {code}: {' '.join(told[-_LAST_LINES:])}"
                raise CkptsyncdError(
                    msg, hint="TMPDIR may name another directory, with a short name"
                )


def module(command: tuple[str, ...]) -> tuple[str, ...]:
    """Return a command of ``ckptsyncd`` for this very interpreter, wherever that is installed."""
    return (sys.executable, "-m", *command)


def environment() -> dict[str, str]:
    """Return this process's environment without settings of a user's own daemon."""
    kept = {name: value for name, value in os.environ.items() if not _is_setting(name)}
    return {**kept, "CKPTSYNCD_CONFIG": os.devnull}


def _is_setting(name: str) -> bool:
    return name.startswith("CKPTSYNCD_")
