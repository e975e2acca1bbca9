"""Is what the store holds what the manifests say? Reads, and removes nothing.

``meta`` asks the store for existence, size and its own checksum of every object; ``sample`` also
reads some of the files and ``full`` all of them, and compares their CRC64-NVME. A checkpoint whose
objects are wrong already is not read.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Literal

from ckptsyncd.core.ports import Store
from ckptsyncd.core.records import names
from ckptsyncd.core.records.documents import Verification as Record
from ckptsyncd.core.records.manifest import StoredFile
from ckptsyncd.core.words import count_words
from ckptsyncd.errors import Again, Missing, Never, NoCheckpoint, PathRefused, UsageError
from ckptsyncd.recover.catalog import Broken, Catalog, Entry, read_catalog, read_manifest
from ckptsyncd.recover.choose import fitting
from ckptsyncd.recover.crew import each
from ckptsyncd.recover.patience import Pace, not_given
from ckptsyncd.recover.request import PIECE_BYTES, WORKERS, Progress, Silence
from ckptsyncd.recover.sampling import Sample, by_chance, whole
from ckptsyncd.recover.stream import (
    OTHER_CONTENT,
    Fault,
    Gap,
    Reader,
    Span,
    fault_of,
    gaps,
)
from ckptsyncd.recover.unnamed import Unnamed, unnamed

Level = Literal["meta", "sample", "full"]

#: How many faults of one checkpoint are told (guessed: the first says it all).
_MOST_FAULTS = 20


@dataclass(frozen=True, slots=True)
class VerifyRequest:
    """What to verify (``NAME`` or ``NAME@EDITION``; all where ``None``) and how closely.

    At level ``sample`` random pieces are read until ``percent`` of the bytes of each checkpoint are
    together; the same ``seed`` chooses the same ones.
    """

    checkpoint: str | None = None
    level: Level = "meta"
    percent: float = 5.0
    seed: int = 0
    workers: int = WORKERS
    piece_bytes: int = PIECE_BYTES


#: What is said of a store without any checkpoint.
NOTHING = "there is no checkpoint in the store"


@dataclass(frozen=True, slots=True)
class Verified:
    """What was found out about one edition. It is whole where there are no faults.

    ``bytes_read`` were read and compared; what another edition shares is read once.
    """

    checkpoint: str
    edition: int
    files: int
    bytes: int
    bytes_read: int
    faults: tuple[Fault, ...]

    @property
    def title(self) -> str:
        """The name by which a user asks for exactly this edition."""
        return f"{self.checkpoint}@{self.edition}"


@dataclass(frozen=True, slots=True)
class Verification:
    """What was found out about all that were meant, newest first.

    ``unnamed``: what nobody names, where everything was meant.
    """

    level: Level
    results: tuple[Verified, ...]
    unnamed: Unnamed | None = None

    @property
    def exit_code(self) -> int:
        """0: all are whole, 1: some are not, 3: none is there, 4: none is whole."""
        if not self.results:
            return NoCheckpoint.exit_code
        broken = sum(1 for result in self.results if result.faults)
        if not broken:
            return 0
        return 1 if broken < len(self.results) else 4


def verify(
    store: Store, request: VerifyRequest, progress: Progress | None = None, pace: Pace | None = None
) -> Verification:
    """Compare the store with its manifests.

    Raises UsageError where the name fits none, NoCheckpoint where there is none at all, StoreError
    where the store does not answer after bounded retries: that is never counted as broken. Where it
    answers, gave other bytes, and does not give those of a file, that file is broken.
    """
    progress = progress or Silence()
    pace = (pace or Pace()).telling(progress.said)
    catalog = read_catalog(store, pace)
    entries, broken = _meant(catalog, request.checkpoint)
    judge = Judge(store, request, progress, pace)
    results = tuple(chain(map(judge.unreadable, broken), map(judge.result, entries)))
    judge.end()
    left = unnamed(store, catalog, pace) if request.checkpoint is None else None
    return Verification(request.level, results, left)


def record(store: Store, found: Verification, wall: float) -> None:
    """Leave in the store when everything was verified, for the daemon's status and metrics.

    Raises StoreError where the credentials may only read.
    """
    broken = sum(1 for result in found.results if result.faults)
    whole = len(found.results) - broken
    made = Record(found.level, wall, whole, broken, socket.gethostname())
    store.put_small(names.VERIFIED, made.encode(), None)


def words(result: Verified) -> str:
    """Say how it is with one edition."""
    if not result.faults:
        return "whole"
    first = result.faults[0]
    more = f" and {len(result.faults) - 1} more" if len(result.faults) > 1 else ""
    return f"broken: {first.path!r}: {first.reason}{more}"


def _meant(catalog: Catalog, name: str | None) -> tuple[tuple[Entry, ...], tuple[Broken, ...]]:
    if name is None and not catalog.entries and not catalog.unreadable:
        return (), ()
    if not catalog.entries and not catalog.unreadable:
        raise NoCheckpoint(NOTHING)
    entries, broken = fitting(catalog, name)
    unreadable = tuple(one for one in broken if not one.pruned)
    if not entries and not unreadable:
        msg = f"the store has no checkpoint {name!r}"
        raise UsageError(msg, hint="see 'ckptsyncd list URL'")
    return entries, unreadable


class Judge:
    """Looks at one edition after the other."""

    def __init__(
        self, store: Store, request: VerifyRequest, progress: Progress, pace: Pace
    ) -> None:
        """Look at nothing yet."""
        self._store = store
        self._request = request
        self._progress = progress
        self._pace = pace
        self._checkpoint = ""
        self._sound: set[tuple[str, int, int]] = set()
        self._kept: list[Again] = []
        self._heard = False

    def unreadable(self, broken: Broken) -> Verified:
        """Return the verdict on a manifest that cannot be read."""
        fault = Fault(broken.key, broken.reason)
        return Verified(broken.checkpoint, broken.edition, 0, 0, 0, (fault,))

    def result(self, entry: Entry) -> Verified:
        """Return the verdict on one edition."""
        verdict = Verified(entry.checkpoint, entry.edition, entry.files, entry.bytes, 0, ())
        try:
            manifest = read_manifest(self._store, entry.key, self._pace)
        except (Missing, Never, PathRefused) as error:
            return replace(verdict, faults=(Fault(entry.key, str(error)),))
        if entry.checkpoint != self._checkpoint:
            self._checkpoint, self._sound = entry.checkpoint, set()
        files = [stored for stored in manifest.files if stored.kind == "file"]
        if faults := self._meta(files):
            return replace(verdict, faults=_sorted(faults))
        read = [s for s in self._chosen(entry, files) if s.identity not in self._sound]
        faults = self._content(entry.title, read)
        self._sound |= {sample.identity for sample in read} if not faults else set()
        total = sum(sample.gap.length for sample in read)
        return replace(verdict, bytes_read=total, faults=_sorted(faults))

    def _chosen(self, entry: Entry, files: Sequence[StoredFile]) -> tuple[Sample, ...]:
        request = self._request
        if request.level == "sample":
            return by_chance(entry.title, files, request.percent, request.seed)
        return whole(files) if request.level == "full" else ()

    def _meta(self, files: Sequence[StoredFile]) -> list[Fault]:
        stop = threading.Event()
        pace = replace(self._pace, stop=stop)
        found = each(
            files, lambda stored: fault_of(self._store, stored, pace), self._request.workers, stop
        )
        return [fault for fault in found if fault]

    def _content(self, title: str, samples: Sequence[Sample]) -> list[Fault]:
        """Read the samples in pieces, several at a time, and compare."""
        if samples:
            count = len({sample.stored.path for sample in samples})
            self._progress.said(f"reading {count_words(count, 'file')} of {title}")
            self._progress.began(count, sum(sample.gap.length for sample in samples), 0)
        stop = threading.Event()
        pace = replace(self._pace, stop=stop)
        reader = Reader(self._store, pace, self._moved)
        faults: dict[str, Fault] = {}
        before = len(self._kept)

        def read(job: tuple[int, Gap]) -> tuple[int, Span | Fault]:
            stored = samples[job[0]].stored
            if known := faults.get(stored.path):
                return job[0], known
            try:
                return job[0], reader.read(stored, job[1], _ignored)
            except Again as error:
                return job[0], self._not_given(stored, error, pace)

        spans: list[list[Span]] = [[] for _ in samples]
        for number, found in each(self._jobs(samples), read, self._request.workers, stop):
            if isinstance(found, Fault):
                faults[samples[number].stored.path] = found
            else:
                spans[number].append(found)
        for sample, found_spans in zip(samples, spans, strict=True):
            path = sample.stored.path
            if path not in faults and not sample.matches(found_spans):
                faults[path] = Fault(path, OTHER_CONTENT)
        if before and len(self._kept) > before:
            self.end()
        return list(faults.values())

    def end(self) -> None:
        """Raise what the store answered if it gave nothing at all: then it is no file's fault."""
        if self._kept and not self._heard:
            raise self._kept[0]

    def _moved(self, length: int) -> None:
        self._heard = True
        self._progress.moved(length)

    def _not_given(self, stored: StoredFile, error: Again, pace: Pace) -> Fault:
        """Return what is wrong with a file that is not given; raises where the store is silent."""
        fault = fault_of(self._store, stored, pace)
        self._kept.append(error)
        return fault or Fault(stored.path, not_given(error))

    def _jobs(self, samples: Sequence[Sample]) -> Iterator[tuple[int, Gap]]:
        """Yield the ranges to read, each with the number of its sample."""
        for number, sample in enumerate(samples):
            start = sample.gap.offset
            for gap in gaps(start, start + sample.gap.length, self._request.piece_bytes):
                yield number, gap


def _ignored(_offset: int, _data: bytes) -> None:
    """Do nothing with a block: its checksum is what counts."""


def _sorted(faults: list[Fault]) -> tuple[Fault, ...]:
    return tuple(sorted(faults, key=lambda fault: fault.path)[:_MOST_FAULTS])
