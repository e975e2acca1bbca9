"""Everything that could be ordered now, most urgent first.

The brain takes from these lists what its free hands can do; nothing here remembers what is already
under way, so what is not done is wished for again in the next turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from ckptsyncd.core.draining.drain import Drain
from ckptsyncd.core.draining.ending import Ending
from ckptsyncd.core.draining.plan import calm_order
from ckptsyncd.core.facts import Instant, Limits
from ckptsyncd.core.orders import (
    Begin,
    Errand,
    Finish,
    GetSmall,
    HandOrder,
    ListKeys,
    Probe,
    PutSmall,
    ScannerOrder,
    Stat,
)
from ckptsyncd.core.records.names import MANIFESTS
from ckptsyncd.core.rules.policy import Policy
from ckptsyncd.core.seeing.eyes import Eyes
from ckptsyncd.core.sending.beside import Beside
from ckptsyncd.core.sending.edition import Edition
from ckptsyncd.core.sending.editions import Editions
from ckptsyncd.core.sending.runs import Runs
from ckptsyncd.core.sending.scene import Scene
from ckptsyncd.core.sending.series import Rank
from ckptsyncd.core.sending.upload import missing
from ckptsyncd.core.tidying.tidy import Tidy
from ckptsyncd.core.turn import Notebook

#: Stands in for a store that has not answered yet; no order that depends on it goes out.
UNKNOWN_LIMITS = Limits(1, 1, 1, 1)


@dataclass(frozen=True, slots=True)
class Who:
    """This process, as it signs what it writes; ``boot_id`` names the machine's boot."""

    host: str
    nonce: str
    version: str
    boot_id: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """Store orders of one kind, in order; a lower ``urgency`` goes first."""

    urgency: int
    series: str
    orders: Iterator[HandOrder]


