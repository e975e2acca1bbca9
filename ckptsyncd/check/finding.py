"""One line of the preflight: what was seen, how bad it is, what to do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from ckptsyncd.errors import Again, CkptsyncdError, Gone, Lost, Refused, StoreError

Level = Literal["ok", "warn", "fail"]
_SEVERITY: dict[Level, int] = {"ok": 0, "warn": 1, "fail": 2}

_WELL = "look whether the store is well and reachable from here, then check again"
#: What to do where an error has only its class's words: those are a daemon's, which tries again by
#: itself, or send the reader to this very check.
_BEFORE_A_START: dict[type[CkptsyncdError], str] = {
    StoreError: _WELL,
    Again: _WELL,
    Gone: _WELL,
    Lost: _WELL,
    Refused: "correct the credentials, or let them read, write and list below the prefix",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found out about one subject.

    ``fail`` keeps checkpoints from becoming safe, ``warn`` makes it slower, later or dearer.
    ``hint`` says what to do. ``exit_code`` is not zero only where it fails.
    """

    subject: str
    level: Level
    text: str
    hint: str = ""
    exit_code: int = 0


def ok(subject: str, text: str) -> Finding:
    """Return a finding that is as it should be."""
    return Finding(subject, "ok", text)


def warn(subject: str, text: str, hint: str) -> Finding:
    """Return a finding with which it works, but not as well as it could."""
    return Finding(subject, "warn", text, hint)


def fail(subject: str, text: str, hint: str, exit_code: int) -> Finding:
    """Return a finding with which it does not work."""
    return Finding(subject, "fail", text, hint, exit_code)


def failed(subject: str, error: CkptsyncdError) -> Finding:
    """Return the finding that an error of ours stands for, with its own hint and exit code."""
    return Finding(subject, "fail", str(error), advice(error), error.exit_code)


def advice(error: CkptsyncdError) -> str:
    """Return what to do about an error before anything runs."""
    if isinstance(error, StoreError) and error.throttled:
        return "the store asks for fewer requests at the moment: check again later"
    is_own = error.hint != type(error).hint
    return error.hint if is_own else _BEFORE_A_START.get(type(error), error.hint)


def exit_code(findings: Iterable[Finding]) -> int:
    """Return the worst finding's own code: of those that fail the highest, else 0."""
    return max((finding.exit_code for finding in findings), default=0)


def worst(findings: Iterable[Finding]) -> Level:
    """Return the worst level."""
    levels = [finding.level for finding in findings]
    return max(levels, key=_SEVERITY.__getitem__, default="ok")
