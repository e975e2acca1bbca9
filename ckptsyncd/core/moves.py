"""What changed in one turn of the mind, for those who only watch: logs, metrics, the recorder.

A tap is a function of these and of the snapshot, and changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from ckptsyncd.core.lifecycle import DaemonState, State


@dataclass(frozen=True, slots=True)
class Moved:
    """An edition went from one state to another (``old`` is ``None`` where it is new)."""

    checkpoint: str
    series: str
    edition: int
    old: State | None
    new: State
    reason: str
    bytes: int
    step: int | None


@dataclass(frozen=True, slots=True)
class DaemonMoved:
    """The daemon went from one state to another."""

    old: DaemonState
    new: DaemonState
    reason: str


@dataclass(frozen=True, slots=True)
class Complained:
    """Something failed; ``subject`` names what (failures of one subject are counted together)."""

    text: str
    hint: str
    subject: str


@dataclass(frozen=True, slots=True)
class Recovered:
    """What failed works again, after ``count`` failures."""

    subject: str
    count: int


@dataclass(frozen=True, slots=True)
class Said:
    """Anything else worth a line: an event's name and its fields."""

    event: str
    fields: tuple[tuple[str, str | int | float | bool | None], ...] = ()


Move = Moved | DaemonMoved | Complained | Recovered | Said
