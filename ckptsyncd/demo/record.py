"""What the trainer wrote down about its own work, and whether a directory is what it says."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Record:
    """The trainer's log: its last step, the SHA-256 of each file by step, the finished saves."""

    last_step: int
    files: dict[int, dict[str, str]]
    saved: frozenset[int]

    def unfinished(self) -> list[int]:
        """Return the steps whose checkpoint was begun and not finished."""
        return sorted(set(self.files) - self.saved)


@dataclass(frozen=True, slots=True)
class Comparison:
    """How many of a checkpoint's files are as the trainer wrote them, and what is wrong."""

    same: int
    faults: tuple[str, ...]


def read_record(path: Path) -> Record:
    """Return what the log tells; a line that was torn by the trainer's end is left out."""
    last_step, saved = 0, set()
    files: dict[int, dict[str, str]] = {}
    for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
        if not line.endswith("\n"):
            break
        row = json.loads(line)
        last_step = max(last_step, row["step"])
        if row["event"] == "file":
            files.setdefault(row["step"], {})[row["file"]] = row["sha256"]
        elif row["event"] == "saved":
            saved.add(row["step"])
    return Record(last_step, files, frozenset(saved))


def compared(folder: Path, wanted: dict[str, str]) -> Comparison:
    """Compare a checkpoint's directory with the trainer's checksums, file by file."""
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    faults = [f"{name} is missing" for name in sorted(set(wanted) - names)]
    faults += [f"{name} was never written" for name in sorted(names - set(wanted))]
    both = sorted(names & set(wanted))
    wrong = [name for name in both if _sha256(folder / name) != wanted[name]]
    faults += [f"{name} has other content" for name in wrong]
    if not wanted:
        faults.append("the trainer wrote no such checkpoint")
    return Comparison(len(both) - len(wrong), tuple(faults))


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
