"""The plan of a drain, remade every second from what is known at that moment.

It also knows which orders seem to be stuck: a plan that waits for one of them misses its deadline.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from ckptsyncd.core.draining.ending import Ending
from ckptsyncd.core.draining.loads import load_of
from ckptsyncd.core.draining.plan import Candidate, DrainPlan, planned
from ckptsyncd.core.facts import Limits
from ckptsyncd.core.orders import Abandon, Delete, HandOrder, PutCompanion, ScannerOrder
from ckptsyncd.core.sending.edition import Edition
from ckptsyncd.core.sending.editions import Editions
from ckptsyncd.core.sending.giving_way import given_way
from ckptsyncd.core.sending.outstanding import Out, Outstanding, first, sent_bytes
from ckptsyncd.core.sending.rate import LARGE_BYTES, Rate, Span, Speed
from ckptsyncd.core.sending.runs import Runs
from ckptsyncd.core.sending.series import highest_rank
from ckptsyncd.core.turn import Notebook

#: A plan is not trusted for longer.
REMAKE_SECONDS = 1.0
#: A speed is not computed anew sooner: it costs a millisecond, and there may be a turn for each.
SPEED_SECONDS = 0.1
#: An order counts as stuck after so many times what is usual, and not before so long (guessed: a
#: healthy store has slow moments of a second).
STUCK_TIMES = 3.0
STUCK_SECONDS = 2.0
#: The same where nothing was measured (guessed).
STUCK_UNKNOWN_SECONDS = 5.0
#: Of an order on its way so much counts as done at most: the answer may not come.
SENT_SHARE = 0.9
#: Never given a second time: nobody waits for them.
IDLE = (Abandon, Delete, PutCompanion)


@dataclass(slots=True)
class Planner:
    """Makes the plan while time is short; ``plan`` is ``None`` while it is not."""

    ending: Ending
    editions: Editions
    runs: Runs
    rate: Rate
    outstanding: Outstanding
    plan: DrainPlan | None = None
    planned_for: frozenset[tuple[str, str]] = field(default_factory=frozenset)
    measured: Speed = field(default_factory=Speed)
    measured_at: float = float("inf")
    #: Orders that seem to be stuck, to be given once more, by checkpoint and save id.
    again: dict[tuple[str, str], list[HandOrder]] = field(default_factory=dict)

    def consider(self, now: float, limits: Limits, notes: Notebook) -> None:
        """Remake the plan if it is a second old or about something else than what is there now."""
        self.editions.is_planned = self.ending.is_hasty
        if not self.ending.is_hasty:
            self.plan, self.again = None, {}
            return
        deadline = self.ending.deadline_ahead(now)
        before, known = self.plan, frozenset(self.editions.open)
        if (
            before is not None
            and now < before.made_boot + REMAKE_SECONDS
            and known == self.planned_for
            and deadline == before.deadline_boot
        ):
            return
        speed = self.speed(now)
        sent, under_way = self._sent(now, speed)
        left = deadline - now - self.ending.policy.stop_margin_seconds - under_way
        opened = self.editions.open.items()
        candidates = [self._candidate(e, now, limits, sent.get(key, 0)) for key, e in opened]

        def choose(options: Iterable[Candidate]) -> DrainPlan:
            return planned(options, speed, now, deadline, left, before)

        candidates += self._called_back(choose, candidates, now, limits, notes)
        self.planned_for = frozenset(self.editions.open)
        self.plan = choose(candidates)
        if candidates and _is_news(self.plan, before):
            _tell(self.plan, notes)

    def _called_back(
        self,
        choose: Callable[[Iterable[Candidate]], DrainPlan],
        candidates: list[Candidate],
        now: float,
        limits: Limits,
        notes: Notebook,
    ) -> list[Candidate]:
        """Take up again what gave way to a newer one, where it is the best that still fits."""
        aside = given_way(self.editions.aside, self.editions.open.values())
        spare = [(edition, self._candidate(edition, now, limits, 0)) for edition in aside]
        if not spare:
            return []
        wanted = choose([*candidates, *(candidate for _, candidate in spare)]).first
        back = [(edition, candidate) for edition, candidate in spare if candidate in wanted]
        for edition, _ in back:
            self.editions.call_back(edition, now, notes)
        return [candidate for _, candidate in back]

    def next_alarm(self) -> float:
        """Return when the plan is to be remade (boot seconds)."""
        if self.plan is None or not self.planned_for:
            return float("inf")
        return self.plan.made_boot + REMAKE_SECONDS

    def speed(self, now: float) -> Speed:
        """Return what the store and the link do at present, a moment ago at most."""
        if not self.measured_at <= now < self.measured_at + SPEED_SECONDS:
            self.measured_at = now
            self.measured = self.rate.speed(now, self.outstanding.hands, self._large(now))
        return self.measured

    def turns(self, editions: Iterable[Edition]) -> tuple[list[Edition], list[Edition]]:
        """Return what is worth the time and what is given up, each in order of its turns."""
        by_key = {(edition.checkpoint, edition.save_id): edition for edition in editions}
        if self.plan is None:
            return list(by_key.values()), []
        chosen = [by_key[c.key] for c in self.plan.chosen if c.key in by_key]
        return chosen, [by_key[c.key] for c in self.plan.given_up if c.key in by_key]

    # Orders that are out ------------------------------------------------------------------------

    def find_stuck(self, now: float) -> int:
        """Look for stuck orders, have them ready to be given again, and count idle hands.

        Those that nobody waits for any more count as well.
        """
        stuck = list(self.stuck(now))
        self.again = {}
        for order in self.outstanding.again(stuck):
            key = (order.errand.checkpoint, order.errand.save_id)
            self.again.setdefault(key, []).append(order)
        return len(stuck) + len(self.outstanding.void)

    def stuck(self, now: float) -> Iterator[Out]:
        """Yield the hands' orders that take so long that their answers may never come."""
        speed = self.speed(now)
        out = [one for one in self.outstanding.with_hands() if not isinstance(one.order, IDLE)]
        sending = [one for one, _ in self.outstanding.sending()]
        for one in out:
            patience = self._patience(one.order, speed)
            # A slow link slows all transfers: one is stuck that later ones have overtaken, or that
            # has the link for itself.
            is_large = sent_bytes(one.order) >= LARGE_BYTES
            stands_out = self.outstanding.overtaken(one) or len(sending) == 1
            if now - one.since > patience and (stands_out or not is_large):
                yield one

    def _patience(self, order: HandOrder | ScannerOrder, speed: Speed) -> float:
        size = sent_bytes(order)
        usual = speed.request_seconds
        if size >= LARGE_BYTES:
            hand = speed.hand_bytes_per_second
            usual = size / hand if hand > 0.0 else 0.0
        if usual <= 0.0:
            return STUCK_UNKNOWN_SECONDS
        return max(STUCK_TIMES * usual, STUCK_SECONDS)

    def _large(self, now: float) -> Iterator[Span]:
        return (Span(one.since, now, size) for one, size in self.outstanding.sending())

    # Candidates ---------------------------------------------------------------------------------

    def _candidate(self, edition: Edition, now: float, limits: Limits, sent: int) -> Candidate:
        policy = self.ending.policy
        row = self.editions.recalled.editions.get(edition.save_id)
        load = load_of(edition, row, limits, policy, sent)
        rank = self.runs.rank_of(edition)
        point = highest_rank(self.runs.of(edition.series))
        is_parked = edition.parked_until is not None and edition.parked_until > now
        return Candidate(
            key=(edition.checkpoint, edition.save_id),
            edition=edition.number or edition.expected,
            series=edition.series,
            step=edition.settled.step,
            rank=rank,
            saved_at=edition.saved_at,
            rest=edition.bytes - edition.bytes_stored,
            load=load,
            advances=point is None or rank > point,
            point_at=None if point is None else point[2],
            obstacle=edition.reason if is_parked else "",
        )

    def _sent(self, now: float, speed: Speed) -> tuple[dict[tuple[str, str], int], float]:
        """Return the bytes that are under way, by checkpoint, and the seconds that they still take.

        They cannot be called back, so they are counted before anything is chosen, whosever they
        are; what seems to be stuck has to be sent again.
        """
        stuck = {first(out.order.errand) for out in self.stuck(now)}
        sent: Counter[tuple[str, str]] = Counter()
        sending = list(self.outstanding.sending())
        share = speed.bytes_per_second / max(len(sending), 1)
        rest = 0.0
        for one, size in sending:
            errand = first(one.order.errand)
            if errand not in stuck:
                done = (now - one.since) * min(speed.hand_bytes_per_second, share)
                rest += size - min(done, SENT_SHARE * size)
                sent[errand.checkpoint, errand.save_id] += size
        rate = speed.bytes_per_second
        return dict(sent), rest / rate if rate > 0.0 else 0.0


