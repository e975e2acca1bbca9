"""The orders that are out, and the errands that rest after a failure.

An order that seems to be stuck may be given a second time while time is short: a *copy*, with the
same errand but for its number of the ``attempt``. Each answer is judged by the very order that it
answers; whichever comes first settles the matter, and the other only frees its hand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeVar

from ckptsyncd.core.messages import Answer, Failed, Report
from ckptsyncd.core.orders import Errand, HandOrder, PutPiece, PutWhole, ScannerOrder
from ckptsyncd.core.policy import Policy
from ckptsyncd.core.rate import LARGE_BYTES
from ckptsyncd.core.retry import Wait, after_failure, wait_seconds

#: So many rests are kept before those that are over are dropped (guessed).
MOST_RESTS = 1000
#: A stuck order is out this many times more at most (guessed).
MOST_COPIES = 2

AnyAnswer = TypeVar("AnyAnswer", bound="Answer | Report")
AnyOrder = TypeVar("AnyOrder", bound="HandOrder | ScannerOrder")


@dataclass(frozen=True, slots=True)
class Out:
    """An order that is out, and since when (boot seconds)."""

    order: HandOrder | ScannerOrder
    since: float


@dataclass(slots=True)
class Outstanding:
    """Every order that is out, by its errand, and every errand that rests.

    ``random`` gives uniform numbers in [0, 1).
    """

    policy: Policy
    random: Callable[[], float]
    out: dict[Errand, Out] = field(default_factory=dict)
    copies: Counter[Errand] = field(default_factory=Counter)
    resting: dict[Errand, Wait] = field(default_factory=dict)
    #: When the latest of the large transfers that have ended well had begun.
    overtook: float = float("-inf")

    def is_free(self, errand: Errand, now: float) -> bool:
        """Return whether an errand is neither under way nor resting."""
        if errand in self.out or errand in self.copies:
            return False
        wait = self.resting.get(errand)
        return wait is None or wait.until <= now

    def give(self, order: HandOrder | ScannerOrder, now: float) -> None:
        """Note that an order goes out."""
        self.out[order.errand] = Out(order, now)
        if order.errand.attempt:
            self.copies[first(order.errand)] += 1

    def ended(self, errand: Errand) -> Out | None:
        """Take back the order that was answered, under this very number of the attempt."""
        if errand.attempt:
            base = first(errand)
            self.copies[base] -= 1
            self.copies += Counter()  # drops what is at zero
        return self.out.pop(errand, None)

    def overtaken(self, out: Out) -> bool:
        """Return whether a large transfer that began later has ended already."""
        return self.overtook > out.since

    def stored(self, out: Out, size: int) -> None:
        """Take in that a transfer has ended well: those that began before it are overtaken."""
        if size >= LARGE_BYTES:
            self.overtook = max(self.overtook, out.since)

    def again(self, stuck: Iterable[Out]) -> Iterator[HandOrder]:
        """Yield a copy of each stuck order, if it has not enough of them."""
        for out in stuck:
            base = first(out.order.errand)
            if isinstance(out.order, HandOrder) and self.copies[base] < MOST_COPIES:
                yield copied(out.order, max(self._attempts(base)) + 1)

    def _attempts(self, base: Errand) -> Iterator[int]:
        return (errand.attempt for errand in self.out if first(errand) == base)

    def rest(self, message: Failed, now: float, *, hasty: bool) -> Wait:
        """Have an errand rest after a failure, longer each time; return how long."""
        before = self.resting.get(message.errand)
        pause = wait_seconds(
            1 if before is None else before.attempts + 1,
            self.policy,
            self.random(),
            asked=message.wait_seconds,
            draining=hasty,
        )
        if len(self.resting) > MOST_RESTS:
            self.resting = {e: w for e, w in self.resting.items() if w.until > now}
        rest = self.resting[message.errand] = after_failure(before, now, pause, message.text)
        return rest

    def rested(self, errand: Errand) -> bool:
        """End an errand's rest because it succeeded; return whether it had one."""
        return self.resting.pop(errand, None) is not None

    def with_hands(self) -> Iterator[Out]:
        """Yield the orders that hands are busy with."""
        return (out for out in self.out.values() if isinstance(out.order, HandOrder))

    def with_scanner(self) -> int:
        """Return how many orders the scanner has."""
        return sum(isinstance(out.order, ScannerOrder) for out in self.out.values())


def first(errand: Errand) -> Errand:
    """Return the errand without the number of its attempt: what the order is really about."""
    return replace(errand, attempt=0) if errand.attempt else errand


def original(message: AnyAnswer) -> AnyAnswer:
    """Return an answer as if it answered the first attempt."""
    return replace(message, errand=first(message.errand)) if message.errand.attempt else message


def copied(order: AnyOrder, attempt: int) -> AnyOrder:
    """Return an order as it is given another time."""
    return replace(order, errand=replace(order.errand, attempt=attempt))


def sent_bytes(order: HandOrder | ScannerOrder) -> int:
    """Return how many bytes of a checkpoint an order sends."""
    return order.piece.length if isinstance(order, PutPiece | PutWhole) else 0
