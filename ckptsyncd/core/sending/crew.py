"""How many hands are of use: found out by trying more, and fewer, and measuring.

On a link with latency every hand adds its own speed until the link is full; on a fast short one the
hands share what one processor can do, and more of them only get into each other's way. So while all
of them have work twice as many are tried, and again, while they carry clearly more each time. Where
the first try brings nothing, half as many are tried, and kept if they carry no less. Then it rests.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

#: Hands at first (measured: enough for a fast link; a slow one is found in a second).
FIRST_HANDS = 4
#: Never fewer by trying: one that waits for an answer must not leave the link idle.
LEAST_HANDS = 2
#: Twice as many are kept where they carry so many times as much; half as many, so much of it.
GAIN = 1.2
NO_LOSS = 0.97
#: So long nothing new is tried after the last try (guessed: links change over minutes).
REST_SECONDS = 30.0
#: More hands are tried only where a transfer takes less (guessed): what is under way cannot be
#: called back when a notice comes, and a slow link would be full of it for seconds.
MOST_SECONDS = 1.0
#: A request counts as so many bytes: small files are as well served by more hands.
REQUEST_BYTES = 256 * 1024


@dataclass(slots=True)
class Crew:
    """How many hands work at once; what is measured are orders given out since that number held.

    More are tried only where a transfer takes less than ``longest_seconds``, and nothing is decided
    by less than ``least_seconds`` of measuring.
    """

    size: int = FIRST_HANDS
    longest_seconds: float = MOST_SECONDS
    least_seconds: float = 0.0
    since: float = float("-inf")
    rest_until: float = float("-inf")
    #: What is being tried: from so many hands, which carried so much in a second.
    tried_from: int = 0
    carried: float = 0.0
    has_grown: bool = False
    is_steady: bool = False
    _begun_at: float = 0.0
    _speeds: list[float] = field(default_factory=list)
    _seconds: list[float] = field(default_factory=list)

    def hands(self, most: int) -> int:
        """Return how many hands work, of those allowed."""
        return min(self.size, most)

    def steady(self, now: float, *, on: bool) -> None:
        """Try nothing (any more) while time is short, and never with fewer hands than at first.

        Then it counts how soon small requests are answered, not what a byte costs.
        """
        proved = self.tried_from or self.size
        if on and (self.tried_from or proved < FIRST_HANDS):
            self._settle(max(proved, FIRST_HANDS), now)
        self.is_steady = on

    def did(self, size: int, given_at: float, now: float, *, most: int, busy: int) -> None:
        """Take in that a transfer took from then to now, and how many were under way beside it.

        Only what happens while every hand has work says what one hand more would do.
        """
        hands, seconds = self.hands(most), now - given_at
        resting = self.is_steady or (now < self.rest_until and not self.tried_from)
        if given_at < self.since or busy + 1 < hands or seconds <= 0.0 or resting:
            return
        if not self._speeds:
            self._begun_at = given_at
        self._speeds.append((size + REQUEST_BYTES) / seconds)
        self._seconds.append(seconds)
        if len(self._speeds) >= max(hands, 3) and now - self._begun_at >= self.least_seconds:
            speed = math.fsum(self._speeds) / len(self._speeds) * hands
            self._decide(hands, speed, most, now)

    def _decide(self, hands: int, speed: float, most: int, now: float) -> None:
        may_grow = math.fsum(self._seconds) / len(self._seconds) < self.longest_seconds
        if not self.tried_from:
            grows = hands < most and may_grow
            self._try(hands * 2 if grows else hands // 2, hands, speed, most, now)
        elif hands > self.tried_from:
            if speed >= self.carried * GAIN and not may_grow:
                self._settle(hands, now)
            elif speed >= self.carried * GAIN:
                self.has_grown = True
                self._try(hands * 2, hands, speed, most, now)
            elif self.has_grown:
                self._settle(self.tried_from, now)
            else:
                self._try(self.tried_from // 2, self.tried_from, self.carried, most, now)
        else:
            kept = hands if speed >= self.carried * NO_LOSS else self.tried_from
            self._settle(kept, now)

    def _try(self, size: int, hands: int, speed: float, most: int, now: float) -> None:
        size = max(min(size, most), min(LEAST_HANDS, most))
        if size == hands:
            self._settle(hands, now)
            return
        self.size, self.since, self._speeds, self._seconds = size, now, [], []
        self.tried_from, self.carried = hands, speed

    def _settle(self, size: int, now: float) -> None:
        self.size, self.since, self._speeds, self._seconds = size, now, [], []
        self.has_grown, self.tried_from, self.rest_until = False, 0, now + REST_SECONDS
