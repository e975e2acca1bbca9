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
from random import Random
from typing import Literal

from ckptsyncd.core.ports import Store
from ckptsyncd.core.records import names
from ckptsyncd.core.records.documents import Verification as Record
from ckptsyncd.core.records.manifest import StoredFile
from ckptsyncd.core.words import count_words
from ckptsyncd.errors import Missing, Never, NoCheckpoint, PathRefused, UsageError
from ckptsyncd.recover.catalog import Broken, Catalog, Entry, read_catalog, read_manifest
from ckptsyncd.recover.choose import fitting
from ckptsyncd.recover.crew import each
from ckptsyncd.recover.patience import Pace
from ckptsyncd.recover.request import PIECE_BYTES, WORKERS, Progress, Silence
from ckptsyncd.recover.stream import (
    OTHER_CONTENT,
    Fault,
    Gap,
    Reader,
    Span,
    adds_up,
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

    At level ``sample`` files are read until ``percent`` of the bytes of each checkpoint are
    together; the same ``seed`` chooses the same files.
    """

    checkpoint: str | None = None
    level: Level = "meta"
    percent: float = 5.0
    seed: int = 0
    workers: int = WORKERS
    piece_bytes: int = PIECE_BYTES


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
    """What was found out about all that were meant, newest first; never empty.

    ``unnamed``: what nobody names, where everything was meant.
    """

    level: Level
    results: tuple[Verified, ...]
    unnamed: Unnamed | None = None

    @property
    def exit_code(self) -> int:
        """0 where all are whole, 1 where some are not, 4 where none is."""
        broken = sum(1 for result in self.results if result.faults)
        if not broken:
            return 0
        return 1 if broken < len(self.results) else 4


def verify(
    store: Store, request: VerifyRequest, progress: Progress | None = None, pace: Pace | None = None
) -> Verification:
    """Compare the store with its manifests.

    Raises NoCheckpoint where there is none, UsageError where the name fits none, StoreError where
    the store does not answer after bounded retries: that is never counted as broken.
    """
    progress, pace = progress or Silence(), pace or Pace()
    catalog = read_catalog(store, pace)
    entries, broken = _meant(catalog, request.checkpoint)
    judge = Judge(store, request, progress, pace)
    results = tuple(chain(map(judge.unreadable, broken), map(judge.result, entries)))
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


def chosen(
    title: str, files: Sequence[StoredFile], request: VerifyRequest
) -> tuple[StoredFile, ...]:
    """Return the files to read; at level ``sample`` by chance, at least one where there is one."""
    if request.level != "sample":
        return tuple(files) if request.level == "full" else ()
    shuffled = sorted(files, key=lambda stored: stored.path)
    Random(f"{request.seed} {title!r}").shuffle(shuffled)  # noqa: S311 - chance, no secret
    wanted = sum(stored.size for stored in files) * request.percent / 100.0
    return tuple(_until(shuffled, wanted))


def _until(files: Sequence[StoredFile], wanted_bytes: float) -> Iterator[StoredFile]:
    total = 0
    for stored in files:
        yield stored
        total += stored.size
        if total >= wanted_bytes:
            return


def _meant(catalog: Catalog, name: str | None) -> tuple[tuple[Entry, ...], tuple[Broken, ...]]:
    if not catalog.entries and not catalog.unreadable:
        msg = "there is no checkpoint in the store"
        raise NoCheckpoint(msg)
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
        self._sound: set[tuple[str, int]] = set()

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
        read = [s for s in chosen(entry.title, files, self._request) if _key(s) not in self._sound]
        faults = self._content(entry.title, read)
        self._sound |= {_key(stored) for stored in read} if not faults else set()
        total = sum(stored.size for stored in read)
        return replace(verdict, bytes_read=total, faults=_sorted(faults))

    def _meta(self, files: Sequence[StoredFile]) -> list[Fault]:
        stop = threading.Event()
        pace = replace(self._pace, stop=stop)
        found = each(
            files, lambda stored: fault_of(self._store, stored, pace), self._request.workers, stop
        )
        return [fault for fault in found if fault]

    def _content(self, title: str, files: Sequence[StoredFile]) -> list[Fault]:
        """Read the files in pieces, several at a time, and compare."""
        if files:
            self._progress.said(f"reading {count_words(len(files), 'file')} of {title}")
            self._progress.began(len(files), sum(stored.size for stored in files), 0)
        stop = threading.Event()
        reader = Reader(self._store, replace(self._pace, stop=stop), self._progress.moved)

        def read(job: tuple[StoredFile, Gap]) -> tuple[StoredFile, Span | Fault]:
            return job[0], reader.read(*job, _ignored)

        jobs = ((s, gap) for s in files for gap in gaps(0, s.size, self._request.piece_bytes))
        faults: dict[str, Fault] = {}
        spans: dict[str, list[Span]] = {stored.path: [] for stored in files}
        for stored, found in each(jobs, read, self._request.workers, stop):
            if isinstance(found, Fault):
                faults[stored.path] = found
            else:
                spans[stored.path].append(found)
        wrong = (s for s in files if s.path not in faults and not adds_up(s, spans[s.path]))
        return [*faults.values(), *(Fault(stored.path, OTHER_CONTENT) for stored in wrong)]


def _ignored(_offset: int, _data: bytes) -> None:
    """Do nothing with a block: its checksum is what counts."""


def _key(stored: StoredFile) -> tuple[str, int]:
    return stored.key, stored.crc64nvme


def _sorted(faults: list[Fault]) -> tuple[Fault, ...]:
    return tuple(sorted(faults, key=lambda fault: fault.path)[:_MOST_FAULTS])
