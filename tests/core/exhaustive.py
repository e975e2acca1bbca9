"""A second planner, which knows nothing of the first: it tries every set of checkpoints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

#: More checkpoints would take too long: there are two to the power of them sets.
MOST = 6


@dataclass(frozen=True)
class Save:
    """A finished checkpoint: its series, its place in it, when it was saved, what it costs.

    ``cost`` in whatever the budget is counted in: bytes or seconds.
    """

    name: str
    series: str
    order: int
    saved_at: float
    cost: float


def sets(saves: Sequence[Save]) -> Iterator[tuple[Save, ...]]:
    """Yield every set of saves."""
    assert len(saves) <= MOST
    for count in range(len(saves) + 1):
        yield from combinations(saves, count)


def worth(saves: Iterable[Save], safe: Iterable[str]) -> tuple[int, float]:
    """Return what a set of safe saves is worth: series served, seconds of training kept.

    Seconds count against a series' newest save; a series without any safe one has lost a day.
    """
    names = set(safe)
    served, lost = 0, 0.0
    by_series: dict[str, list[Save]] = {}
    for save in saves:
        by_series.setdefault(save.series, []).append(save)
    for members in by_series.values():
        newest = max(members, key=lambda save: save.order)
        kept = [save for save in members if save.name in names]
        if kept:
            best = max(kept, key=lambda save: save.order)
            served, lost = served + 1, lost + newest.saved_at - best.saved_at
        else:
            lost += 86400.0
    return served, -lost


def best(saves: Sequence[Save], budget: float) -> tuple[int, float]:
    """Return the highest worth of any set that the budget allows."""
    affordable = (s for s in sets(saves) if sum(save.cost for save in s) <= budget)
    return max(worth(saves, (save.name for save in s)) for s in affordable)
