"""The snapshot: everything that outsiders may know, read off the mind's parts."""

from __future__ import annotations

from collections.abc import Iterator

from ckptsyncd.core.brain import Brain
from ckptsyncd.core.draining.drain_view import plan_view, would_fit
from ckptsyncd.core.facts import Instant
from ckptsyncd.core.records.manifest import Manifest
from ckptsyncd.core.sending.edition import Edition
from ckptsyncd.core.sightings import UnitView
from ckptsyncd.core.snapshot import CheckpointView, RecoveryPoint, Snapshot, SourceView

#: The store counts as failing when nothing succeeded for this long (guessed: some retries).
FAILING_SECONDS = 5.0


def snapshot(brain: Brain, now: Instant) -> Snapshot:
    """Return how everything stands at ``now``."""
    opened = list(brain.editions.open.values())
    notice = brain.ending.binding()
    deadline = brain.ending.deadline()
    unsynced = [edition for edition in opened if edition.is_open]
    offset = now.wall - now.boot
    failing = _failing(brain, now)
    return Snapshot(
        taken_at=now.wall,
        state=brain.ending.state,
        reason=brain.ending.reason,
        recovery_points=tuple(_recovery_points(brain)),
        checkpoints=tuple(_checkpoints(brain, now)),
        unsynced_bytes=sum(edition.bytes - edition.bytes_stored for edition in unsynced),
        unsynced_since=min((e.settled_at + offset for e in unsynced), default=None),
        rate_bytes_per_second=brain.rate.per_second(),
        notice=notice,
        notice_deadline_at=None if deadline is None else deadline + offset,
        warnings=tuple(_warnings(brain)),
        last_error=brain.trouble.text if brain.trouble.in_a_row else "",
        last_error_count=brain.trouble.in_a_row,
        sources=tuple(SourceView(name, why) for name, why in sorted(brain.ending.blind.items())),
        polled=brain.eyes.polled(),
        overflows=brain.eyes.overflows,
        rescans=brain.eyes.rescans,
        pins=sum(edition.pinned for edition in opened),
        pieces_stored=brain.pieces_stored,
        retries=brain.trouble.total,
        bytes_sent=brain.rate.bytes_sent,
        store_failing=failing[0],
        failing_since=failing[1],
        failing_kind=failing[2],
        disk_failing=brain.foreman.silence.disk.text,
        throttled=brain.outstanding.throttle.total,
        slowed_to=_slowed_to(brain),
        orphans=len(brain.editions.leftovers.garbage),
        drain_plan=plan_view(brain.planner.plan, now),
        would_fit_notice=would_fit(brain.editions, brain.planner, now),
        last_drain=brain.drain.last,
        tidying=brain.tidy.view(),
    )


def _warnings(brain: Brain) -> Iterator[str]:
    yield from brain.eyes.warnings()
    yield from brain.runs.warnings.values()
    if brain.trouble.clock_warning:
        yield brain.trouble.clock_warning
    if brain.crowding.warning:
        yield brain.crowding.warning


def _slowed_to(brain: Brain) -> int | None:
    throttle = brain.outstanding.throttle
    return None if throttle.most is None else throttle.hands(brain.policy.hands)


def _failing(brain: Brain, now: Instant) -> tuple[str, float | None, str]:
    """Return what is wrong with the store, since when, and of which kind; it may just be silent."""
    trouble, silent = brain.trouble, brain.foreman.silence.store
    if trouble.in_a_row and now.wall - trouble.since_wall >= FAILING_SECONDS:
        return trouble.text, trouble.since_wall, trouble.kind
    if silent.text:
        return silent.text, now.wall - (now.boot - silent.since), "silent"
    return "", None, ""


def _recovery_points(brain: Brain) -> Iterator[RecoveryPoint]:
    for name, series in sorted(brain.runs.known.items()):
        best, latest = series.best, series.latest
        if best is not None and (latest is None or best.rank() >= latest.rank):
            yield RecoveryPoint(
                name, best.checkpoint, best.edition, best.step, best.committed_at, best.bytes
            )
        elif latest is not None:
            yield RecoveryPoint(
                name,
                latest.checkpoint,
                latest.edition,
                latest.step,
                latest.committed_at,
                latest.total_bytes,
            )


def _checkpoints(brain: Brain, now: Instant) -> Iterator[CheckpointView]:
    opened = brain.editions.open.values()
    for edition in sorted(opened, key=brain.wishes.rank_of, reverse=True):
        yield _of_edition(brain, edition, now)
    for unit in brain.eyes.views():
        yield _of_unit(brain, unit)
    for row in brain.editions.safe.values():
        yield _of_manifest(row.manifest)
    # An edition that never got a number is only of interest while its name has no newer one.
    shown = {edition.checkpoint for edition in opened} | set(brain.editions.safe)
    for edition in brain.editions.aside:
        if edition.checkpoint not in shown:
            yield _of_edition(brain, edition, now)


def _of_edition(brain: Brain, edition: Edition, now: Instant) -> CheckpointView:
    settled = edition.settled
    until = edition.parked_until
    return CheckpointView(
        checkpoint=edition.checkpoint,
        series=edition.series,
        edition=edition.number or edition.expected,
        state=edition.state,
        reason=edition.reason,
        step=settled.step,
        layout=settled.layout,
        evidence=settled.evidence,
        bytes=edition.bytes,
        bytes_stored=edition.bytes_stored,
        files=len(edition.listing.files),
        retry_at=None if until is None else now.wall + until - now.boot,
        at_risk=edition.is_open,
        saved_at=edition.saved_at,
        is_ahead=edition.is_open and _is_ahead(brain, edition),
    )


def _is_ahead(brain: Brain, edition: Edition) -> bool:
    series = brain.runs.known.get(edition.series)
    if series is None:
        return True
    ranks = [series.rank_in_store(), None if series.best is None else series.best.rank()]
    newest = max((rank for rank in ranks if rank is not None), default=None)
    return newest is None or brain.wishes.rank_of(edition) > newest


def _of_unit(brain: Brain, unit: UnitView) -> CheckpointView:
    return CheckpointView(
        checkpoint=unit.checkpoint,
        series=unit.series,
        edition=brain.editions.next_number(unit.checkpoint),
        state=unit.state,
        reason=unit.reason,
        step=unit.step,
        layout=unit.layout,
        evidence="",
        bytes=unit.bytes,
        bytes_stored=0,
        files=unit.files,
        retry_at=None,
        at_risk=False,
    )


def _of_manifest(manifest: Manifest) -> CheckpointView:
    return CheckpointView(
        checkpoint=manifest.checkpoint,
        series=manifest.series,
        edition=manifest.edition,
        state="safe",
        reason="",
        step=manifest.step,
        layout=manifest.layout,
        evidence=manifest.evidence,
        bytes=manifest.bytes,
        bytes_stored=manifest.bytes,
        files=sum(stored.kind != "directory" for stored in manifest.files),
        retry_at=None,
        at_risk=False,
        saved_at=manifest.saved_at,
    )
