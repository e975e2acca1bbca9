"""The preflight as its users run it: the real program, its findings by subject."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.process.program import command

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Found:
    """The exit code, and the findings by subject."""

    code: int
    rows: dict[str, Row]

    def level(self, subject: str) -> str:
        """Return how bad one finding is."""
        return str(self.rows[subject]["level"])

    def text(self, subject: str) -> str:
        """Return what was seen, and what to do."""
        row = self.rows[subject]
        return f"{row['text']} -> {row['hint']}"


def check(
    *arguments: str | Path, env: Mapping[str, str] | None = None, seconds: float = 0
) -> Found:
    """Run ``ckptsyncd check --json``."""
    texts = [str(argument) for argument in arguments]
    done = command("check", "--json", "--seconds", str(seconds), *texts, env=env)
    assert done.stdout, done.stderr
    told = json.loads(done.stdout)
    assert told["exit_code"] == done.returncode
    return Found(done.returncode, {row["subject"]: row for row in told["findings"]})


def save(root: Path, step: int = 10, size: int = 1000) -> Path:
    """Write a checkpoint."""
    place = root / f"checkpoint-{step}"
    place.mkdir(parents=True)
    (place / "weights.dat").write_bytes(b"x" * size)
    (place / "trainer_state.json").write_text(json.dumps({"global_step": step}))
    return place
