"""Bytes of one stored file, read with patience, and what the store says where they do not come.

A transport error is tried again from the byte where it broke off, and is never taken for a broken
checkpoint; a missing, shorter or different object is never taken for a transport error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ckptsyncd.checksum import combined, crc64nvme
from ckptsyncd.core.ports import Store
from ckptsyncd.core.records.manifest import StoredFile
from ckptsyncd.errors import Again, Missing, Never
from ckptsyncd.recover.patience import Pace, patiently, pause_after


@dataclass(frozen=True, slots=True)
class Gap:
    """Bytes of one file that are to be read."""

    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes of one file that were read, and their CRC64-NVME."""

    offset: int
    length: int
    crc64nvme: int


@dataclass(frozen=True, slots=True)
class Fault:
    """A file of a checkpoint that is not in the store as the manifest says, and why."""

    path: str
    reason: str


Sink = Callable[[int, bytes], None]


@dataclass(slots=True)
class _Reading:
    """How far one gap is, the checksum so far, and the failures in a row."""

    at: int
    end: int
    checksum: int = 0
    attempts: int = 0


class Reader:
    """Reads gaps of stored files, from several threads; ``heard`` is told of every block's size."""

    def __init__(self, store: Store, pace: Pace, heard: Callable[[int], None]) -> None:
        """Read from ``store`` until the pace's ``stop``."""
        self._store = store
        self._pace = pace
        self._heard = heard

    def read(self, stored: StoredFile, gap: Gap, sink: Sink) -> Span | Fault:
        """Give the bytes of a gap to ``sink`` (offset, block); return what came.

        That is all of the gap, unless the work was stopped. Raises StoreError where the store does
        not answer after bounded retries, and whatever ``sink`` raises.
        """
        reading = _Reading(gap.offset, gap.offset + gap.length)
        while reading.at < reading.end and not self._pace.stop.is_set():
            if fault := self._attempt(stored, reading, sink):
                return fault
        return Span(gap.offset, reading.at - gap.offset, reading.checksum)

    def _attempt(self, stored: StoredFile, reading: _Reading, sink: Sink) -> Fault | None:
        """Read on as far as the store answers; rest after a failure that may go away."""
        try:
            for data in self._blocks(stored, reading.at, reading.end):
                sink(reading.at, data)
                reading.checksum = crc64nvme(data, reading.checksum)
                reading.at += len(data)
                reading.attempts = 0
            return self._ended_early(stored) if reading.at < reading.end else None
        except Again as error:
            self._rest(error, reading)
            return None
        except (Missing, Never):
            if fault := fault_of(self._store, stored, self._pace):
                return fault
            raise

    def _blocks(self, stored: StoredFile, at: int, end: int) -> Iterator[bytes]:
        """Yield the bytes of a range, never more than were asked for."""
        for data in self._store.read_range(stored.key, at, end - at):
            if self._pace.stop.is_set():
                return
            if block := data[: end - at]:
                at += len(block)
                self._heard(len(block))
                yield block

    def _rest(self, error: Again, reading: _Reading) -> None:
        """Rest before the next attempt; raises the error where it is enough."""
        reading.attempts += 1
        pause = pause_after(error, reading.attempts, self._pace.draw())
        if pause is None:
            raise error
        self._pace.pause(pause)

    def _ended_early(self, stored: StoredFile) -> Fault | None:
        """Return what is wrong with the object; Again where nothing is: another attempt."""
        if self._pace.stop.is_set():
            return None
        if fault := fault_of(self._store, stored, self._pace):
            return fault
        msg = f"the bytes of {stored.key!r:.200} ended early"
        raise Again(msg)


def gaps(start: int, end: int, piece_bytes: int) -> Iterator[Gap]:
    """Yield the bytes from ``start`` to ``end`` in pieces."""
    for at in range(start, end, piece_bytes):
        yield Gap(at, min(piece_bytes, end - at))


def adds_up(stored: StoredFile, spans: list[Span]) -> bool:
    """Return whether pieces together have the size and the checksum that the manifest says."""
    return covers(stored.size, stored.crc64nvme, spans)


def covers(size: int, crc64nvme: int, spans: list[Span]) -> bool:
    """Return whether pieces together have this size and this checksum."""
    ordered = sorted(spans, key=lambda span: span.offset)
    checksum = combined((span.crc64nvme, span.length) for span in ordered)
    return sum(span.length for span in ordered) == size and checksum == crc64nvme


def fault_of(store: Store, stored: StoredFile, pace: Pace) -> Fault | None:
    """Return what the store itself says is wrong with a file: missing, other size, checksum."""
    try:
        fact = patiently(lambda: store.stat(stored.key), pace)
    except Missing:
        return Fault(stored.path, "its object is missing")
    if fact.size != stored.size:
        return Fault(stored.path, f"its object has {fact.size} bytes, not {stored.size}")
    if fact.crc64nvme is not None and fact.crc64nvme != stored.crc64nvme:
        return Fault(stored.path, "the store's checksum of it is another one (CRC64-NVME)")
    return None


OTHER_CONTENT = "its content is not what was stored (CRC64-NVME)"
