"""What a dead daemon left: its lock tells who it was, its ledger what it last knew."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from ckptsyncd.cli.find import Meant
from ckptsyncd.client import Json
from ckptsyncd.edge.holder import Holder
from ckptsyncd.edge.ledger import Ledger, scope_of
from ckptsyncd.edge.lock import state_holder
from ckptsyncd.report.last_snapshot import KEY, TABLE
from ckptsyncd.settings import LEDGER, found_state_dirs


@dataclass(frozen=True, slots=True)
class Remains:
    """The last document of a daemon that does not answer, and what is wrong with it."""

    document: Json
    reason: str


def remains(daemon: Meant) -> Remains | None:
    """Return what the daemon that is meant left, the newest where none is named; or ``None``."""
    found = [left for directory in _candidates(daemon) if (left := _left_in(directory, daemon))]
    return max(found, key=lambda left: _taken_at(left.document), default=None)


def _candidates(daemon: Meant) -> list[Path]:
    return [Path(daemon.state_dir)] if daemon.state_dir else found_state_dirs(os.environ)


def _left_in(directory: Path, daemon: Meant) -> Remains | None:
    """Return what lies in one state directory, where it is readable and the one that is meant."""
    try:
        holder, is_alive = state_holder(directory)
        if holder is None or (daemon.socket and holder.socket not in ("", daemon.socket)):
            return None
        document = _document(directory / LEDGER, holder)
    except OSError:
        return None
    if document is None:
        return None
    who = holder.words()
    reason = f"it holds its lock and does not answer ({who})" if is_alive else f"it was {who}"
    return Remains(document, reason)


def _document(path: Path, holder: Holder) -> Json | None:
    """Return the last snapshot of a ledger; raises OSError where there is no ledger."""
    ledger = Ledger(path, scope_of(holder.watch_root, holder.url), read_only=True)
    try:
        text = dict(ledger.rows(TABLE)).get(KEY, "null")
    finally:
        ledger.close()
    found = json.loads(text)
    return found if isinstance(found, dict) else None


def _taken_at(document: Json) -> float:
    moment = document.get("taken_at")
    return float(moment) if isinstance(moment, int | float) else 0.0
