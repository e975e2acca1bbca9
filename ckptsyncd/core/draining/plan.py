"""Which checkpoint goes first: newest finished first, and against a deadline what still fits.

Outside a drain an upload that has begun is finished before a newer one starts: when saves come
faster than uploads, starting over with each save would never finish any.

In a drain every series is to get the newest recovery point that can be committed in time; no series
gets a second checkpoint before every one that can has got its first. What does not fit is given up
and said so; it gets what time is left, for its pieces are resumed by the next daemon on this disk,
and a machine may live a little longer than was said.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ckptsyncd.core.draining.loads import Load
from ckptsyncd.core.sending.edition import Edition
from ckptsyncd.core.sending.rate import Speed
from ckptsyncd.core.sending.series import Rank

RankOf = Callable[[Edition], Rank]

#: While there is more time than the surest choice needs, and this much more, the hoped-for one may
#: be tried: the plan is remade every second, and then turns back in time.
TURN_BACK_SECONDS = 2.0
#: What was chosen before counts as so much quicker, lest two of like merit take turns (guessed).
KEPT_SHARE = 0.05
#: A series without any recovery point has lost so much more than its finished checkpoints tell
#: (guessed: a day of training).
NO_POINT_SECONDS = 86400.0
#: So many partial choices are compared at most: exact for a few series, good for many (guessed).
MOST_CHOICES = 200


def calm_order(editions: Iterable[Edition], rank_of: RankOf) -> list[Edition]:
    """Return the editions in the order of their turns while nobody hurries.

    Begun ones first, oldest begun first; then what was seen being written, newest first; then
    what lay there at start, newest first.
    """

    def begun(edition: Edition) -> tuple[bool, float]:
        return (not edition.began, edition.settled_at if edition.began else 0.0)

    newest = sorted(editions, key=rank_of, reverse=True)
    found_last = sorted(newest, key=lambda edition: edition.settled.found)
    return sorted(found_last, key=begun)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A finished checkpoint that is not safe. ``rest``: bytes that are not in the store.

    ``advances``: it is newer than its series' recovery point. ``point_at``: when that was saved
    (wall seconds), ``None`` where there is none. ``obstacle``: why it cannot be sent at all now.
    """

    key: tuple[str, str]
    edition: int
    series: str
    step: int | None
    rank: Rank
    saved_at: float
    rest: int
    load: Load
    advances: bool = True
    point_at: float | None = None
    obstacle: str = ""

    @property
    def gain(self) -> float:
        """How many seconds of training are saved with it."""
        return NO_POINT_SECONDS if self.point_at is None else self.saved_at - self.point_at


@dataclass(frozen=True, slots=True)
class DrainPlan:
    """What is sent by a deadline, what as well, and what is given up; each in order of its turn.

    ``first`` are the recovery points, at most one for each series. ``finish_boot`` is when the last
    one that fits is expected to be safe, ``None`` where no speed was measured. Boot seconds;
    ``deadline_boot`` is infinite where nobody named one, and ``seconds`` is what was left until
    then, without the margin for stopping and the time for what was under way already.
    """

    made_boot: float
    deadline_boot: float
    seconds: float
    speed: Speed
    first: tuple[Candidate, ...] = ()
    then: tuple[Candidate, ...] = ()
    given_up: tuple[Candidate, ...] = ()
    finish_boot: float | None = None

    @property
    def chosen(self) -> tuple[Candidate, ...]:
        """Everything that fits."""
        return (*self.first, *self.then)

    @property
    def bytes(self) -> int:
        """How many bytes of what fits are not in the store."""
        return sum(candidate.rest for candidate in self.chosen)

    @property
    def bytes_given_up(self) -> int:
        """How many bytes are not in the store and will not be in time."""
        return sum(candidate.rest for candidate in self.given_up)


@dataclass(frozen=True, slots=True)
class _Budget:
    """The seconds that are left, and how they are counted: hopefully, or only what is sure."""

    speed: Speed
    seconds: float
    kept: frozenset[tuple[str, str]] = frozenset()
    sure: bool = False

    def cost(self, candidate: Candidate) -> float:
        """Return how long the hands are busy with a checkpoint."""
        return candidate.load.seconds(self.speed, sure=self.sure) * self._share(candidate)

    def allows(self, candidate: Candidate, spent: float) -> bool:
        """Return whether a checkpoint fits beside what else is chosen."""
        alone = candidate.load.alone_seconds(self.speed, sure=self.sure) * self._share(candidate)
        return max(spent + self.cost(candidate), alone) <= self.seconds

    def _share(self, candidate: Candidate) -> float:
        return 1.0 - KEPT_SHARE if candidate.key in self.kept else 1.0


class _Choice(NamedTuple):
    """Some series' recovery points: what they cost, what they are worth, which they are."""

    cost: float
    worth: tuple[int, float]
    picks: tuple[Candidate, ...]


