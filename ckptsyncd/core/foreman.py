"""Who does what now: orders for scanner and hands, never more than they can do at once.

Nothing waits in a queue that could not be reordered: what is not handed out now is wished for again
in the next turn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from ckptsyncd.core.draining.planner import Planner
from ckptsyncd.core.facts import Instant
from ckptsyncd.core.orders import Begin, Errand, HandOrder, Look, Order, PutWhole, Scan
from ckptsyncd.core.seeing.eyes import Eyes
from ckptsyncd.core.sending.editions import Editions
from ckptsyncd.core.sending.outstanding import Outstanding
from ckptsyncd.core.sending.silence import Silence
from ckptsyncd.core.turn import Notebook
from ckptsyncd.core.wishes import Wishes

#: So many orders may be with the scanner at once (guessed: it is one thread, and a pin must not
#: wait behind many looks).
SCANNER_SLOTS = 4

#: Against a deadline so many more orders than there are hands may be out (guessed): as many as seem
#: to be stuck, and small ones on which everything waits, such as a manifest.
SPARE_HANDS = 2


@dataclass(slots=True)
class Foreman:
    """Hands out what the parts of the mind wish for, most urgent first."""

    wishes: Wishes
    outstanding: Outstanding
    planner: Planner
    eyes: Eyes
    editions: Editions
    silence: Silence = field(default_factory=Silence)

    def scanner_orders(self, now: Instant) -> Iterator[Order]:
        """Yield what the scanner is to do next."""
        busy = self.outstanding.with_scanner()
        for order in self.wishes.scanner(now):
            if busy >= SCANNER_SLOTS:
                return
            if self.outstanding.is_free(order.errand, now.boot):
                busy += 1
                given = self.outstanding.give(order, now.boot)
                if isinstance(given, Scan | Look):
                    self.eyes.ordered(given)
                yield given

    def hand_orders(self, now: Instant, notes: Notebook, *, hasty: bool) -> Iterator[Order]:
        """Yield what free hands are to do next; with haste also what seems to be stuck, again."""
        self._listen(now, notes, hasty=hasty)
        self.outstanding.answered = 0
        if self.outstanding.throttle.is_resting(now.boot):
            return
        self.outstanding.crew.steady(now.boot, on=hasty)
        hands, busy = self.outstanding.hands, self.outstanding.busy
        stuck = self.planner.find_stuck(now.boot) if hasty else 0
        # Whoever waits for an answer that may never come does not count, up to a bound.
        free = hands - busy + min(stuck, SPARE_HANDS)
        spare = hands - busy + SPARE_HANDS
        orders = self._wanted(now, notes)
        if hasty and free <= 0:
            free, orders = spare, self._free_ones(self.wishes.small(now, notes), now)
        given = [self._hand_out(order, now, notes) for order in islice(orders, max(free, 0))]
        self._go_past(given)
        yield from given

    def _listen(self, now: Instant, notes: Notebook, *, hasty: bool) -> None:
        out = self.outstanding.out.values()
        planner, boot = self.planner, now.boot
        self.silence.listen(
            out, lambda: planner.speed(boot).hand_bytes_per_second, boot, notes, hasty=hasty
        )

    def _go_past(self, given: Iterable[HandOrder]) -> None:
        """Let the files that go out whole be wished for last: each turn looks at the others first.

        With thousands of small files and many hands most of a turn went into what is out already.
        """
        for order in given:
            errand = order.errand
            edition = self.editions.open.get((errand.checkpoint, errand.save_id))
            if isinstance(order, PutWhole) and edition is not None and errand.path in edition.files:
                edition.files[errand.path] = edition.files.pop(errand.path)

    def _free_ones(self, orders: Iterable[HandOrder], now: Instant) -> Iterator[HandOrder]:
        return (order for order in orders if self.outstanding.is_free(order.errand, now.boot))

    def _wanted(self, now: Instant, notes: Notebook) -> Iterator[HandOrder]:
        """Yield what hands could do now, most urgent first, equal shares among series."""
        busy = self.outstanding.with_hands()
        shares = Counter(self.editions.series_of(out.order.errand) for out in busy)
        streams = self.wishes.hands(now, notes)
        while streams:
            stream = min(streams, key=lambda s: (s.urgency, shares[s.series]))
            order = next(self._free_ones(stream.orders, now), None)
            if order is None:
                streams.remove(stream)
            else:
                shares[stream.series] += 1
                yield order

    def _hand_out(self, order: HandOrder, now: Instant, notes: Notebook) -> HandOrder:
        given = self.outstanding.give(order, now.boot)
        if isinstance(given, Begin) and given.errand.attempt:
            # Both attempts may begin one, and this process may not live to hear of it.
            self.editions.leftovers.look_for_stray(given.key, notes)
        errand = order.errand
        edition = self.editions.open.get((errand.checkpoint, errand.save_id))
        if edition is not None:
            edition.parked_until = None
            self.editions.before(order, edition, notes)
            note_state(self.editions, errand, notes)
        return given


def note_state(editions: Editions, errand: Errand, notes: Notebook) -> None:
    """Let an edition's state say how far it is."""
    edition = editions.open.get((errand.checkpoint, errand.save_id))
    if edition is None or not edition.began or edition.parked_until is not None:
        return
    sealing = edition.claimed == "yes" and not (edition.files or edition.source)
    notes.moved(edition, "sealing" if sealing else "uploading", edition.joint.reason)
