"""Do what the mind wants to know of the disk: one order in, one message out."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

from ckptsyncd.core.facts import FileFact, FileLook
from ckptsyncd.core.messages import (
    Discarded,
    Failed,
    Looked,
    LookedAgain,
    Pinned,
    PointerRead,
    Report,
    Scanned,
    Unpinned,
)
from ckptsyncd.core.orders import (
    Discard,
    Look,
    LookAgain,
    Pin,
    ReadPointer,
    Scan,
    ScannerOrder,
    Unpin,
)
from ckptsyncd.core.ports import Disk
from ckptsyncd.edge.listings import Facts
from ckptsyncd.edge.seen import words

#: A pointer names one checkpoint; more of it is not read (guessed: TensorFlow's list of all kept
#: ones has some hundred bytes each).
POINTER_BYTES = 64 * 1024


def obey(order: ScannerOrder, disk: Disk) -> Report | Failed:
    """Carry out one order and return its report; an OSError becomes words in it.

    Pins are named by the errand's save id. A look that could not see everything is no look: it
    ``Failed``, for what it did not see may be a part of the checkpoint. A scan reports what it saw.
    """
    if isinstance(order, Scan):
        return _scanned(order, disk)
    if isinstance(order, Look):
        return _looked(order, disk)
    if isinstance(order, Pin):
        pin = disk.copy if order.copy else disk.pin
        listing, error = pin(order.errand.save_id, order.listing)
        return Pinned(order.errand, listing, error)
    if isinstance(order, LookAgain):
        return LookedAgain(order.errand, disk.look_again(order.errand.save_id, order.listing))
    if isinstance(order, Unpin | Discard):
        return _unpinned(order, disk) if isinstance(order, Unpin) else _discarded(order, disk)
    return _pointer_read(order, disk)


def _scanned(order: Scan, disk: Disk) -> Scanned:
    """List a tree. A part of it that may not be read is left out, no error.

    Who watches has told it, and a look at a checkpoint that has such a part fails.
    """
    facts = Facts()
    error = ""
    try:
        facts.take(disk.walk(order.path, recursive=order.recursive))
    except PermissionError as trouble:
        error = "" if any(fact.path != order.path for fact in facts) else words(trouble)
    except OSError as trouble:
        error = words(trouble)
    return Scanned(order.errand, order.path, facts, order.recursive, error)


def _looked(order: Look, disk: Disk) -> Looked | Failed:
    facts: dict[str, FileFact] = {}
    looks: list[FileLook] = []
    try:
        for root in order.roots:
            _add(facts, disk, root)
        for path in sorted(order.closely):
            look = disk.look(path)
            if look is not None:
                looks.append(look)
                # It is the newer, and one that is kept in its stead is not kept beside it.
                facts[look.fact.path] = look.fact
    except OSError as trouble:
        return Failed(order.errand, "local", words(trouble))
    return Looked(order.errand, _sorted(facts), tuple(looks))


def _add(facts: dict[str, FileFact], disk: Disk, path: str) -> None:
    """Add everything below a path."""
    for fact in disk.walk(path, recursive=True):
        facts[fact.path] = fact


def _sorted(facts: dict[str, FileFact]) -> tuple[FileFact, ...]:
    return tuple(facts[path] for path in sorted(facts))


def _unpinned(order: Unpin, disk: Disk) -> Unpinned:
    try:
        disk.unpin(order.errand.save_id)
    except OSError as error:
        return Unpinned(order.errand, words(error))
    return Unpinned(order.errand)


def _discarded(order: Discard, disk: Disk) -> Discarded:
    return Discarded(order.errand, disk.discard(order.listing))


def _pointer_read(order: ReadPointer, disk: Disk) -> PointerRead:
    try:
        fact = next(iter(disk.walk(order.path, recursive=False)), None)
        if fact is None or fact.kind == "directory":
            return PointerRead(order.errand, fact.kind if fact else "", None)
        if fact.kind == "symlink":
            return PointerRead(order.errand, fact.kind, fact.target)
        data = disk.read_small(order.path, POINTER_BYTES)
    except OSError as error:
        return PointerRead(order.errand, "", None, words(error))
    text = None if data is None else data.decode("utf-8", "surrogateescape")
    return PointerRead(order.errand, fact.kind, text)


class Scanner:
    """A daemon thread that obeys one order after the other and posts the reports."""

    def __init__(self, disk: Disk, post: Callable[[Report | Failed], object]) -> None:
        """Do not start yet."""
        self._disk = disk
        self._post = post
        self._orders: queue.SimpleQueue[ScannerOrder | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="scanner", daemon=True)

    def start(self) -> None:
        """Begin to obey."""
        self._thread.start()

    def submit(self, order: ScannerOrder) -> None:
        """Put one order in line; its report will be posted."""
        self._orders.put(order)

    def stop(self, wait_seconds: float = 5.0) -> None:
        """Obey what is in line and end; return after ``wait_seconds`` even if the disk hangs."""
        self._orders.put(None)
        self._thread.join(wait_seconds)

    def _run(self) -> None:
        while (order := self._orders.get()) is not None:
            self._post(obey(order, self._disk))
