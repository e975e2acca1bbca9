"""The hands: each does one order with one blocking store call and posts one message.

A hand never decides, retries, sleeps or queues. Hands are daemon threads, so that a call that is
stuck in an SDK cannot hold the process past its deadline (measured: a thread pool holds it).
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any

from ckptsyncd.checksum import combined
from ckptsyncd.core import messages, orders
from ckptsyncd.core.facts import Instant
from ckptsyncd.core.messages import Answer, Failed
from ckptsyncd.core.moves import Move
from ckptsyncd.core.orders import HandOrder
from ckptsyncd.core.ports import Disk, Store, Timed
from ckptsyncd.core.records.documents import MAX_RECORD_BYTES
from ckptsyncd.core.records.manifest import MAX_MANIFEST_BYTES
from ckptsyncd.core.snapshot import Snapshot
from ckptsyncd.edge.pace import Pace, PacedDisk
from ckptsyncd.errors import CkptsyncdError, Missing, StoreError

#: A record that is larger is not one of ours.
MOST_RECORD_BYTES = max(MAX_RECORD_BYTES, MAX_MANIFEST_BYTES)

#: When waiting costs more than it saves.
HASTY = ("draining", "drained", "stopped")
#: The lowest priority that there is.
LOWEST = 19

Seconds = Callable[[], float]
Source = Disk | PacedDisk


def obey(order: HandOrder, store: Store, disk: Source, seconds: Seconds) -> Answer:
    """Do one order and return its one answer; every failure is classified, none is raised.

    ``seconds`` reads a monotonic clock, to measure how long the bytes took.
    """
    try:
        return DOERS[type(order)](order, store, disk, seconds)
    except StoreError as error:
        kind: Any = error.kind
        return Failed(
            order.errand,
            kind,
            str(error),
            error.wait_seconds,
            error.ambiguous,
            error.hint,
            error.throttled,
        )
    except CkptsyncdError as error:
        return Failed(order.errand, "never", str(error), hint=error.hint)
    except OSError as error:
        changed = error.errno in (errno.ESTALE, errno.ENOENT)
        hint = "" if changed else "look at this machine's own disk"
        return Failed(order.errand, "changed" if changed else "local", str(error), hint=hint)
    except Exception as error:  # noqa: BLE001 - a hand that ends owes its answer for ever
        text = f"{type(order).__name__}: {type(error).__name__}: {error}"
        hint = "nobody expected this of an SDK: please report it with its version"
        return Failed(order.errand, "again", text, ambiguous=True, hint=hint)


def _probe(order: orders.Probe, store: Store, *_: object) -> Answer:
    limits = store.limits
    ahead = store.clock_ahead_seconds() if isinstance(store, Timed) else None
    return messages.Probed(order.errand, limits, store.describe(), ahead)


def _begin(order: orders.Begin, store: Store, *_: object) -> Answer:
    begun = store.begin(order.key, order.size, order.piece_bytes, order.nonce)
    return messages.UploadBegun(order.errand, begun)


def _put_piece(order: orders.PutPiece, store: Store, disk: Source, seconds: Seconds) -> Answer:
    started = seconds()
    body = disk.open_piece(order.pin_id, order.listing, order.errand.path, order.piece)
    receipt = store.put_piece(order.begun, order.piece, body)
    return messages.PieceStored(order.errand, receipt, seconds() - started)


def _finish(order: orders.Finish, store: Store, _: Source, seconds: Seconds) -> Answer:
    started = seconds()
    total = combined((r.crc64nvme, r.length) for r in order.receipts)
    fact = store.finish(order.begun, order.receipts, total, create_only=order.create_only)
    return messages.ObjectStored(order.errand, fact, total, seconds() - started)


def _abandon(order: orders.Abandon, store: Store, *_: object) -> Answer:
    store.abandon(order.begun)
    return messages.UploadAbandoned(order.errand)


def _put_whole(order: orders.PutWhole, store: Store, disk: Source, seconds: Seconds) -> Answer:
    started = seconds()
    body = disk.open_piece(order.pin_id, order.listing, order.errand.path, order.piece)
    fact = store.put_whole(order.key, body, order.nonce, create_only=order.create_only)
    return messages.ObjectStored(order.errand, fact, body.crc64nvme(), seconds() - started)


def _put_small(order: orders.PutSmall, store: Store, *_: object) -> Answer:
    version = store.put_small(order.key, order.data, order.condition)
    return messages.RecordPut(order.errand, version)


def _get_small(order: orders.GetSmall, store: Store, *_: object) -> Answer:
    try:
        data, version = store.get_small(order.key, MOST_RECORD_BYTES)
    except Missing:
        return messages.RecordRead(order.errand, None, "")
    return messages.RecordRead(order.errand, data, version)


def _stat(order: orders.Stat, store: Store, disk: Source, _: Seconds) -> Answer:
    try:
        fact = store.stat(order.key)
    except Missing:
        return messages.ObjectSeen(order.errand, None)
    if order.piece is not None:
        body = disk.open_piece(order.pin_id, order.listing, order.errand.path, order.piece)
        return messages.ObjectSeen(order.errand, fact, body.crc64nvme())
    if not order.receipts:
        return messages.ObjectSeen(order.errand, fact)
    total = combined((r.crc64nvme, r.length) for r in order.receipts)
    return messages.ObjectSeen(order.errand, fact, total)


def _list_keys(order: orders.ListKeys, store: Store, *_: object) -> Answer:
    keys = tuple(fact.key for fact in store.list(order.prefix))
    return messages.KeysListed(order.errand, keys)


def _list_uploads(order: orders.ListUploads, store: Store, *_: object) -> Answer:
    return messages.UploadsListed(order.errand, tuple(store.uploads(order.prefix)))


def _delete(order: orders.Delete, store: Store, *_: object) -> Answer:
    store.delete(order.key)
    return messages.Deleted(order.errand)


def _sum(order: orders.Sum, _: Store, disk: Source, __: Seconds) -> Answer:
    body = disk.open_piece(order.pin_id, order.listing, order.errand.path, order.piece)
    return messages.Summed(order.errand, body.crc64nvme())


def _put_companion(order: orders.PutCompanion, store: Store, disk: Source, _: Seconds) -> Answer:
    data = disk.read_small(order.path, order.size * 2 + 1024)
    if data is None:
        return Failed(order.errand, "changed", f"{order.path} is gone")
    return messages.RecordPut(order.errand, store.put_small(order.key, data, None))


DOERS: dict[type, Callable[..., Answer]] = {
    orders.Probe: _probe,
    orders.Begin: _begin,
    orders.PutPiece: _put_piece,
    orders.Finish: _finish,
    orders.Abandon: _abandon,
    orders.PutWhole: _put_whole,
    orders.PutSmall: _put_small,
    orders.GetSmall: _get_small,
    orders.Stat: _stat,
    orders.ListKeys: _list_keys,
    orders.ListUploads: _list_uploads,
    orders.Delete: _delete,
    orders.Sum: _sum,
    orders.PutCompanion: _put_companion,
}


class Hands:
    """So many daemon threads that take orders and post answers.

    ``nice`` is how far their CPU priority lies below this process', until time is short: then
    others take their places, since a thread may lower its priority and mostly not raise it again.
    """

    def __init__(
        self,
        count: int,
        store: Store,
        disk: Disk,
        post: Callable[[Answer], object],
        seconds: Seconds,
        nice: int = 0,
    ) -> None:
        """Start the threads; they wait for orders until the process ends."""
        self._orders: SimpleQueue[HandOrder | None] = SimpleQueue()
        self._nice = min(os.getpriority(os.PRIO_PROCESS, 0) + nice, LOWEST) if nice else None
        self._is_hasty = False
        self._pace = Pace(seconds)
        self._work = (store, PacedDisk(disk, self._pace), seconds)
        self._post = post
        self._lock = threading.Lock()
        self._out = self._threads = 0
        for _ in range(count):
            self._add()

    def submit(self, order: HandOrder) -> None:
        """Give an order to a free hand; where all are busy there is one more from now on.

        The brain bounds them: it gives more orders than there were hands only where some wait for
        answers that may never come.
        """
        with self._lock:
            self._out += 1
            if self._out > self._threads:
                self._add()
        self._orders.put(order)

    def _add(self) -> None:
        self._threads += 1
        name = f"hand-{self._threads}"
        threading.Thread(target=self._run, args=(self._orders,), name=name, daemon=True).start()

    def set_pace(self, bytes_per_second: int | None) -> None:
        """Send at most so much from now on, all hands together; whoever waits goes on at once."""
        self._pace.set(bytes_per_second)

    def turn(self, moves: Sequence[Move], now: Instant, snapshot: Snapshot) -> None:
        """Take in one turn: hurry while the daemon drains or ends, and let others go first again.

        To be called by the thread that made the hands: new ones have its priority.
        """
        del moves, now
        is_hasty = snapshot.state in HASTY
        if is_hasty == self._is_hasty or self._nice is None:
            return
        self._is_hasty = is_hasty
        with self._lock:
            before, count = self._orders, self._threads
            self._orders, self._threads = SimpleQueue(), 0
            for _ in range(count):
                self._add()
                before.put(None)

    def _run(self, orders: SimpleQueue[HandOrder | None]) -> None:
        store, disk, seconds = self._work
        if self._nice is not None and not self._is_hasty:
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), self._nice)
        while (order := orders.get()) is not None:
            answer = obey(order, store, disk, seconds)
            with self._lock:
                self._out -= 1
            self._post(answer)
