"""How fast bytes reach the store, from what the hands report."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

#: Older answers say little about the link of now (guessed).
WINDOW_SECONDS = 30.0


@dataclass(slots=True)
class Rate:
    """Bytes that reached the store within the last window. Times are boot seconds."""

    window: deque[tuple[float, float, int]] = field(default_factory=deque)
    bytes_sent: int = 0

    def stored(self, count: int, seconds: float, now: float) -> None:
        """Take in that ``count`` bytes were stored within the ``seconds`` before ``now``."""
        self.bytes_sent += count
        self.window.append((now - seconds, now, count))
        while self.window and self.window[0][1] < now - WINDOW_SECONDS:
            self.window.popleft()

    def per_second(self) -> float:
        """Return bytes per second while something was under way; 0 where nothing was measured."""
        if not self.window:
            return 0.0
        busy, reached = 0.0, float("-inf")
        for start, end, _ in sorted(self.window):
            busy += max(0.0, end - max(start, reached))
            reached = max(reached, end)
        return sum(count for _, _, count in self.window) / max(busy, 1e-3)
