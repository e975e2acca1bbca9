"""Who does what now: orders for scanner and hands, never more than they can do at once.

Nothing waits in a queue that could not be reordered: what is not handed out now is wished for again
in the next turn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from ckptsyncd.core.editions import Editions
from ckptsyncd.core.eyes import Eyes
from ckptsyncd.core.facts import Instant
from ckptsyncd.core.orders import Errand, HandOrder, Look, Order, Scan
from ckptsyncd.core.outstanding import Out, Outstanding
from ckptsyncd.core.planner import Planner
from ckptsyncd.core.turn import Notebook
from ckptsyncd.core.wishes import Wishes

#: So many orders may be with the scanner at once (guessed: it is one thread, and a pin must not
#: wait behind many looks).
SCANNER_SLOTS = 4

#: So many more orders than there are hands may be out while that many seem to be stuck (guessed).
SPARE_HANDS = 2


@dataclass(slots=True)
class Foreman:
    """Hands out what the parts of the mind wish for, most urgent first."""

    wishes: Wishes
    outstanding: Outstanding
    planner: Planner
    eyes: Eyes
    editions: Editions

    def scanner_orders(self, now: Instant) -> Iterator[Order]:
        """Yield what the scanner is to do next."""
        busy = self.outstanding.with_scanner()
        for order in self.wishes.scanner(now):
            if busy >= SCANNER_SLOTS:
                return
            if self.outstanding.is_free(order.errand, now.boot):
                busy += 1
                self.outstanding.give(order, now.boot)
                if isinstance(order, Scan | Look):
                    self.eyes.ordered(order)
                yield order

    def hand_orders(self, now: Instant, notes: Notebook, *, hasty: bool) -> Iterator[Order]:
        """Yield what free hands are to do next; with haste also what seems to be stuck, again."""
        busy = list(self.outstanding.with_hands())
        stuck = list(self.planner.stuck(now.boot)) if hasty else []
        # Whoever waits for an answer that may never come does not count, up to a bound.
        free = self.wishes.policy.hands - len(busy) + min(len(stuck), SPARE_HANDS)
        if free <= 0:
            return
        for order in islice(self._wanted(busy, now, notes), free):
            free -= 1
            self._hand_out(order, now, notes)
            yield order
        for order in islice(self.outstanding.again(stuck), free):
            self._hand_out(order, now, notes)
            yield order

    def _wanted(self, busy: Iterable[Out], now: Instant, notes: Notebook) -> Iterator[HandOrder]:
        """Yield what hands could do now, most urgent first, equal shares among series."""
        shares = Counter(self.editions.series_of(out.order.errand) for out in busy)
        streams = self.wishes.hands(now, notes)
        is_free = self.outstanding.is_free
        while streams:
            stream = min(streams, key=lambda s: (s.urgency, shares[s.series]))
            order = next((o for o in stream.orders if is_free(o.errand, now.boot)), None)
            if order is None:
                streams.remove(stream)
            else:
                shares[stream.series] += 1
                yield order

    def _hand_out(self, order: HandOrder, now: Instant, notes: Notebook) -> None:
        self.outstanding.give(order, now.boot)
        errand = order.errand
        edition = self.editions.open.get((errand.checkpoint, errand.save_id))
        if edition is not None:
            edition.parked_until = None
            self.editions.before(order, edition, notes)
            note_state(self.editions, errand, notes)


def note_state(editions: Editions, errand: Errand, notes: Notebook) -> None:
    """Let an edition's state say how far it is."""
    edition = editions.open.get((errand.checkpoint, errand.save_id))
    if edition is None or not edition.began or edition.parked_until is not None:
        return
    sealing = edition.claimed == "yes" and not edition.files
    notes.moved(edition, "sealing" if sealing else "uploading")
