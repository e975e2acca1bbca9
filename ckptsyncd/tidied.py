"""The wiring of what is done beside the hands: pruning, and serving a second destination.

When and whether is decided by the mind; what goes, by ``core.rules.retention``. Each is the work of
a command, on a thread of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ckptsyncd.core.facts import Instant
from ckptsyncd.core.messages import Message, MirrorEnded, Pruned, PruneEnded
from ckptsyncd.core.orders import HoldMirror, HoldPrune, Mirror, Prune
from ckptsyncd.core.ports import Store
from ckptsyncd.destination import store_at
from ckptsyncd.errors import CkptsyncdError, PolicyRefused
from ckptsyncd.recover.catalog import Entry
from ckptsyncd.recover.mirror import mirror
from ckptsyncd.recover.patience import Pace
from ckptsyncd.recover.prune import Pruned as Outcome
from ckptsyncd.recover.prune import PruneRequest, tidy
from ckptsyncd.residence import admitted
from ckptsyncd.settings import Settings


def second(
    settings: Settings,
    environment: Mapping[str, str],
    now: Callable[[], Instant],
    refused: Callable[[PolicyRefused], object],
) -> Store | None:
    """Return the second destination, under the same rules as the first; PolicyRefused."""
    if not settings.also:
        return None
    return admitted(store_at(settings.also, settings), settings, environment, now, refused)


@dataclass(slots=True)
class Tidied:
    """One prune at a time, in a daemon thread: a store that hangs holds nobody's exit."""

    store: Store
    post: Callable[[Message], None]
    also: Store | None = None
    nonce: str = ""
    stop: threading.Event = field(default_factory=threading.Event)
    stop_mirror: threading.Event = field(default_factory=threading.Event)

    def doers(self) -> Mapping[type, Callable[[Any], object]]:
        """Return who carries out the mind's orders about a prune."""
        return {
            Prune: self.begin,
            HoldPrune: self.hold,
            Mirror: self.begin_mirror,
            HoldMirror: self.hold_mirror,
        }

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

    def begin_mirror(self, order: Mirror) -> None:
        """Begin to serve the second destination; its end is posted."""
        self.stop_mirror = threading.Event()
        stop = self.stop_mirror
        threading.Thread(
            target=lambda: self.post(self._mirrored(order, stop)), name="mirror", daemon=True
        ).start()

    def hold_mirror(self, order: HoldMirror) -> None:
        """Let it end before its next piece."""
        del order
        self.stop_mirror.set()

    def _mirrored(self, order: Mirror, stop: threading.Event) -> MirrorEnded:
        if self.also is None:
            return MirrorEnded(order.number)
        try:
            done = mirror(self.store, self.also, f"{self.nonce}.{order.number}", Pace(stop=stop))
        except CkptsyncdError as error:
            return MirrorEnded(order.number, error=str(error), interrupted=stop.is_set())
        return MirrorEnded(
            order.number,
            copied=len(done.copied),
            bytes=done.bytes,
            behind=done.behind + len(done.skipped),
            interrupted=stop.is_set(),
            error=f"{done.skipped[0].title}: {done.skipped[0].reason}" if done.skipped else "",
        )

    def _done(self, order: Prune, stop: threading.Event) -> PruneEnded:
        request = PruneRequest(
            order.rules,
            grace_seconds=order.grace_seconds,
            per_second=order.per_second,
            reaps=order.reaps,
        )
        try:
            done = tidy(self.store, request, pace=Pace(stop=stop), buried=self._buried)
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
