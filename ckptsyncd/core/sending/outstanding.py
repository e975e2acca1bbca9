"""The orders that are out, and the errands that rest after a failure.

An order that seems to be stuck may be given a second time while time is short: a *copy*, with the
same errand but for the number of its ``attempt``. Each answer is judged by the very order that it
answers. Whichever settles the matter makes the others *void*: their answers, should they still
come, free a hand and change nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeVar

from ckptsyncd.core.messages import Answer, Failed, Report
from ckptsyncd.core.orders import Begin, Errand, HandOrder, PutPiece, PutWhole, ScannerOrder
from ckptsyncd.core.rules.policy import Policy
from ckptsyncd.core.sending.crew import Crew
from ckptsyncd.core.sending.rate import LARGE_BYTES
from ckptsyncd.core.sending.retry import Wait, after_failure, wait_seconds
from ckptsyncd.core.sending.throttle import Throttle

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

    ``random`` gives uniform numbers in [0, 1). ``attempts`` names, for each errand without its
    number, those that are out or void.
    """

    policy: Policy
    random: Callable[[], float]
    out: dict[Errand, Out] = field(default_factory=dict)
    void: dict[Errand, Out] = field(default_factory=dict)
    attempts: dict[Errand, list[Errand]] = field(default_factory=dict)
    resting: dict[Errand, Wait] = field(default_factory=dict)
    #: How many hands have something to do, even if nobody waits for it any more; and how many were
    #: done since orders were last given out: several may answer before the next are.
    busy: int = 0
    answered: int = 0
    #: When the latest of the large transfers that have ended well had begun.
    overtook: float = float("-inf")
    throttle: Throttle = field(init=False)
    crew: Crew = field(default_factory=Crew)

    def __post_init__(self) -> None:
        """Begin unthrottled."""
        self.throttle = Throttle(self.random)

    def is_free(self, errand: Errand, now: float) -> bool:
        """Return whether an errand is neither under way nor resting."""
        if errand in self.attempts and any(e in self.out for e in self.attempts[errand]):
            return False
        wait = self.resting.get(errand)
        return wait is None or wait.until <= now

    def give(self, order: AnyOrder, now: float) -> AnyOrder:
        """Note that an order goes out, and return it, with a number of its own where needed."""
        base = first(order.errand)
        others = self.attempts.setdefault(base, [])
        if others:
            number = max(errand.attempt for errand in others) + 1
            order = replace(order, errand=replace(base, attempt=number))
        others.append(order.errand)
        self.out[order.errand] = Out(order, now)
        self.busy += isinstance(order, HandOrder)
        return order

    def ended(self, message: Answer | Report) -> Out | None:
        """Take back the order that was answered; ``None`` where the answer changes nothing."""
        errand = message.errand
        out = self.out.pop(errand, None)
        voided = self.void.pop(errand, None)
        if isinstance(getattr(out or voided, "order", None), HandOrder):
            self.busy -= 1
            self.answered += 1
        others = self.attempts.get(first(errand), [])
        if errand in others:
            others.remove(errand)
        if not others:
            self.attempts.pop(first(errand), None)
        if out is None:
            return None
        still_out = [other for other in others if other in self.out]
        if still_out and isinstance(message, Failed) and message.kind == "again":
            return None  # another attempt may do better
        for other in still_out:
            self.void[other] = self.out.pop(other)
        return out

    def begin_of(self, errand: Errand) -> Begin | None:
        """Return the order of this number if it begins an upload, waited for or not."""
        out = self.out.get(errand) or self.void.get(errand)
        return out.order if out is not None and isinstance(out.order, Begin) else None

    def stored(self, out: Out, size: int) -> None:
        """Take in that a transfer has ended well: those that began before it are overtaken."""
        if size >= LARGE_BYTES:
            self.overtook = max(self.overtook, out.since)

    def overtaken(self, out: Out) -> bool:
        """Return whether a large transfer that began later has ended already."""
        return self.overtook > out.since

    def again(self, stuck: Iterable[Out]) -> Iterator[HandOrder]:
        """Yield each stuck order, to be given once more, if it was not given often enough."""
        for out in stuck:
            base = first(out.order.errand)
            count = sum(errand in self.out for errand in self.attempts[base])
            if isinstance(out.order, HandOrder) and count <= MOST_COPIES:
                yield copied(out.order, out.order.errand.attempt + 1)

    def rest(self, message: Failed, out: Out, now: float, *, hasty: bool) -> Wait:
        """Have an errand rest after a failure, longer each time; return how long."""
        if message.throttled:
            asked = message.wait_seconds
            working = replace(self.policy, hands=self.crew.hands(self.policy.hands))
            self.throttle.slowed(out.since, now, working, asked=asked, draining=hasty)
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

    @property
    def hands(self) -> int:
        """How many hands may work: as many as are of use, or as the store wants."""
        return self.throttle.hands(self.crew.hands(self.policy.hands))

    def with_hands(self) -> Iterator[Out]:
        """Yield the hands' orders whose answers are waited for, each attempt by itself."""
        return (out for out in self.out.values() if isinstance(out.order, HandOrder))

    def sending(self) -> Iterator[tuple[Out, int]]:
        """Yield each large transfer that is under way, and its size, however often it is out."""
        seen: set[Errand] = set()
        for out in self.with_hands():
            size, base = sent_bytes(out.order), first(out.order.errand)
            if size >= LARGE_BYTES and base not in seen:
                seen.add(base)
                yield out, size

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
