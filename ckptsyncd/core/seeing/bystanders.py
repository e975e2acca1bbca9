"""What lies beside the checkpoints on disk: pointers and companions, and whether they changed.

There may be a million companions, so one costs its path and one number here.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass, field

from ckptsyncd.core.facts import FileFact
from ckptsyncd.core.orders import Errand, Look
from ckptsyncd.core.rules.policy import Policy
from ckptsyncd.core.seeing.tree import is_below, parent
from ckptsyncd.core.sightings import CompanionSeen, PointerSeen

#: So many are looked at with one order (guessed).
_MOST_PATHS = 256
#: One that never rests is still taken after so many times the usual quiet (guessed).
_MOST_WAITS = 4


@dataclass(slots=True)
class Bystander:
    """One that changed: ``first`` and ``last`` event, and how long it has to be quiet."""

    first: float
    last: float
    quiet: float

    @property
    def due(self) -> float:
        """When it is to be looked at."""
        return min(self.last + self.quiet, self.first + self.quiet * _MOST_WAITS)


def print_of(fact: FileFact) -> int:
    """Return a number that changes when the file changes."""
    return hash((fact.inode, fact.size, fact.mtime_ns, fact.target or ""))


@dataclass(slots=True)
class Bystanders:
    """Tells what changed once it has been quiet for a while."""

    policy: Policy
    prints: dict[str, int] = field(default_factory=dict)
    waiting: dict[str, Bystander] = field(default_factory=dict)
    times: list[tuple[float, str]] = field(default_factory=list)
    ripe: dict[str, None] = field(default_factory=dict)
    under_way: Errand | None = None
    index: int = 0

    def touched(self, path: str, now: float, *, is_pointer: bool) -> None:
        """Note an event on one."""
        quiet = self.policy.probe_seconds if is_pointer else self.policy.companion_seconds
        waiting = self.waiting.get(path)
        if waiting is not None:
            waiting.last = now
        elif is_pointer or self.policy.companions:
            waiting = self.waiting[path] = Bystander(now, now, quiet)
            heapq.heappush(self.times, (waiting.due, path))

    def scanned(self, fact: FileFact, now: float, *, is_pointer: bool, first: bool) -> bool:
        """Note what a listing found; return whether that is news by itself already.

        At the first listing nobody is known to be writing: what it finds is told at once.
        """
        if self.prints.get(fact.path) == print_of(fact):
            return False
        if not first:
            self.touched(fact.path, now, is_pointer=is_pointer)
            return False
        return is_pointer or self.policy.companions

    def forget(self, path: str) -> None:
        """Drop one that is gone, or is part of a checkpoint after all."""
        self.prints.pop(path, None)
        self.waiting.pop(path, None)
        self.ripe.pop(path, None)

    def prune(self, folder: str, seen: set[str]) -> None:
        """Drop those below a directory that a listing did not find."""
        gone = [p for p in self.prints if p not in seen and is_below(p, folder)]
        for path in gone:
            self.forget(path)

    def advance(self, now: float) -> None:
        """Note who has been quiet for long enough by now."""
        while self.times and self.times[0][0] <= now:
            _, path = heapq.heappop(self.times)
            waiting = self.waiting.get(path)
            if waiting is None:
                continue
            if waiting.due > now:
                heapq.heappush(self.times, (waiting.due, path))
            else:
                self.ripe[path] = None
                del self.waiting[path]

    def order(self) -> Look | None:
        """Return the order to look at those that have been quiet, if any have."""
        if not self.ripe or self.under_way is not None:
            return None
        paths = tuple(list(self.ripe)[:_MOST_PATHS])
        return Look(Errand("look aside", index=self.index), paths, frozenset())

    def ordered(self, order: Look) -> None:
        """Note that they are being looked at."""
        self.under_way = order.errand
        self.index += 1
        for path in order.roots:
            self.ripe.pop(path, None)

    def looked(self, facts: Iterable[FileFact]) -> list[FileFact]:
        """Return which of these changed since they were last told."""
        self.under_way = None
        return [fact for fact in facts if self.prints.get(fact.path) != print_of(fact)]

    def tell(self, fact: FileFact, *, is_pointer: bool) -> PointerSeen | CompanionSeen:
        """Return the news of one, and remember that it was told."""
        self.prints[fact.path] = print_of(fact)
        if is_pointer:
            return PointerSeen(fact.path, parent(fact.path) or ".", fact)
        return CompanionSeen(fact.path, fact)

    def next_alarm(self) -> float:
        """Return when the next has been quiet for long enough (boot seconds)."""
        return self.times[0][0] if self.times else float("inf")
