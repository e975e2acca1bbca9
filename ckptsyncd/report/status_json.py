"""The snapshot as the JSON that ``status --json`` prints.

The schema is version 1 and grows only: keys are added, never renamed or removed (see
``docs/status-json.md``). ``status_read`` reads it back.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from ckptsyncd.core.draining.drain_report import DrainReport
from ckptsyncd.core.draining.drain_view import DrainPlanView
from ckptsyncd.core.snapshot import Snapshot

VERSION = 1

#: What a script tells by the exit code of ``ckptsyncd status``.
ALL_SAFE = 0
FAILING = 5
AT_RISK = 6

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class DaemonView:
    """The process whose snapshot it is: what does not change while it runs."""

    pid: int = 0
    started_at: float = 0.0
    watch_root: str = ""
    store: str = ""
    host: str = ""
    version: str = ""
    node: int = 0


def exit_code(snapshot: Snapshot) -> int:
    """Return 5 where store or disk fail, 6 where bytes are at risk, 0 where nothing is.

    A daemon that is still reading ledger and disk does not know yet, so it says 6.
    """
    if snapshot.store_failing or snapshot.disk_failing or snapshot.stands:
        return FAILING
    at_risk = snapshot.unsynced_bytes > 0 or any(view.at_risk for view in snapshot.checkpoints)
    return AT_RISK if at_risk or snapshot.state == "starting" else ALL_SAFE


def to_json(snapshot: Snapshot, daemon: DaemonView, now: float) -> Json:
    """Return the document; ``now`` is wall time, ages are seconds before it."""
    since = snapshot.unsynced_since
    return {
        "version": VERSION,
        "daemon": {"state": snapshot.state, "reason": snapshot.reason, **asdict(daemon)},
        "recovery_points": [
            {**asdict(point), "age_seconds": _age(point.committed_at, now)}
            for point in snapshot.recovery_points
        ],
        "checkpoints": [asdict(view) for view in snapshot.checkpoints],
        "unsynced_bytes": snapshot.unsynced_bytes,
        "unsynced_age_seconds": 0.0 if since is None else _age(since, now),
        "rate_bytes_per_second": _finite(snapshot.rate_bytes_per_second) or 0.0,
        "notice": _notice(snapshot, now),
        "taken_at": snapshot.taken_at,
        "exit_code": exit_code(snapshot),
        "unsynced_since": since,
        "deadline_at": _finite(snapshot.notice_deadline_at),
        "warnings": list(snapshot.warnings),
        "last_error": snapshot.last_error,
        "last_error_count": snapshot.last_error_count,
        "store_failing": snapshot.store_failing,
        "failing_since": snapshot.failing_since,
        "failing_kind": snapshot.failing_kind,
        "disk_failing": snapshot.disk_failing,
        "stands": snapshot.stands,
        "throttled": snapshot.throttled,
        "slowed_to": snapshot.slowed_to,
        "sources": [asdict(source) for source in snapshot.sources],
        "polled": list(snapshot.polled),
        **_counts(snapshot),
        "drain_plan": _drain_plan(snapshot.drain_plan),
        "would_fit_notice": None
        if snapshot.would_fit_notice is None
        else asdict(snapshot.would_fit_notice),
        "last_drain": _last_drain(snapshot.last_drain),
        "tidying": asdict(snapshot.tidying),
    }


def _counts(snapshot: Snapshot) -> Json:
    return {
        "overflows": snapshot.overflows,
        "rescans": snapshot.rescans,
        "pins": snapshot.pins,
        "pieces_stored": snapshot.pieces_stored,
        "retries": snapshot.retries,
        "bytes_sent": snapshot.bytes_sent,
        "orphans": snapshot.orphans,
    }


def _drain_plan(plan: DrainPlanView | None) -> Json | None:
    if plan is None:
        return None
    return {**asdict(plan), "bytes": plan.bytes, "bytes_given_up": plan.bytes_given_up}


def _last_drain(report: DrainReport | None) -> Json | None:
    return None if report is None else {**asdict(report), "bytes_left": report.bytes_left}


def _notice(snapshot: Snapshot, now: float) -> Json | None:
    notice = snapshot.notice
    if notice is None:
        return None
    deadline = _finite(snapshot.notice_deadline_at)
    return {
        "source": notice.source,
        "id": notice.notice_id,
        "severity": notice.severity,
        "text": notice.text,
        "deadline_at": deadline,
        "seconds_left": None if deadline is None else deadline - now,
        "deadline_boot": _finite(notice.deadline_boot),
    }


def _age(moment: float, now: float) -> float:
    return max(now - moment, 0.0)


def _finite(number: float | None) -> float | None:
    """JSON has no infinity: a deadline that never comes is none."""
    return number if number is not None and math.isfinite(number) else None
