"""The wiring of a prune in the daemon: the command's own work on a thread beside the hands.

When and whether is decided by the mind; what goes, by ``core.rules.retention``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ckptsyncd.core.messages import Message, Pruned, PruneEnded
from ckptsyncd.core.orders import HoldPrune, Prune
from ckptsyncd.core.ports import Store
from ckptsyncd.errors import CkptsyncdError, NoCheckpoint
from ckptsyncd.recover.catalog import Entry
from ckptsyncd.recover.patience import Pace
from ckptsyncd.recover.prune import Pruned as Outcome
from ckptsyncd.recover.prune import PruneRequest, tidy


@dataclass(slots=True)
class Tidied:
    """One prune at a time, in a daemon thread: a store that hangs holds nobody's exit."""

    store: Store
    post: Callable[[Message], None]
    stop: threading.Event = field(default_factory=threading.Event)

    def doers(self) -> Mapping[type, Callable[[Any], object]]:
        """Return who carries out the mind's orders about a prune."""
        return {Prune: self.begin, HoldPrune: self.hold}

    def begin(self, order: Prune) -> None:
        """Begin; what goes is posted as it goes, and the end."""
        self.stop = threading.Event()
        stop = self.stop
        threading.Thread(
            target=lambda: self.post(self._done(order, stop)), name="prune", daemon=True
        ).start()

    def hold(self, order: HoldPrune) -> None:
        """Let it end before its next removal."""
        del order
        self.stop.set()

    def _done(self, order: Prune, stop: threading.Event) -> PruneEnded:
        request = PruneRequest(
            order.rules,
            grace_seconds=order.grace_seconds,
            per_second=order.per_second,
            reaps=order.reaps,
        )
        try:
            done = tidy(self.store, request, pace=Pace(stop=stop), buried=self._buried)
        except NoCheckpoint:
            return PruneEnded(order.number)
        except CkptsyncdError as error:
            return PruneEnded(order.number, error=str(error), interrupted=stop.is_set())
        return _ended(order.number, done)

    def _buried(self, entry: Entry) -> None:
        self.post(Pruned(entry.checkpoint, entry.edition))


def _ended(number: int, done: Outcome) -> PruneEnded:
    return PruneEnded(
        number,
        pruned=len(done.buried),
        objects=done.cleared.objects + done.reaped.objects,
        uploads=done.reaped.uploads,
        waiting=bool(done.buried or done.cleared.waiting or done.cleared.held),
        interrupted=done.interrupted,
    )
