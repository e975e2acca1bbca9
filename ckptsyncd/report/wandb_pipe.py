"""Weights & Biases, in a process of its own: readings go there as lines of JSON.

Its library starts processes and threads, takes memory, and waits for its server when a program
ends. None of that may be the daemon's, which has a deadline.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ckptsyncd.report.readings import Reading

#: A process that ended is started anew at most this often (guessed: a start costs a second).
AGAIN_SECONDS = 60.0
#: What the trainer's own run is called by, which ours must not join.
_THEIRS = ("WANDB_RUN_ID", "WANDB_RESUME", "WANDB_NAME")


class WandbPipe:
    """Hands readings to ``wandb_child``. Where that cannot be, OSError says why.

    Everything but project, run and directory is as W&B's own variables and files say.
    """

    def __init__(self, project: str, run: str, directory: Path, environ: Mapping[str, str]) -> None:
        """Start nothing yet."""
        self._environ = {name: text for name, text in environ.items() if name not in _THEIRS}
        self._head = {"project": project, "id": run, "dir": str(directory)}
        self._directory = directory
        self._child: subprocess.Popen[bytes] | None = None
        self._again_at = float("-inf")

    @property
    def log(self) -> Path:
        """Where the process' own words go."""
        return self._directory / "ckptsyncd-wandb.log"

    def write(self, reading: Reading) -> None:
        """Hand one reading over; it may wait for a process that does not read."""
        child = self._child
        if child is not None and child.poll() is not None:
            self.close(0.0)
            msg = f"its process ended with code {child.returncode}, see {self.log}"
            raise OSError(msg)
        if child is None:
            if reading.at < self._again_at:
                msg = f"its process ended, see {self.log}"
                raise OSError(msg)
            self._again_at = reading.at + AGAIN_SECONDS
            child = self._child = self._started()
            _tell(child, self._head)
        row = {"series": reading.series, "step": reading.step, "values": reading.values()}
        _tell(child, row)

    def close(self, seconds: float) -> bool:
        """Let the process end by itself, and wait so long for it; return whether it did."""
        child = self._child
        if child is None:
            return True
        assert child.stdin is not None  # noqa: S101 - it was asked for
        child.stdin.close()
        try:
            child.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        self._child = None
        return True

    def _started(self) -> subprocess.Popen[bytes]:
        self._directory.mkdir(parents=True, exist_ok=True)
        with self.log.open("wb") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "ckptsyncd.report.wandb_child"],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                bufsize=0,
                env=self._environ,
                start_new_session=True,  # Ctrl-C is for us: it ends when its input does
            )


def _tell(child: subprocess.Popen[bytes], row: dict[str, Any]) -> None:
    assert child.stdin is not None  # noqa: S101 - it was asked for
    child.stdin.write(json.dumps(row).encode() + b"\n")
    child.stdin.flush()
