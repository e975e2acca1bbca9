"""What every training here has in common: a deterministic start, a record of losses, a gate.

Before each save the trainer says so and waits for a line on its standard input, so a test decides
when a save happens, and nothing else. ``--free`` trains through without waiting.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Run:
    """One start of a trainer. ``resume``: what to go on from, empty for a fresh start."""

    root: Path
    losses: Path
    last_step: int
    save_every: int
    resume: str
    is_free: bool

    @classmethod
    def started(cls) -> Run:
        """Return what the command line asks for."""
        parser = argparse.ArgumentParser()
        parser.add_argument("root", type=Path)
        parser.add_argument("losses", type=Path)
        parser.add_argument("--last-step", type=int, default=24)
        parser.add_argument("--save-every", type=int, default=2)
        parser.add_argument("--resume", default="")
        parser.add_argument("--free", action="store_true")
        said = parser.parse_args()
        return cls(said.root, said.losses, said.last_step, said.save_every, said.resume, said.free)

    def note(self, step: int, loss: float) -> None:
        """Keep the loss of a step, every bit of it."""
        with self.losses.open("a") as file:
            file.write(f"{step} {float(loss).hex()}\n")

    def saves_at(self, step: int) -> bool:
        """Return whether a checkpoint follows this step."""
        return step % self.save_every == 0

    def wait(self, step: int) -> None:
        """Say that a save comes next, and wait until it may."""
        if not self.is_free:
            sys.stdout.write(f"save {step}\n")
            sys.stdout.flush()
            if not sys.stdin.readline():
                sys.exit("nobody is there any more")
