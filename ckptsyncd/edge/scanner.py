"""Do what the mind wants to know of the disk: one order in, one message out."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator

from ckptsyncd.core.facts import FileFact, FileLook
from ckptsyncd.core.messages import (
    Looked,
    LookedAgain,
    Pinned,
    PointerRead,
    Report,
    Scanned,
    Unpinned,
)
from ckptsyncd.core.orders import Look, LookAgain, Pin, ReadPointer, Scan, ScannerOrder, Unpin
from ckptsyncd.core.ports import Disk
from ckptsyncd.edge.seen import words

#: A pointer names one checkpoint; more of it is not read (guessed: TensorFlow's list of all kept
#: ones has some hundred bytes each).
POINTER_BYTES = 64 * 1024


def obey(order: ScannerOrder, disk: Disk) -> Report:
    """Carry out one order and return its report; an OSError becomes the report's error.

    Pins are named by the errand's save id. A scan or look that met an error still reports all
    that it saw: what is missing from it is not known to be gone.
    """
    if isinstance(order, Scan):
        facts, error = _listed(disk, (order.path,), recursive=order.recursive)
        return Scanned(order.errand, order.path, facts, order.recursive, error)
    if isinstance(order, Look):
        return _looked(order, disk)
    if isinstance(order, Pin):
        pin = disk.copy if order.copy else disk.pin
        listing, error = pin(order.errand.save_id, order.listing)
        return Pinned(order.errand, listing, error)
    if isinstance(order, LookAgain):
        return LookedAgain(order.errand, disk.look_again(order.errand.save_id, order.listing))
    if isinstance(order, Unpin):
        return _unpinned(order, disk)
    return _pointer_read(order, disk)


def _listed(
    disk: Disk, roots: Iterable[str], *, recursive: bool = True
) -> tuple[tuple[FileFact, ...], str]:
    facts: dict[str, FileFact] = {}
    errors = [_add(facts, disk.walk(root, recursive=recursive)) for root in roots]
    return tuple(facts[path] for path in sorted(facts)), _first(errors)


def _add(facts: dict[str, FileFact], walked: Iterator[FileFact]) -> str:
    try:
        facts.update((fact.path, fact) for fact in walked)  # keeps what came before an error
    except OSError as error:
        return words(error)
    return ""


def _first(errors: Iterable[str]) -> str:
    return next(filter(None, errors), "")


def _looked(order: Look, disk: Disk) -> Looked:
    facts, error = _listed(disk, order.roots)
    answers = [_look(disk, path) for path in sorted(order.closely)]
    looks = tuple(look for look, _ in answers if look is not None)
    return Looked(order.errand, facts, looks, _first([error, *(text for _, text in answers)]))


def _look(disk: Disk, path: str) -> tuple[FileLook | None, str]:
    try:
        return disk.look(path), ""
    except OSError as error:
        return None, words(error)


def _unpinned(order: Unpin, disk: Disk) -> Unpinned:
    try:
        disk.unpin(order.errand.save_id)
    except OSError as error:
        return Unpinned(order.errand, words(error))
    return Unpinned(order.errand)


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

    def __init__(self, disk: Disk, post: Callable[[Report], object]) -> None:
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
