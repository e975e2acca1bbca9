"""Who is to be looked at when, and who first among those whose time has come."""

from __future__ import annotations

import heapq
from collections.abc import Iterator


class Dues:
    """Times by name, and a line of those that are due. Every step costs a logarithm."""

    def __init__(self) -> None:
        """Begin with nobody."""
        self._at: dict[str, float] = {}
        self._times: list[tuple[float, str]] = []
        self._rank: dict[str, tuple[float, ...]] = {}
        self._line: list[tuple[tuple[float, ...], str]] = []
        self._offered: list[tuple[tuple[float, ...], str]] = []

    def set(self, name: str, at: float | None) -> None:
        """Have somebody looked at then and not before; ``None``: not by itself."""
        self._rank.pop(name, None)
        if at is None:
            self._at.pop(name, None)
        elif self._at.get(name) != at:
            self._at[name] = at
            heapq.heappush(self._times, (at, name))

    def ripe(self, now: float) -> Iterator[str]:
        """Yield those whose time has come, once; they are in no order and in no line yet."""
        while self._times and self._times[0][0] <= now:
            at, name = heapq.heappop(self._times)
            if self._at.get(name) == at:
                del self._at[name]
                yield name

    def line_up(self, name: str, rank: tuple[float, ...]) -> None:
        """Put somebody in the line; the lowest rank is first."""
        self._rank[name] = rank
        heapq.heappush(self._line, (rank, name))

    def line(self) -> Iterator[str]:
        """Yield those in the line, first one first; they stay in it until they are served."""
        for entry in self._offered:
            heapq.heappush(self._line, entry)
        self._offered = []
        told: set[str] = set()
        while self._line:
            rank, name = heapq.heappop(self._line)
            if self._rank.get(name) == rank and name not in told:
                told.add(name)
                self._offered.append((rank, name))
                yield name

    def serve(self, name: str) -> None:
        """Take somebody out of the line and forget the time."""
        self._rank.pop(name, None)
        self._at.pop(name, None)

    def next_alarm(self) -> float:
        """Return when the next one's time comes."""
        while self._times and self._at.get(self._times[0][1]) != self._times[0][0]:
            heapq.heappop(self._times)
        return self._times[0][0] if self._times else float("inf")
