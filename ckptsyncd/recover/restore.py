"""A checkpoint from the store into a directory: the newest that is whole, or the one asked for.

Nothing lies under its name before all of it is there and checked. What is broken, or is not given
by a store that answers otherwise, is told and passed over for the next older one; a silent store is
never taken for a broken one. A restore that was killed goes on where it was.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from ckptsyncd.core.ports import Store
from ckptsyncd.core.records import names
from ckptsyncd.core.records.documents import Restorations, Restored
from ckptsyncd.core.records.manifest import Manifest
from ckptsyncd.core.words import count_words, size_words
from ckptsyncd.errors import (
    Again,
    CkptsyncdError,
    Missing,
    Never,
    NothingVerifies,
    PathRefused,
    PolicyRefused,
)
from ckptsyncd.recover import local, staging
from ckptsyncd.recover.await_first import catalog_when_ready
from ckptsyncd.recover.catalog import Catalog, Entry, read_manifest
from ckptsyncd.recover.choose import Choice
from ckptsyncd.recover.fetch import Fetched, fetch
from ckptsyncd.recover.ground import claimed, folds_of, told, write_durably
from ckptsyncd.recover.occupied import content_of
from ckptsyncd.recover.patience import Pace, not_given
from ckptsyncd.recover.place import build, put, set_aside
from ckptsyncd.recover.plan import Folds, Plan, Unit, check_names, plan_of
from ckptsyncd.recover.pointing import make_pointers, stored_pointers, wanted_pointers
from ckptsyncd.recover.presence import absent
from ckptsyncd.recover.request import Progress, RestoreRequest, RestoreResult, Silence, Skipped
from ckptsyncd.recover.room import check_room
from ckptsyncd.recover.staging import Staging
from ckptsyncd.recover.stream import Fault

#: The file that tells the daemon what was restored.
RESTORED = "restored.json"
_MAX_LINEAGE = 2**63 - 1


def restore(
    store: Store,
    target: Path,
    request: RestoreRequest,
    progress: Progress | None = None,
    pace: Pace | None = None,
) -> RestoreResult:
    """Bring a checkpoint into ``target`` and return what was done.

    Raises NoCheckpoint (nothing was ever committed), NothingVerifies (none of those that were
    meant is whole), UsageError (the request fits nothing, or several series), StoreError (the store
    does not answer after bounded retries), PathRefused (a name would leave the target),
    PolicyRefused (other content has its name), AlreadyRunning, and CkptsyncdError for our own disk.
    """
    progress = progress or Silence()
    task = _Restore(store, target, request, progress, (pace or Pace()).telling(progress.said))
    with told(f"restore into {str(target)!r}"):
        return task.run()


@dataclass(frozen=True, slots=True)
class _Way:
    """What one edition would need: its manifest, the plan, and what stands in the target."""

    entry: Entry
    manifest: Manifest
    plan: Plan
    kept: tuple[Unit, ...]
    in_the_way: tuple[Unit, ...]

    @property
    def needed(self) -> Plan:
        return self.plan.without(frozenset(self.kept))


class _Restore:
    """One restore from its first look to its last line."""

    def __init__(
        self, store: Store, root: Path, request: RestoreRequest, progress: Progress, pace: Pace
    ) -> None:
        self._store = store
        self._root = root
        self._request = request
        self._progress = progress
        self._pace = pace
        self._kept: Again | None = None

    def run(self) -> RestoreResult:
        """Do it."""
        if self._request.if_empty and (reason := self._occupied()):
            return RestoreResult(None, reason)
        catalog, choice = catalog_when_ready(self._store, self._request, self._progress, self._pace)
        for broken in catalog.unreadable:
            self._progress.said(f"{broken.title} cannot be read: {broken.reason}")
        if self._request.dry_run:
            return self._walk(catalog, choice, None)
        with claimed(self._root) as ours:
            return self._walk(catalog, choice, ours)

    def _occupied(self) -> str:
        """Return why an ``if_empty`` restore has nothing to do; a half-done one has."""
        if staging.remains(self._root / names.OURS):
            return ""
        found = content_of(self._root)
        return f"{str(self._root)!r} holds {found!r} already: nothing to do" if found else ""

    def _walk(self, catalog: Catalog, choice: Choice, ours: Path | None) -> RestoreResult:
        """Try the editions from the newest to the oldest."""
        skipped = [Skipped(b.title, b.reason, b.refused) for b in choice.broken]
        for entry in choice.entries:
            outcome = self._try(catalog, entry, ours)
            if isinstance(outcome, RestoreResult):
                return replace(outcome, skipped=tuple(skipped))
            self._progress.said(f"{outcome.title} is passed over: {outcome.reason}")
            skipped.append(outcome)
        raise _nothing_left(skipped, self._kept)

    def _try(self, catalog: Catalog, entry: Entry, ours: Path | None) -> RestoreResult | Skipped:
        way = self._way(entry, folds_of(ours) if ours else Folds())
        if isinstance(way, Skipped):
            return way
        self._progress.reached("compared")
        if self._request.dry_run or ours is None:
            return self._would(catalog, way)
        return self._go(catalog, way, ours)

    def _way(self, entry: Entry, folds: Folds) -> _Way | Skipped:
        """Look at everything that can be known before the first byte is fetched."""
        try:
            manifest = read_manifest(self._store, entry.key, self._pace)
            check_names(manifest.files, Folds())
        except PathRefused as error:
            return Skipped(entry.title, str(error), refused=True)
        except Missing:
            return Skipped(entry.title, "it was pruned meanwhile")
        except Never as error:
            return Skipped(entry.title, str(error))
        amount = f"{count_words(entry.files, 'file')}, {size_words(entry.bytes)}"
        self._progress.said(f"{entry.title}: {amount}")
        self._progress.reached("chosen")
        plan = plan_of(manifest, self._request, folds)
        kept, in_the_way = self._standing(plan)
        needed = plan.without(frozenset(kept))
        if fault := absent(self._store, manifest.checkpoint, needed.files, self._pace):
            return self._skipped(entry, fault)
        return _Way(entry, manifest, plan, kept, in_the_way)

    def _standing(self, plan: Plan) -> tuple[tuple[Unit, ...], tuple[Unit, ...]]:
        """Return the units that are there with equal content, and those with other content."""
        if not self._root.is_dir():
            return (), ()
        taken = local.standing(self._root, plan)
        other = local.difference(self._root, plan, taken, self._request.workers)
        if other and not self._request.force:
            unit, how = next(iter(other.items()))
            msg = f"{unit.path!r} is there already with other content: {how}"
            raise PolicyRefused(
                msg, hint="--force sets it aside; or restore into another directory"
            )
        return tuple(unit for unit in taken if unit not in other), tuple(other)

    def _skipped(self, entry: Entry, fault: Fault) -> Skipped:
        """Say why an edition cannot be used; it may have been pruned under our hands."""
        try:
            read_manifest(self._store, entry.key, self._pace)
        except Missing:
            return Skipped(entry.title, "it was pruned meanwhile")
        except (Never, PathRefused) as error:
            return Skipped(entry.title, str(error))
        return Skipped(entry.title, f"{fault.path!r}: {fault.reason}")

    def _would(self, catalog: Catalog, way: _Way) -> RestoreResult:
        pointers, problem = stored_pointers(self._store, way.entry.series, self._pace)
        wanted, left = wanted_pointers(pointers, way.manifest)
        made = () if self._request.only else tuple(pointer.path for pointer in wanted)
        result = self._result(catalog, way, [problem, left])
        return replace(result, pointers=made, dry_run=True)

    def _go(self, catalog: Catalog, way: _Way, ours: Path) -> RestoreResult | Skipped:
        """Fetch, build, place, point, record, clean: each durable before the next."""
        wait = Staging(ours, way.entry.save_id)
        try:
            fetched = self._fetched(way, wait)
            if isinstance(fetched, Skipped):
                return fetched
            if fetched.fault:
                wait.remove()
                return self._skipped(way.entry, fetched.fault)
            aside = self._placed(way, wait, ours)
        finally:
            wait.close()
        warnings = [_coarse(fetched)] if fetched.coarse else []
        made = self._pointed(way, ours, warnings)
        self._recorded(catalog, way, ours)
        for left in staging.remains(ours):
            staging.clear(left)
        self._progress.reached("cleaned")
        return replace(
            self._result(catalog, way, warnings),
            bytes_fetched=fetched.bytes,
            bytes_resumed=fetched.resumed_bytes,
            set_aside=aside,
            pointers=made,
        )

    def _fetched(self, way: _Way, wait: Staging) -> Fetched | Skipped:
        """Fetch; an edition that the store does not give although it answers is passed over.

        What came of it stays: it may be given another time.
        """
        files = way.needed.files
        check_room(self._root, files, wait)
        try:
            fetched = fetch(self._store, files, wait, self._request, self._progress, self._pace)
        except Again as error:
            read_manifest(self._store, way.entry.key, self._pace)  # raises where all is silent
            self._kept = self._kept or error
            return Skipped(way.entry.title, not_given(error))
        self._progress.reached("fetched")
        return fetched

    def _placed(self, way: _Way, wait: Staging, ours: Path) -> tuple[str, ...]:
        build(wait, way.needed)
        self._progress.reached("built")
        aside = []
        for unit in way.needed.units:
            if unit in way.in_the_way:
                aside.append(set_aside(self._root, ours, unit))
            try:
                put(self._root, wait, way.needed, unit)
            except FileExistsError:
                msg = f"{unit.path!r} has appeared in the target meanwhile"
                raise PolicyRefused(msg, hint="is the trainer running already?") from None
            self._progress.reached("placed")
        return tuple(aside)

    def _pointed(self, way: _Way, ours: Path, warnings: list[str]) -> tuple[str, ...]:
        """Make the pointers; part of a checkpoint gets none, for nothing goes on from it."""
        if self._request.only:
            return ()
        pointers, problem = stored_pointers(self._store, way.entry.series, self._pace)
        wanted, left = wanted_pointers(pointers, way.manifest)
        pointed = make_pointers(self._root, ours, wanted)
        warnings += [text for text in (problem, left, *pointed.warnings) if text]
        self._progress.reached("pointed")
        return tuple(pointed.made)

    def _recorded(self, catalog: Catalog, way: _Way, ours: Path) -> None:
        row = Restored(
            checkpoint=way.entry.checkpoint,
            edition=way.entry.edition,
            series=way.entry.series,
            lineage=lineage_after(catalog, way.entry),
            step=way.entry.step,
            save_id=way.entry.save_id,
            partial=bool(self._request.only),
        )
        try:
            before = Restorations.decode((ours / RESTORED).read_bytes())
        except (FileNotFoundError, CkptsyncdError):
            before = Restorations()
        write_durably(ours, RESTORED, before.with_row(row).encode())
        self._progress.reached("recorded")

    def _result(self, catalog: Catalog, way: _Way, warnings: list[str]) -> RestoreResult:
        if self._request.only:
            warnings = [*warnings, "only part of the checkpoint: nothing can go on from it"]
        return RestoreResult(
            entry=way.entry,
            lineage=lineage_after(catalog, way.entry),
            files=len(way.plan.files),
            bytes=way.plan.bytes,
            bytes_needed=way.needed.bytes,
            placed=tuple(unit.path for unit in way.needed.units),
            kept=tuple(unit.path for unit in way.kept),
            warnings=(*way.plan.warnings, *(text for text in warnings if text)),
        )


def lineage_after(catalog: Catalog, entry: Entry) -> int:
    """Return the lineage to commit with after a restore of ``entry``.

    Its own where it was the newest of its series, else one above all: lower steps may become latest
    again. An unreadable manifest may have been newer.
    """
    if entry == catalog.top(entry.series) and not catalog.unreadable:
        return entry.lineage
    highest = max(other.lineage for other in catalog.entries if other.series == entry.series)
    return min(highest + 1, _MAX_LINEAGE)


def _nothing_left(skipped: list[Skipped], kept: Again | None) -> CkptsyncdError:
    """Return the error of a restore without a checkpoint; ``kept``: one may be given later."""
    reasons = "; ".join(f"{skip.title}: {skip.reason}" for skip in skipped[:10])
    if kept is not None:
        hint = "look at the store itself, and try again; what came is kept"
        return Again(f"no checkpoint that fits was given: {reasons}", hint=hint)
    if skipped and all(skip.refused for skip in skipped):
        return PathRefused(f"every checkpoint that fits is refused: {reasons}")
    return NothingVerifies(f"no checkpoint that fits is whole: {reasons}")


def _coarse(fetched: Fetched) -> str:
    some = repr(fetched.coarse[0])
    return f"this disk does not keep mtimes exactly ({some}): the daemon will compare contents"
