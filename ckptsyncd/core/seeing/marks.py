"""The marks of a layout: whether what its framework writes last is there, and is newest."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TypeVar

from ckptsyncd.core.seeing.layouts.base import Layout, Marker, fits


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """When one member was written: ``event`` counts what was heard, 0 where only a scan saw it.

    Where no events tell, a later time of either kind does: a rename leaves the mtime of what it
    moves, and our own links, made and removed, move the ctime of what was written long before.
    """

    rel: str
    event: int = 0
    ctime_ns: int = 0
    mtime_ns: int = 0
    is_stale: bool = False

    def is_newer_than(self, other: Written) -> bool:
        """Return whether it was written after the other one."""
        if self.event and other.event:
            return self.event > other.event
        if not (self.ctime_ns and other.ctime_ns):
            return False  # one was not looked at yet: the look will tell
        return self.ctime_ns > other.ctime_ns or self.mtime_ns > other.mtime_ns


AnyWritten = TypeVar("AnyWritten", bound=Written)


def is_asked_for(marker: Marker, members: Iterable[Written]) -> bool:
    """Return whether a marker is to be there at all."""
    return not marker.when or any(fits(marker.when, m.rel) for m in members)


def marks_for(marker: Marker, members: Iterable[AnyWritten]) -> list[AnyWritten]:
    """Return the members of this save that are this marker."""
    return [m for m in members if not m.is_stale and fits(marker.path, m.rel)]


def marks_here(layout: Layout, members: Iterable[Written]) -> tuple[Marker, ...]:
    """Return the layout's marks whose file is among these, of whatever save."""
    rels = [m.rel for m in members]
    return tuple(m for m in layout.markers if any(fits(m.path, rel) for rel in rels))


def is_done(pattern: str, members: Iterable[Written]) -> bool:
    """Return whether the file by which a trainer's author says "whole" is there, and newest.

    ``pattern`` is as in a shell; nothing matches an empty one, and nobody is looked at for it.
    """
    if not pattern:
        return False
    members = tuple(members)
    marks = [m for m in members if not m.is_stale and fnmatchcase(m.rel, pattern)]
    others = [m for m in members if m not in marks]
    late = (m for m in others if all(m.is_newer_than(mark) for mark in marks))
    return bool(marks and others) and next(late, None) is None


def plain(marker: Marker) -> str:
    """Return a marker's pattern as people write it."""
    return marker.path.replace("\\", "").replace(".+", "*")


def missing_mark(
    layout: Layout, members: Iterable[Written], markers: tuple[Marker, ...] | None = None
) -> str:
    """Return why the layout's own marks (or only these of them) do not hold yet, or nothing.

    Where there are no marks nobody is looked at for them.
    """
    wanted = layout.markers if markers is None else markers
    members = tuple(members if wanted else ())
    for marker in wanted:
        if not is_asked_for(marker, members):
            continue
        marks = marks_for(marker, members)
        if not marks and any(fits(marker.path, m.rel) for m in members):
            return f"{plain(marker)} is older than this save, and {layout.name} writes it last"
        if not marks:
            return f"no {plain(marker)} yet, which {layout.name} writes last"
        late = _later_than(marks, marker, members)
        if late:
            return f"{late} is newer than {marks[0].rel}, which {layout.name} writes last"
    return ""


def _later_than(marks: list[Written], marker: Marker, members: Iterable[Written]) -> str:
    """Return a member that is newer than every mark, or nothing."""
    for member in members:
        if member in marks or not fits(marker.over, member.rel) or fits(marker.ranks, member.rel):
            continue
        if all(member.is_newer_than(mark) for mark in marks):
            return member.rel
    return ""
