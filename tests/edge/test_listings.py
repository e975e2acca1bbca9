"""A listing is what was listed, in little memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator

import pytest

from ckptsyncd.core.facts import FileFact
from ckptsyncd.edge.listings import Facts

FAR = 2**64 - 1


def made(count: int) -> Iterator[FileFact]:
    """Yield facts as a walk does, none of them kept."""
    for number in range(count):
        yield FileFact(f"logs/step-{number:07d}.txt", "file", 1, number, 9, 10**18 + number)


def test_every_fact_comes_back() -> None:
    """Kinds, links, modes, names that are no UTF-8, numbers of any size, times before 1970."""
    facts = (
        FileFact("a", "directory", FAR, FAR, 0, 0, None, 0o755, 5),
        FileFact("a/\udcff", "file", 1, 2, FAR, -5, None, 0o4755, -(2**70)),
        FileFact("b", "symlink", 1, 3, 1, 2**70, "a/\udcff", 0o777, 1),
    )
    found = Facts()
    found.take(facts)
    assert found == facts
    assert [(fact.mode, fact.ctime_ns) for fact in found] == [(f.mode, f.ctime_ns) for f in facts]
    assert facts[1] in found
    assert found != facts[:2]
    assert found != (*facts[:2], facts[0])


def test_what_came_before_an_error_is_kept() -> None:
    """A listing that breaks off tells what it saw."""

    def breaking() -> Iterator[FileFact]:
        yield from made(3)
        raise OSError(5, "broken off")

    found = Facts()
    with pytest.raises(OSError, match="broken off"):
        found.take(breaking())
    assert found == tuple(made(3))


def test_many_take_little() -> None:
    """Fifty thousand facts take less than 40 bytes each, also while they are read."""
    tracemalloc.start()
    try:
        found = Facts()
        found.take(made(50_000))
        assert sum(fact.size for fact in found) == 9 * 50_000
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 40 * 50_000
