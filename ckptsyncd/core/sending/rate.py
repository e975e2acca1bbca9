"""How fast bytes reach the store and how fast it answers, and how far that can be relied on.

Large transfers tell the speed of the link, small ones the time of a request. What was measured
last weighs most; an order that takes longer than usual says by its silence that the link became
slower. Times are boot seconds.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

#: So many transfers are remembered: at 3 GB/s with pieces of 16 MiB they are 0.7 s (guessed).
MOST_SPANS = 128
#: What was measured so long before the newest counts half as much (guessed: a drain of 15 s sees
#: a change in its first third).
HALF_LIFE_SECONDS = 4.0
#: A smaller transfer says more about the time of a request than about the link (guessed).
LARGE_BYTES = 1024 * 1024
#: So many requests are remembered.
MOST_REQUESTS = 32
#: A measurement is never doubted more than this, nor by more than this for its age (guessed).
MOST_DOUBT = 0.5
MOST_DOUBT_OF_AGE = 0.25
OLD_SECONDS = 600.0
#: So often what is under way and the speed of the link are guessed from each other.
ROUNDS = 3


class Span(NamedTuple):
    """So many bytes reached the store between two moments."""

    start: float
    end: float
    size: int


@dataclass(frozen=True, slots=True)
class Speed:
    """What a plan may count on. Zeros where nothing was measured: then nothing is too large.

    ``bytes_per_second`` of all ``hands`` together, ``hand_bytes_per_second`` of one of them while
    the others are busy too. ``doubt`` is the share by which the speed may be overestimated.
    ``is_bound``: nothing has arrived yet, and it is no more than this.
    """

    bytes_per_second: float = 0.0
    hand_bytes_per_second: float = 0.0
    request_seconds: float = 0.0
    doubt: float = 0.0
    hands: int = 1
    is_bound: bool = False


@dataclass(slots=True)
class Rate:
    """What the hands reported lately."""

    spans: deque[Span] = field(default_factory=lambda: deque(maxlen=MOST_SPANS))
    small: deque[Span] = field(default_factory=lambda: deque(maxlen=MOST_SPANS))
    requests: deque[float] = field(default_factory=lambda: deque(maxlen=MOST_REQUESTS))
    bytes_sent: int = 0

    def stored(self, count: int, seconds: float, now: float) -> None:
        """Take in that ``count`` bytes were stored within the ``seconds`` before ``now``."""
        self.bytes_sent += count
        if count >= LARGE_BYTES:
            self.spans.append(Span(now - seconds, now, count))
        else:
            self.small.append(Span(now - seconds, now, count))
            self.requests.append(seconds)

    def answered(self, seconds: float) -> None:
        """Take in that a request without much of a body took so long."""
        self.requests.append(seconds)

    def failed(self, start: float, until: float) -> None:
        """Take in that a large transfer failed and rests until then: that was, or is, no speed."""
        if self.spans:
            self.spans.append(Span(start, until, 0))

    def forget(self) -> None:
        """Forget how fast the link was: it was held back, and is not any more."""
        self.spans.clear()

    def per_second(self) -> float:
        """Return bytes per second while something was under way; 0 where nothing was measured."""
        spans = self.spans or self.small
        return _flow(spans)[0] if spans else 0.0

    def speed(self, now: float, hands: int, under_way: Iterable[Span] = ()) -> Speed:
        """Return what to count on; ``under_way`` are large transfers as if they ended now."""
        spans = [Span(s.start, min(s.end, now), s.size) for s in self.spans if s.start < now]
        hand = _hand_rate(spans)
        spans += _arrived(spans, [s for s in under_way if s.end > s.start], hand)
        request = sum(self.requests) / len(self.requests) if self.requests else 0.0
        if not any(span.size for span in spans):
            return Speed(request_seconds=request, hands=hands)
        mean, deviation = _flow(spans)
        age = min(max(now - max(s.end for s in spans), 0.0) / OLD_SECONDS, 1.0)
        count = _effective_count(spans)
        doubt = deviation / max(mean, 1.0) / count**0.5 + MOST_DOUBT / count
        return Speed(
            bytes_per_second=mean,
            hand_bytes_per_second=_hand_rate(spans),
            request_seconds=request,
            doubt=min(doubt + MOST_DOUBT_OF_AGE * age, MOST_DOUBT),
            hands=hands,
            is_bound=hand == 0.0,
        )


def _arrived(done: list[Span], under_way: list[Span], hand: float) -> list[Span]:
    """Return what probably has arrived of transfers under way, never more than all of each.

    So one that takes longer than usual tells that the link became slower; where nothing was
    measured, all of it is an upper bound. Together they are no faster than the link, whose speed
    in turn depends on them: a few rounds settle that.
    """
    if hand <= 0.0 or not under_way:
        return under_way
    each, found = hand, under_way
    for _ in range(ROUNDS):
        found = [s._replace(size=int(min((s.end - s.start) * each, s.size))) for s in under_way]
        each = min(hand, _flow([*done, *found])[0] / len(under_way))
    return found


def _weight(time: float, newest: float) -> float:
    return math.pow(2.0, (time - newest) / HALF_LIFE_SECONDS)


def _hand_rate(spans: Iterable[Span]) -> float:
    """Return the bytes that one hand moves in a second of its time."""
    spans = list(spans)
    newest = max((span.end for span in spans), default=0.0)
    weights = [_weight(span.end, newest) for span in spans]
    seconds = sum(w * (span.end - span.start) for w, span in zip(weights, spans, strict=True))
    count = sum(w * span.size for w, span in zip(weights, spans, strict=True))
    return count / seconds if seconds > 0.0 else 0.0


def _effective_count(spans: Iterable[Span]) -> float:
    """Return how many measurements these are worth, old ones being worth less."""
    spans = list(spans)
    newest = max(span.end for span in spans)
    weights = [_weight(span.end, newest) for span in spans]
    return max(sum(weights) ** 2 / sum(w * w for w in weights), 1.0)


def _flow(spans: Iterable[Span]) -> tuple[float, float]:
    """Return mean and deviation of the bytes per second while anything was under way."""
    parts = list(_parts(spans))
    total = sum(weight for weight, _ in parts)
    if total <= 0.0:
        return 0.0, 0.0
    mean = sum(weight * flow for weight, flow in parts) / total
    variance = sum(weight * (flow - mean) ** 2 for weight, flow in parts) / total
    return mean, variance**0.5


def _parts(spans: Iterable[Span]) -> Iterator[tuple[float, float]]:
    """Yield weight and flow of each stretch of time in which the same transfers were under way."""
    # A transfer that took no time at all is taken for one of a millisecond.
    timed = [Span(s.start, max(s.end, s.start + 1e-3), s.size) for s in spans]
    newest = max((span.end for span in timed), default=0.0)
    edges = [(s.start, s.size / (s.end - s.start), 1) for s in timed]
    edges += [(s.end, -s.size / (s.end - s.start), -1) for s in timed]
    edges.sort()
    flow, busy = 0.0, 0
    for (time, change, step), (until, _, _) in pairwise(edges):
        flow, busy = flow + change, busy + step
        if busy and until > time:
            weight = (until - time) * _weight((time + until) / 2, newest)
            yield weight, max(flow, 0.0)
