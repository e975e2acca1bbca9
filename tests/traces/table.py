"""The table of ``expected.txt``: what each trace is expected to yield."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Save:
    """One save that is expected to settle."""

    at: float
    evidence: str
    files: int
    step: int | None
    name: str

    @property
    def what(self) -> tuple[str, int | None, int]:
        """Return what can be read off a manifest, too."""
        return self.name, self.step, self.files


@dataclass
class Expected:
    """What one trace is expected to yield."""

    whole: list[Save] = field(default_factory=list)
    pointer: set[str] = field(default_factory=set)
    torn: set[str] = field(default_factory=set)
    endless: set[str] = field(default_factory=set)
    missed: dict[str, str] = field(default_factory=dict)


def read_table() -> dict[str, Expected]:
    """Return the table of ``expected.txt``."""
    table: dict[str, Expected] = {}
    row = Expected()
    for line in (Path(__file__).parent / "expected.txt").read_text().splitlines():
        word, _, rest = line.strip().partition(" ")
        if not word or word.startswith("#"):
            continue
        if not line.startswith(" "):
            row = table[word] = Expected()
        elif word == "whole":
            at, evidence, files, step, name = rest.split()
            number = step.removeprefix("step=")
            count = int(files.removeprefix("files="))
            row.whole.append(
                Save(float(at), evidence, count, None if number == "-" else int(number), name)
            )
        elif word == "missed":
            name, why = rest.strip().split(": ", maxsplit=1)
            row.missed[name] = why
        else:
            getattr(row, word).add(rest.strip())
    return table


TABLE = read_table()