def planned(
    candidates: Iterable[Candidate],
    speed: Speed,
    now: float,
    deadline: float,
    seconds: float,
    before: DrainPlan | None = None,
) -> DrainPlan:
    """Return the plan for the ``seconds`` that are left; ``before`` is the one that it replaces."""
    known = sorted(candidates, key=lambda c: c.rank, reverse=True)
    free = [candidate for candidate in known if not candidate.obstacle]
    kept = frozenset(() if before is None else (c.key for c in before.first))
    plain = _Budget(speed, seconds)
    first = _recovery_points(free, speed, seconds, kept)
    then = _also(free, first, plain)
    chosen = (*first, *then)
    is_measured = speed.bytes_per_second > 0.0 and not speed.is_bound
    is_known = is_measured or not any(c.load.bytes for c in chosen)
    return DrainPlan(
        made_boot=now,
        deadline_boot=deadline,
        seconds=seconds,
        speed=speed,
        first=first,
        then=then,
        given_up=_given_up((c for c in known if c not in chosen), plain),
        finish_boot=now + sum(map(plain.cost, chosen)) if is_known else None,
    )


def _also(
    free: Sequence[Candidate], first: tuple[Candidate, ...], budget: _Budget
) -> tuple[Candidate, ...]:
    """Return what fits beside the recovery points, newest first, useful ones before others."""
    spent = sum(map(budget.cost, first))
    found: list[Candidate] = []
    for candidate in sorted(free, key=lambda c: not c.advances):
        if candidate not in first and budget.allows(candidate, spent):
            found.append(candidate)
            spent += budget.cost(candidate)
    return tuple(found)


def _given_up(candidates: Iterable[Candidate], budget: _Budget) -> tuple[Candidate, ...]:
    """Return what does not fit: newest first, but what would save twice as much for its time."""

    def turn(candidate: Candidate) -> tuple[bool, bool, int]:
        share = budget.cost(candidate) / max(candidate.gain, 1.0)
        return bool(candidate.obstacle), not candidate.advances, round(math.log2(share + 1e-9))

    return tuple(sorted(candidates, key=turn))


def _recovery_points(
    free: Sequence[Candidate], speed: Speed, seconds: float, kept: frozenset[tuple[str, str]]
) -> tuple[Candidate, ...]:
    """Return the best recovery points: those hoped for while one can still turn back.

    In the order of their turns: what is sure before what is hoped, and what saves most training for
    its time first, for the link may break at any moment.
    """
    hoped = _best(free, _Budget(speed, seconds, kept))
    cautious = _Budget(speed, seconds, kept, sure=True)
    surely = _best(free, cautious)
    way_back = sum(map(cautious.cost, surely))
    chosen = hoped if not surely or seconds - way_back > TURN_BACK_SECONDS else surely

    def turn(candidate: Candidate) -> tuple[bool, float]:
        cost = cautious.cost(candidate) / max(candidate.gain, 1.0)
        return candidate not in surely, cost

    return tuple(sorted(chosen, key=turn))


def _best(free: Sequence[Candidate], budget: _Budget) -> tuple[Candidate, ...]:
    """Return the worthiest choice that fits: most series served, then least training lost."""
    choices = [_Choice(0.0, (0, 0.0), ())]
    by_series: dict[str, list[Candidate]] = {}
    for candidate in free:
        if candidate.advances:
            by_series.setdefault(candidate.series, []).append(candidate)
    for options in by_series.values():
        choices = _undominated(_grown(choices, options, budget))
    return max(choices, key=lambda choice: (choice.worth, -choice.cost)).picks


def _grown(
    choices: list[_Choice], options: Sequence[Candidate], budget: _Budget
) -> Iterator[_Choice]:
    """Yield the choices with one more series: each of its checkpoints, newest first, or none."""
    losses = _losses(options)
    for choice in choices:
        count, worth = choice.worth
        yield choice._replace(worth=(count, worth - losses[-1]))
        for option, lost in zip(options, losses, strict=False):
            if budget.allows(option, choice.cost):
                cost = choice.cost + budget.cost(option)
                yield _Choice(cost, (count + 1, worth - lost), (*choice.picks, option))


def _losses(options: Sequence[Candidate]) -> list[float]:
    """Return the seconds of training lost with each option, newest first, and with none at all."""
    newest = options[0]
    losses: list[float] = []
    for option in options:
        # A newer checkpoint is worth more whatever the clocks say.
        least = losses[-1] + 1e-3 if losses else 0.0
        losses.append(max(newest.saved_at - option.saved_at, least))
    without = NO_POINT_SECONDS if newest.point_at is None else newest.saved_at - newest.point_at
    return [*losses, max(without, losses[-1])]


def _undominated(choices: Iterable[_Choice]) -> list[_Choice]:
    """Return the choices that nothing cheaper beats."""
    kept: list[_Choice] = []
    for choice in sorted(choices, key=lambda c: (c.cost, -c.worth[0], -c.worth[1])):
        if not kept or choice.worth > kept[-1].worth:
            kept.append(choice)
    step = -(-len(kept) // MOST_CHOICES)
    return [*kept[:-1:step], kept[-1]]
