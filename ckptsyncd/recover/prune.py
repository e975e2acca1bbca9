"""Old checkpoints out of the store: the manifest first, its data later, and never on hope.

A tombstone is written that names the data, the claim is marked, then the manifest is removed: from
that moment the edition does not exist any more. Its data goes ``grace_seconds`` later (see
``clear``), so that a restore that is under way comes to its end. What may go is decided in
``core.rules.retention``; nothing goes before newer ones were verified in the same run.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from time import time

from ckptsyncd.core.ports import Store
from ckptsyncd.core.records import names
from ckptsyncd.core.records.documents import MAX_RECORD_BYTES, Claim, Tombstone
from ckptsyncd.core.records.manifest import Manifest
from ckptsyncd.core.rules.retention import Candidate, Fate, Retention, decide
from ckptsyncd.errors import (
    Missing,
    Never,
    NoCheckpoint,
    PathRefused,
    Postponed,
    UsageError,
)
from ckptsyncd.recover.catalog import Catalog, Entry, Series, read_catalog, read_manifest
from ckptsyncd.recover.clear import Cleared, clear
from ckptsyncd.recover.gait import Gait
from ckptsyncd.recover.naming import named
from ckptsyncd.recover.patience import Pace, patiently
from ckptsyncd.recover.reap import Reaped, reap
from ckptsyncd.recover.request import Progress, Silence
from ckptsyncd.recover.verify import Judge, Level, VerifyRequest

#: How long data outlives its manifest, and how many requests a second remove things (guessed: a
#: long restore fits into the hour, and nobody notices the requests).
GRACE_SECONDS = 3600.0
PER_SECOND = 20.0


@dataclass(frozen=True, slots=True)
class PruneRequest:
    """What to keep, how closely it is verified first, and how gently to go about the rest.

    ``reaps``: what dead writers left goes too.
    """

    rules: Retention
    grace_seconds: float = GRACE_SECONDS
    level: Level = "meta"
    dry_run: bool = False
    per_second: float = PER_SECOND
    reaps: bool = True


@dataclass(frozen=True, slots=True)
class Pruned:
    """What was done, or (``dry_run``) would be: everybody's fate, and what became of old data.

    ``buried`` are the titles whose manifests gave way. ``interrupted``: something more urgent came.
    """

    fates: tuple[Fate, ...] = ()
    buried: tuple[str, ...] = ()
    cleared: Cleared = field(default_factory=Cleared)
    reaped: Reaped = field(default_factory=Reaped)
    dry_run: bool = False
    interrupted: bool = False


def prune(
    store: Store,
    request: PruneRequest,
    progress: Progress | None = None,
    pace: Pace | None = None,
    *,
    wall: Callable[[], float] = time,
    may: Callable[[], bool] = lambda: True,
) -> Pruned:
    """Let go of what the rules do not keep, and of what earlier runs and dead writers left.

    ``may`` is asked before every removal. Raises UsageError where no rule says what to keep,
    NoCheckpoint where there is nothing, StoreError where the store does not answer after bounded
    retries (what was done until then stays done, in the right order).
    """
    if not request.rules.is_said:
        msg = "nothing says what to keep"
        raise UsageError(msg, hint="give one of --keep-last, --keep-every and --newer-than")
    pace = pace or Pace()
    gait = Gait(pace, request.per_second, request.dry_run, may)
    return _Prune(store, request, progress or Silence(), gait, wall).run()


def tidy(
    store: Store,
    request: PruneRequest,
    *,
    pace: Pace,
    buried: Callable[[Entry], None],
    wall: Callable[[], float] = time,
) -> Pruned:
    """Do as ``prune`` does, for the daemon: where no rule says what to keep, everything is kept.

    ``buried`` hears of each checkpoint that does not exist any more. Ends before its next removal
    where ``pace`` is stopped. Raises StoreError as ``prune`` does.
    """
    gait = Gait(pace, request.per_second)
    task = _Prune(store, request, Silence(), gait, wall, buried)
    task.may_be_empty = True
    return task.run()


class _Prune:
    """One run."""

    def __init__(
        self,
        store: Store,
        request: PruneRequest,
        progress: Progress,
        gait: Gait,
        wall: Callable[[], float],
        buried: Callable[[Entry], None] = lambda _: None,
    ) -> None:
        self._store = store
        self._request = request
        self._progress = progress
        self._gait = gait
        self._wall = wall
        self._tell_buried = buried
        self.may_be_empty = False
        self._judge = Judge(store, VerifyRequest(level=request.level), progress, gait.pace)
        self._fates: list[Fate] = []
        self._buried: list[str] = []

    def run(self) -> Pruned:
        catalog = read_catalog(self._store, self._gait.pace)
        if not (catalog.entries or catalog.broken or self.may_be_empty):
            msg = "there is no checkpoint in the store"
            raise NoCheckpoint(msg)
        done = Pruned(dry_run=self._request.dry_run)
        try:
            if self._request.rules.is_said:
                self._bury_all(catalog)
            now = self._wall()
            cleared = clear(self._store, self._request.grace_seconds, now, self._gait)
            done = replace(done, cleared=cleared)
            if self._request.reaps:
                done = replace(done, reaped=reap(self._store, now, self._gait))
        except Postponed:
            done = replace(done, interrupted=True)
        return replace(done, fates=tuple(self._fates), buried=tuple(self._buried))

    def _bury_all(self, catalog: Catalog) -> None:
        """Decide about every series before the first goes: a dry run and a real one read alike."""
        going = []
        for series in catalog.series:
            fates = self._decided(series)
            self._fates += fates
            entries = {entry.title: entry for entry in series.entries}
            going += [entries[f.candidate.title] for f in reversed(fates) if not f.keeps]
        for entry in going:
            self._bury(entry)

    def _decided(self, series: Series) -> tuple[Fate, ...]:
        names_of = named(self._store, series, self._gait.pace)
        candidates = [_candidate(entry, names_of) for entry in series.entries]
        entries = {entry.title: entry for entry in series.entries}
        verdicts: dict[str, bool] = {}
        while True:
            decision = decide(candidates, self._request.rules, self._wall(), verdicts)
            if decision.ask is None:
                return decision.fates
            title = decision.ask.title
            result = self._judge.result(entries[title])
            verdicts[title] = not result.faults
            if result.faults:
                self._progress.said(f"{title} does not verify: {result.faults[0].reason}")

    def _bury(self, entry: Entry) -> None:
        """Let one edition go: tombstone, claim, manifest, in this order."""
        try:
            manifest = read_manifest(self._store, entry.key, self._gait.pace)
        except (Missing, Never, PathRefused) as error:
            self._progress.said(f"{entry.title} is left alone: {error}")
            return
        now = self._wall()
        stone = _tombstone(manifest, now).encode()
        stone_key = names.tombstone_key(manifest.checkpoint, manifest.edition)
        claim_key = names.claim_key(manifest.checkpoint, manifest.edition)
        claim = _claim(self._store, claim_key, manifest, self._gait.pace)
        mark = replace(claim, pruned_at=now).encode()
        self._gait.act(lambda: self._store.put_small(stone_key, stone, None))
        self._gait.act(lambda: self._store.put_small(claim_key, mark, None))
        self._gait.act(lambda: self._store.delete(entry.key))
        self._buried.append(entry.title)
        self._tell_buried(entry)


def _candidate(entry: Entry, names_of: dict[str, str]) -> Candidate:
    return Candidate(
        checkpoint=entry.checkpoint,
        edition=entry.edition,
        series=entry.series,
        step=entry.step,
        saved_at=entry.saved_at,
        rank=entry.rank,
        named=names_of.get(entry.title, ""),
    )


def _claim(store: Store, key: str, manifest: Manifest, pace: Pace) -> Claim:
    """Return the claim of a committed edition, made anew where it is lost."""
    try:
        return Claim.decode(patiently(lambda: store.get_small(key, MAX_RECORD_BYTES), pace)[0])
    except (Missing, Never, PathRefused):
        return Claim(
            checkpoint=manifest.checkpoint,
            edition=manifest.edition,
            series=manifest.series,
            save_id=manifest.save_id,
            nonce=manifest.writer.nonce,
            epoch=manifest.writer.epoch,
            node=manifest.writer.node,
            salt="",
            claimed_at=manifest.committed_at,
        )


def _tombstone(manifest: Manifest, now: float) -> Tombstone:
    keys = sorted({stored.key for stored in manifest.files if stored.kind == "file"})
    return Tombstone(
        checkpoint=manifest.checkpoint,
        edition=manifest.edition,
        series=manifest.series,
        total_bytes=manifest.bytes,
        host=socket.gethostname(),
        reason="retention",
        buried_at=now,
        keys=tuple(keys),
    )