def _is_news(plan: DrainPlan, before: DrainPlan | None) -> bool:
    """Return whether something is chosen or given up now that was not before."""
    if before is None:
        return True
    chosen, up = {c.key for c in plan.chosen}, {c.key for c in plan.given_up}
    was_chosen, was_up = {c.key for c in before.chosen}, {c.key for c in before.given_up}
    return bool(up - was_up or chosen - was_chosen)


def _tell(plan: DrainPlan, notes: Notebook) -> None:
    """Note the plan: one line with all that matters, said at once."""
    finish = None if plan.finish_boot is None else round(plan.finish_boot - plan.made_boot, 1)
    is_bounded = plan.seconds != float("inf")
    notes.said(
        "drain.planned" if plan.chosen else "drain.nothing_fits",
        ("first", _names(plan.first)),
        ("then", _names(plan.then)),
        ("given_up", _names(plan.given_up)),
        ("bytes", plan.bytes),
        ("bytes_given_up", plan.bytes_given_up),
        ("seconds_needed", finish),
        ("seconds_left", round(plan.seconds, 1) if is_bounded else None),
        ("bytes_per_second", round(plan.speed.bytes_per_second)),
        ("doubt", round(plan.speed.doubt, 2)),
    )


def _names(candidates: Iterable[Candidate]) -> str:
    return ", ".join(f"{candidate.key[0]}@{candidate.edition}" for candidate in candidates)
