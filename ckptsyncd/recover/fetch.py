"""Bytes from the store into staging: several ranged reads at a time, checked while they arrive."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from ckptsyncd.core.ports import Store
from ckptsyncd.core.records.manifest import StoredFile
from ckptsyncd.recover.assembly import Assembly
from ckptsyncd.recover.crew import each
from ckptsyncd.recover.patience import Pace
from ckptsyncd.recover.readers import Readers
from ckptsyncd.recover.request import Progress, RestoreRequest
from ckptsyncd.recover.staging import Staging
from ckptsyncd.recover.stream import OTHER_CONTENT, Fault, Gap, Reader, Span


@dataclass(frozen=True, slots=True)
class Fetched:
    """How much came, how much was there, what is not whole, whose mtime this disk cannot keep."""

    bytes: int
    resumed_bytes: int
    fault: Fault | None
    coarse: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Done:
    """A piece is there. ``coarse``: the file's mtime is not kept exactly."""

    fault: Fault | None = None
    coarse: str = ""


def fetch(
    store: Store,
    files: Sequence[StoredFile],
    staging: Staging,
    request: RestoreRequest,
    progress: Progress,
    pace: Pace,
) -> Fetched:
    """Bring every file into staging, whole and checked, or say which one cannot be.

    Raises StoreError where the store does not answer after bounded retries, OSError for our disk.
    """
    assemblies = [Assembly(staging, stored) for stored in files]
    resumed = sum(each(assemblies, Assembly.prepare, request.workers, threading.Event()))
    progress.began(len(files), sum(stored.size for stored in files), resumed)
    stop = threading.Event()
    readers = Readers(request.workers, pace.clock)
    fetcher = _Fetcher(store, progress, replace(pace, stop=stop), readers)
    jobs = ((a, gap) for a in assemblies for gap in a.gaps(request.piece_bytes))
    coarse: list[str] = []
    for done in each(jobs, fetcher.fill, request.workers, stop, readers.wanted):
        coarse += [done.coarse] if done.coarse else []
        if done.fault:
            return Fetched(fetcher.bytes, resumed, done.fault, tuple(coarse))
    return Fetched(fetcher.bytes, resumed, None, tuple(sorted(coarse)))


class _Fetcher:
    """Fills gaps, from several threads."""

    def __init__(self, store: Store, progress: Progress, pace: Pace, readers: Readers) -> None:
        self.bytes = 0
        self._readers = readers
        self._progress = progress
        self._pace = pace
        self._lock = threading.Lock()
        self._reader = Reader(store, pace, self._count)

    def fill(self, job: tuple[Assembly, Gap]) -> _Done:
        """Fetch one piece, and finish its file if it was the last."""
        assembly, gap = job
        with self._readers.reading(gap.length):
            return self._filled(assembly, gap)

    def _filled(self, assembly: Assembly, gap: Gap) -> _Done:
        span = self._piece(assembly, gap)
        if isinstance(span, Fault):
            return _Done(span)
        if self._pace.stop.is_set() or not assembly.note(span):
            return _Done()
        return self._finish(assembly)

    def _finish(self, assembly: Assembly) -> _Done:
        """Check the whole file; one that is wrong is fetched once more before it is called so."""
        stored = assembly.stored
        if not assembly.is_whole():
            assembly.forget()
            again = self._piece(assembly, Gap(0, stored.size))
            if isinstance(again, Fault):
                return _Done(again)
            assembly.note(again)
            if not assembly.is_whole():
                assembly.forget()
                return _Done(Fault(stored.path, OTHER_CONTENT))
        return _Done(coarse="" if assembly.settle() else stored.path)

    def _piece(self, assembly: Assembly, gap: Gap) -> Span | Fault:
        with assembly.opened() as handle:
            span = self._reader.read(assembly.stored, gap, partial(assembly.put, handle))
            assembly.send_off(handle, gap)
            return span

    def _count(self, length: int) -> None:
        with self._lock:
            self.bytes += length
        self._progress.moved(length)
