"""The JSON of ``status_json`` read back, from a daemon of any version, dead or alive."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ckptsyncd.core.facts import Notice
from ckptsyncd.core.snapshot import Snapshot
from ckptsyncd.report.status_json import DaemonView
from ckptsyncd.report.typed import built, value_of


def from_json(document: Mapping[str, Any]) -> tuple[Snapshot, DaemonView]:
    """Return what the document says; a key that is missing or of a wrong type counts as nothing."""
    daemon = _table(document, "daemon")
    snapshot = built(
        Snapshot,
        document,
        state=value_of(str, daemon.get("state")),
        reason=value_of(str, daemon.get("reason")),
        notice=_notice(_table(document, "notice")),
        notice_deadline_at=value_of(float | None, document.get("deadline_at")),
    )
    return snapshot, built(DaemonView, daemon)


def _notice(row: Mapping[str, Any]) -> Notice | None:
    return built(Notice, row, notice_id=value_of(str, row.get("id"))) if row else None


def _table(document: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = document.get(key)
    return found if isinstance(found, dict) else {}
