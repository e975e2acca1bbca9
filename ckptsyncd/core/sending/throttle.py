"""How many hands may work while the store asks for fewer requests, and when all of them rest.

As TCP shares a link: a store that throttles halves the hands, every round of answers after that
brings one back. Where even one hand is too much all of them rest, longer each time, so that a store
that throttles for good is asked once in a pause, however many pieces are waiting for their turn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ckptsyncd.core.rules.policy import Policy

#: Doublings of the first pause after which none is longer.
MOST_DOUBLINGS = 30


@dataclass(slots=True)
class Throttle:
    """What the store's wish for fewer requests leaves of the hands.

    ``random`` gives uniform numbers in [0, 1). ``most`` is how many hands may work, ``None`` while
    nothing slows them; ``total`` counts the answers that asked for less.
    """

    random: Callable[[], float]
    most: float | None = None
    until: float = float("-inf")
    total: int = 0
    _cut_at: float = float("-inf")
    _rests: int = 0

    def hands(self, wanted: int) -> int:
        """Return how many of the wanted hands may work."""
        return wanted if self.most is None else min(wanted, max(int(self.most), 1))

    def is_resting(self, now: float) -> bool:
        """Return whether nothing may be asked of the store now."""
        return now < self.until

    def slowed(
        self, given_at: float, now: float, policy: Policy, *, asked: float | None, draining: bool
    ) -> None:
        """Take in that the store throttled an order that was given out at this time.

        Orders from before the last cut say nothing about what was left after it. What the store
        asked for rests the errand itself; all of them it rests only where no hand is left to cut.
        Unlike the pauses of single errands these are never shorter than half of what they may be:
        their sum must stay bounded.
        """
        self.total += 1
        if given_at < self._cut_at:
            return
        self._cut_at = now
        before = min(self.most or policy.hands, policy.hands)
        self.most = max(before / 2.0, 1.0)
        if before > 1:
            return
        cap = policy.retry_drain_seconds if draining else policy.retry_last_seconds
        doubled = policy.retry_first_seconds * 2.0 ** min(self._rests, MOST_DOUBLINGS)
        self._rests += 1
        pause = min(cap, doubled) * (1.0 + self.random()) / 2.0
        self.until = now + max(pause, min(asked or 0.0, cap))

    def eased(self, given_at: float, wanted: int) -> None:
        """Take in that the store did what it was asked: one hand more after a round of answers."""
        if self.most is None or given_at < self._cut_at:
            return
        self._rests = 0
        self.most += 1.0 / self.most
        if self.most >= wanted:
            self.most = None
