"""The marks of a layout: nobody is looked at where there are none."""

from __future__ import annotations

from collections.abc import Iterator

from ckptsyncd.core.seeing.layouts.base import Layout
from ckptsyncd.core.seeing.marks import Written, is_done, missing_mark
from ckptsyncd.core.seeing.units import Unit
from ckptsyncd.core.seeing.viewing import marks_of

PLAIN = Layout("plain", "nobody")


def refuse(name: str) -> Written:
    """Complain that a member is looked at."""
    raise AssertionError(name)


class Untouchable(dict[str, object]):
    """Members that nobody is to look at."""

    def values(self) -> Iterator[Written]:  # type: ignore[override]
        """Complain as soon as the first one is asked for."""
        return map(refuse, ("a member was looked at",))


def test_where_there_are_no_marks_nobody_is_looked_at() -> None:
    """A directory of a million logs costs nothing to a question that has no object."""
    unit = Unit("logs", "tree", PLAIN)
    unit.members = Untouchable()  # type: ignore[assignment]
    assert missing_mark(PLAIN, marks_of(unit)) == ""
    assert not is_done("", marks_of(unit))


def test_a_done_file_is_the_newest() -> None:
    """It says "whole" of what was written before it, and of nothing else."""
    saved, done = Written(rel="weights", event=1), Written(rel="DONE", event=2)
    assert is_done("DONE", [saved, done])
    assert not is_done("DONE", [done])
    assert not is_done("DONE", [saved, done, Written(rel="late", event=3)])