@dataclass(slots=True)
class Wishes:
    """The parts of the mind, asked for what they want."""

    policy: Policy
    who: Who
    eyes: Eyes
    editions: Editions
    runs: Runs
    beside: Beside
    ending: Ending
    drain: Drain
    tidy: Tidy
    is_free: Callable[[Errand, float], bool]
    limits: Limits | None = None

    @property
    def known_limits(self) -> Limits:
        """What the store can do, as far as it has told."""
        return self.limits or UNKNOWN_LIMITS

    @property
    def is_ready(self) -> bool:
        """Whether the store has told what it can do and which manifests it holds."""
        return self.limits is not None and self.editions.catalog.is_known

    def scene(self, edition: Edition, now: Instant) -> Scene:
        """Return what an edition's next order depends on beside its own progress."""
        series = self.runs.of(edition.series)
        epoch: int | None = series.epoch if series.epoch_taken == "yes" else None
        if self.runs.fenced and epoch is None:
            epoch = series.last_epoch or 0
        safe = self.editions.safe.get(edition.checkpoint)
        return Scene(
            limits=self.known_limits,
            policy=self.policy,
            host=self.who.host,
            nonce=self.who.nonce,
            version=self.who.version,
            epoch=epoch,
            lineage=self.runs.lineage_for(series, edition.settled.step, edition.saved_at),
            after_step=series.after_step,
            least_saved_at=0.0 if safe is None else safe.manifest.saved_at,
            late=bool(self.runs.fenced),
            now=now,
            is_free=lambda errand: self.is_free(errand, now.boot),
            hasty=self.ending.is_hasty,
            bytes_per_second=self.drain.planner.speed(now.boot).bytes_per_second,
        )

    def turns(self, now: Instant) -> list[Edition]:
        """Return the editions that are not resting, in the order of their turns."""
        return self._in_turn(self._ready(now))

    def _in_turn(self, ready: Iterable[Edition]) -> list[Edition]:
        if self.drain.planner.plan is not None:
            chosen, given_up = self.drain.planner.turns(ready)
            return [*chosen, *given_up]
        return calm_order(ready, self.rank_of)

    def _ready(self, now: Instant) -> list[Edition]:
        return [
            edition
            for edition in self.editions.open.values()
            if edition.parked_until is None or edition.parked_until <= now.boot
        ]

    def rank_of(self, edition: Edition) -> Rank:
        """Order editions as their manifests will be ordered."""
        return self.runs.rank_of(edition)

    # The scanner --------------------------------------------------------------------------------

    def scanner(self, now: Instant) -> Iterator[ScannerOrder]:
        """Yield what the scanner should do: pins first, then second looks, then the eyes' own."""
        # Few of those that are open want the scanner: only they are put in order, in every turn.
        for edition in self._in_turn(filter(self._wants_scanner, self._ready(now))):
            for order in missing(edition, self.scene(edition, now)):
                if isinstance(order, ScannerOrder):
                    yield order
        yield from self.eyes.orders(now.boot)
        yield from self.beside.reads()
        yield from self.editions.unpins.values()
        yield from self.tidy.removals()

    def _wants_scanner(self, edition: Edition) -> bool:
        return not edition.pinned or (edition.wants_look and self.is_ready)

    # The hands ----------------------------------------------------------------------------------

    def hands(self, now: Instant, notes: Notebook) -> list[Stream]:
        """Return streams of store orders: the most urgent first, equal shares among series."""
        if not self.is_ready:
            return [Stream(0, "", self._start())]
        hasty = self.ending.is_hasty
        return [
            Stream(0, "", self._start()),
            Stream(0, "", iter(self.drain.unsent)),
            Stream(0, "", self._records(now, hasty=hasty)),
            *(self._by_plan(now, notes) if hasty else self._by_series(now, notes)),
            # An edition that begins its turn wants an epoch: in this turn, not in the next.
            Stream(2, "", self._records(now, hasty=hasty)),
            Stream(3, "", self._chores(now)),
        ]

    def small(self, now: Instant, notes: Notebook) -> Iterator[HandOrder]:
        """Yield the small orders on which something that is worth the time waits: records, claims.

        They need not wait for hands that send large pieces.
        """
        if not self.is_ready:
            return
        yield from self._records(now, hasty=True)
        chosen, _ = self.drain.planner.turns(self._ready(now))
        for edition in chosen:
            order = next(self._upload(edition, now, notes), None) if edition.pinned else None
            for small in (order, *self._again(edition)):
                if isinstance(small, PutSmall | GetSmall | Begin | Finish | Stat):
                    yield small
        yield from self._records(now, hasty=True)

    def _start(self) -> Iterator[HandOrder]:
        if self.limits is None:
            yield Probe(Errand("probe"))
        elif not self.editions.catalog.is_listed:
            yield ListKeys(Errand("catalogue"), MANIFESTS)
        yield from self.editions.catalog.orders()

    def _by_series(self, now: Instant, notes: Notebook) -> list[Stream]:
        queues: dict[str, list[Edition]] = {}
        begun: set[str] = set()
        for edition in self.turns(now):
            # One edition of a name at a time: what was written again since would only slow it.
            waits = edition.checkpoint in begun and not self.ending.is_hasty
            if not edition.joint.is_waiting:
                begun.add(edition.checkpoint)
            if edition.pinned and not waits:
                queues.setdefault(edition.series, []).append(edition)
        return [
            Stream(1, series, chain.from_iterable(self._upload(e, now, notes) for e in editions))
            for series, editions in queues.items()
        ]

    def _by_plan(self, now: Instant, notes: Notebook) -> list[Stream]:
        """Return what fits in the plan's order; what is given up gets hands only after that.

        One at a time: the last pieces of one that is nearly done have the link for themselves.
        """
        chosen, given_up = self.drain.planner.turns(self._ready(now))
        turns = [edition for edition in chosen or given_up[:1] if edition.pinned]
        # What is stuck goes out again before what is less urgent, not before the edition's own.
        orders = (chain(self._upload(e, now, notes), self._again(e)) for e in turns)
        return [Stream(1, "", chain.from_iterable(orders))]

    def _again(self, edition: Edition) -> Iterator[HandOrder]:
        key = (edition.checkpoint, edition.save_id)
        return iter(self.drain.planner.again.get(key, ()))

    def _records(self, now: Instant, *, hasty: bool) -> Iterator[HandOrder]:
        assert self.limits is not None  # noqa: S101 - the caller asked
        yield from self.runs.missing(self.limits, now, hasty=hasty)
        for (_, save_id), orders in self.drain.planner.again.items():
            yield from () if save_id else orders

    def _upload(self, edition: Edition, now: Instant, notes: Notebook) -> Iterator[HandOrder]:
        if edition.number == 0 and not edition.rivals:
            self.editions.number(edition, notes)
            self.runs.of(edition.series).epoch_wanted = True
        for order in missing(edition, self.scene(edition, now)):
            if not isinstance(order, ScannerOrder):
                yield order

    def _chores(self, now: Instant) -> Iterator[HandOrder]:
        if self.ending.is_hasty and self.editions.open:
            return
        yield from self.editions.leftovers.orders()
        if not self.ending.is_hasty:
            yield from self.beside.companions.values()
            yield from self.tidy.chores(now.boot)
