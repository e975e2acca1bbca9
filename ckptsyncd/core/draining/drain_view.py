"""A drain as outsiders see it: the plan in wall time, and whether a notice would suffice."""

from __future__ import annotations

from dataclasses import dataclass

from ckptsyncd.core.draining.loads import Load
from ckptsyncd.core.draining.plan import Candidate, DrainPlan
from ckptsyncd.core.draining.planner import Planner
from ckptsyncd.core.facts import Instant
from ckptsyncd.core.sending.editions import Editions
from ckptsyncd.core.sending.rate import Speed


@dataclass(frozen=True, slots=True)
class PlannedView:
    """A finished checkpoint in a plan; ``reason`` is why it is given up, ``bytes`` what is left."""

    checkpoint: str
    edition: int
    series: str
    step: int | None
    bytes: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class DrainPlanView:
    """What will be safe by the deadline and what will not, each in order of its turn.

    Times are wall seconds; ``finish_at`` is when the last one that fits is expected to be safe,
    ``None`` where no speed was measured. ``doubt`` is the share by which that may be too high.
    """

    made_at: float
    deadline_at: float | None
    chosen: tuple[PlannedView, ...]
    given_up: tuple[PlannedView, ...]
    finish_at: float | None
    bytes_per_second: float
    doubt: float

    @property
    def bytes(self) -> int:
        """How many bytes of what fits are not in the store."""
        return sum(view.bytes for view in self.chosen)

    @property
    def bytes_given_up(self) -> int:
        """How many bytes are not in the store and will not be in time."""
        return sum(view.bytes for view in self.given_up)


@dataclass(frozen=True, slots=True)
class WouldFit:
    """Whether what is at risk would be safe within a notice as it is usual here.

    ``bytes`` are those at risk, or while there are none those of the newest checkpoint.
    ``seconds_needed`` and ``fits`` are ``None`` where no speed was measured.
    """

    fits: bool | None
    bytes: int
    seconds_needed: float | None
    notice_seconds: float


def plan_view(plan: DrainPlan | None, now: Instant) -> DrainPlanView | None:
    """Return the plan of the drain that is under way, if one is."""
    if plan is None or not (plan.chosen or plan.given_up):
        return None
    offset = now.wall - now.boot
    is_bounded = plan.deadline_boot != float("inf")
    return DrainPlanView(
        made_at=plan.made_boot + offset,
        deadline_at=plan.deadline_boot + offset if is_bounded else None,
        chosen=tuple(_planned(candidate) for candidate in plan.chosen),
        given_up=tuple(_planned(c, c.obstacle or "does not fit") for c in plan.given_up),
        finish_at=None if plan.finish_boot is None else plan.finish_boot + offset,
        bytes_per_second=plan.speed.bytes_per_second,
        doubt=plan.speed.doubt,
    )


def _planned(candidate: Candidate, reason: str = "") -> PlannedView:
    return PlannedView(
        checkpoint=candidate.key[0],
        edition=candidate.edition,
        series=candidate.series,
        step=candidate.step,
        bytes=candidate.rest,
        reason=reason,
    )


def would_fit(editions: Editions, planner: Planner, now: Instant) -> WouldFit:
    """Return whether a notice that came now would do, at the speed that was measured last."""
    opened = [edition for edition in editions.open.values() if edition.is_open]
    count = sum(edition.bytes - edition.bytes_stored for edition in opened)
    if not opened:
        safe = ((row.manifest.saved_at, row.manifest.bytes) for row in editions.safe.values())
        count = max(safe, default=(0.0, 0))[1]
    policy = planner.ending.policy
    needed = _seconds(count, planner.speed(now.boot))
    left = policy.notice_seconds - policy.stop_margin_seconds
    fits = None if needed is None else needed <= left
    return WouldFit(fits, count, needed, policy.notice_seconds)


def _seconds(count: int, speed: Speed) -> float | None:
    if count == 0:
        return 0.0
    if speed.bytes_per_second <= 0.0 or speed.is_bound:
        return None
    return Load(bytes=count, requests=1, steps=1).seconds(speed, sure=True)
