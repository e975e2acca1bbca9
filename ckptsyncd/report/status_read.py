"""The JSON of ``status_json`` read back, from a daemon of any version, dead or alive."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from ckptsyncd.core.draining.drain_report import DrainReport, LeftBehind
from ckptsyncd.core.draining.drain_view import DrainPlanView, PlannedView, WouldFit
from ckptsyncd.core.facts import Notice
from ckptsyncd.core.snapshot import CheckpointView, RecoveryPoint, Snapshot, SourceView, TidyView
from ckptsyncd.report.status_json import DaemonView


def from_json(document: Mapping[str, Any]) -> tuple[Snapshot, DaemonView]:
    """Return what the document says; a key that is missing or of a wrong type counts as nothing."""
    top = _Row(document)
    daemon = _Row(top.table("daemon"))
    snapshot = Snapshot(
        taken_at=top.number("taken_at"),
        state=cast("Any", daemon.text("state")),
        reason=daemon.text("reason"),
        recovery_points=tuple(_point(row) for row in top.rows("recovery_points")),
        checkpoints=tuple(_checkpoint(row) for row in top.rows("checkpoints")),
        unsynced_bytes=top.whole("unsynced_bytes"),
        unsynced_since=top.maybe_number("unsynced_since"),
        rate_bytes_per_second=top.number("rate_bytes_per_second"),
        notice=_notice_of(top.table("notice")),
        notice_deadline_at=top.maybe_number("deadline_at"),
        warnings=top.texts("warnings"),
        last_error=top.text("last_error"),
        last_error_count=top.whole("last_error_count"),
        sources=tuple(SourceView(r.text("source"), r.text("blind")) for r in top.rows("sources")),
        polled=top.texts("polled"),
        overflows=top.whole("overflows"),
        rescans=top.whole("rescans"),
        pins=top.whole("pins"),
        pieces_stored=top.whole("pieces_stored"),
        retries=top.whole("retries"),
        bytes_sent=top.whole("bytes_sent"),
        store_failing=top.text("store_failing"),
        failing_since=top.maybe_number("failing_since"),
        failing_kind=top.text("failing_kind"),
        throttled=top.whole("throttled"),
        slowed_to=top.maybe_whole("slowed_to"),
        orphans=top.whole("orphans"),
        drain_plan=_plan(top.table("drain_plan")),
        would_fit_notice=_would_fit(top.table("would_fit_notice")),
        last_drain=_last_drain(top.table("last_drain")),
        tidying=_tidying(_Row(top.table("tidying"))),
    )
    return snapshot, _daemon(daemon)


def _daemon(row: _Row) -> DaemonView:
    return DaemonView(
        pid=row.whole("pid"),
        started_at=row.number("started_at"),
        watch_root=row.text("watch_root"),
        store=row.text("store"),
        host=row.text("host"),
        version=row.text("version"),
        node=row.whole("node"),
    )


def _tidying(row: _Row) -> TidyView:
    return TidyView(
        pruned=row.whole("pruned"),
        objects_removed=row.whole("objects_removed"),
        pruned_at=row.maybe_number("pruned_at"),
        prune_failing=row.text("prune_failing"),
        local_bytes_removed=row.whole("local_bytes_removed"),
        verified_at=row.maybe_number("verified_at"),
        verified_level=row.text("verified_level"),
        verified_whole=row.whole("verified_whole"),
        verified_broken=row.whole("verified_broken"),
    )


def _notice_of(table: Mapping[str, Any]) -> Notice | None:
    row = _Row(table)
    if not table:
        return None
    severity = cast("Any", row.text("severity"))
    return Notice(
        source=row.text("source"),
        notice_id=row.text("id"),
        severity=severity,
        deadline_boot=row.maybe_number("deadline_boot"),
        text=row.text("text"),
    )


def _plan(table: Mapping[str, Any]) -> DrainPlanView | None:
    row = _Row(table)
    if not table:
        return None
    return DrainPlanView(
        made_at=row.number("made_at"),
        deadline_at=row.maybe_number("deadline_at"),
        chosen=tuple(_planned(one) for one in row.rows("chosen")),
        given_up=tuple(_planned(one) for one in row.rows("given_up")),
        finish_at=row.maybe_number("finish_at"),
        bytes_per_second=row.number("bytes_per_second"),
        doubt=row.number("doubt"),
    )


def _planned(row: _Row) -> PlannedView:
    return PlannedView(
        checkpoint=row.text("checkpoint"),
        edition=row.whole("edition"),
        series=row.text("series"),
        step=row.maybe_whole("step"),
        bytes=row.whole("bytes"),
        reason=row.text("reason"),
    )


def _would_fit(table: Mapping[str, Any]) -> WouldFit | None:
    row = _Row(table)
    if not table:
        return None
    fits = row.get("fits")
    return WouldFit(
        fits=fits if isinstance(fits, bool) else None,
        bytes=row.whole("bytes"),
        seconds_needed=row.maybe_number("seconds_needed"),
        notice_seconds=row.number("notice_seconds"),
    )


def _last_drain(table: Mapping[str, Any]) -> DrainReport | None:
    row = _Row(table)
    if not table:
        return None
    return DrainReport(
        source=row.text("source"),
        notice_id=row.text("notice_id"),
        text=row.text("text"),
        outcome=cast("Any", row.text("outcome")),
        began_at=row.number("began_at"),
        ended_at=row.number("ended_at"),
        deadline_at=row.maybe_number("deadline_at"),
        points=row.texts("points"),
        made_safe=row.texts("made_safe"),
        left=tuple(_left(one) for one in row.rows("left")),
        writing=row.texts("writing"),
        bytes_sent=row.whole("bytes_sent"),
        bytes_per_second=row.number("bytes_per_second"),
        trainer=row.text("trainer"),
        host=row.text("host"),
    )


def _left(row: _Row) -> LeftBehind:
    return LeftBehind(
        checkpoint=row.text("checkpoint"),
        series=row.text("series"),
        edition=row.whole("edition"),
        step=row.maybe_whole("step"),
        bytes=row.whole("bytes"),
        bytes_stored=row.whole("bytes_stored"),
        reason=row.text("reason"),
    )


def _point(row: _Row) -> RecoveryPoint:
    return RecoveryPoint(
        series=row.text("series"),
        checkpoint=row.text("checkpoint"),
        edition=row.whole("edition"),
        step=row.maybe_whole("step"),
        committed_at=row.number("committed_at"),
        bytes=row.whole("bytes"),
    )


def _checkpoint(row: _Row) -> CheckpointView:
    return CheckpointView(
        checkpoint=row.text("checkpoint"),
        series=row.text("series"),
        edition=row.whole("edition"),
        state=cast("Any", row.text("state")),
        reason=row.text("reason"),
        step=row.maybe_whole("step"),
        layout=row.text("layout"),
        evidence=row.text("evidence"),
        bytes=row.whole("bytes"),
        bytes_stored=row.whole("bytes_stored"),
        files=row.whole("files"),
        retry_at=row.maybe_number("retry_at"),
        at_risk=row.get("at_risk") is True,
        saved_at=row.maybe_number("saved_at"),
        is_ahead=row.get("is_ahead") is True,
    )


class _Row:
    """A JSON object from a daemon of any version, read by type."""

    __slots__ = ("_row",)

    def __init__(self, row: Mapping[str, Any]) -> None:
        self._row = row

    def get(self, key: str) -> Any:
        return self._row.get(key)

    def text(self, key: str) -> str:
        value = self.get(key)
        return value if isinstance(value, str) else ""

    def maybe_number(self, key: str) -> float | None:
        value = self.get(key)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return float(value) if is_number else None

    def number(self, key: str) -> float:
        return self.maybe_number(key) or 0.0

    def maybe_whole(self, key: str) -> int | None:
        value = self.get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def whole(self, key: str) -> int:
        return self.maybe_whole(key) or 0

    def table(self, key: str) -> Mapping[str, Any]:
        value = self.get(key)
        return value if isinstance(value, dict) else {}

    def rows(self, key: str) -> list[_Row]:
        value = self.get(key)
        found = value if isinstance(value, list) else []
        return [_Row(item) for item in found if isinstance(item, dict)]

    def texts(self, key: str) -> tuple[str, ...]:
        value = self.get(key)
        found = value if isinstance(value, list) else []
        return tuple(item for item in found if isinstance(item, str))
