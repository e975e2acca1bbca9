"""Snapshots for the tests of the taps: one that everybody can read, and any at all."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from ckptsyncd.core.draining.drain_report import DrainReport, LeftBehind
from ckptsyncd.core.draining.drain_view import DrainPlanView, PlannedView, WouldFit
from ckptsyncd.core.facts import Notice
from ckptsyncd.core.snapshot import CheckpointView, RecoveryPoint, Snapshot, SourceView
from ckptsyncd.report.status_json import DaemonView

NOW = 1_750_000_000.0
GIB = 2**30

DAEMON = DaemonView(
    pid=4242,
    started_at=NOW - 7500,
    watch_root="/data/run",
    store="s3://bucket/run",
    host="gpu-7",
    version="0.1.0",
)


def view(step: int, state: Any, **changes: Any) -> CheckpointView:
    """Return one checkpoint of series ``llama``, of 10 GiB."""
    safe = state == "safe"
    made = CheckpointView(
        checkpoint=f"llama/checkpoint-{step}",
        series="llama",
        edition=1,
        state=state,
        reason="",
        step=step,
        layout="hf",
        evidence="marker",
        bytes=10 * GIB,
        bytes_stored=10 * GIB if safe else 0,
        files=12,
        retry_at=None,
        at_risk=state in ("settled", "uploading", "sealing", "parked"),
        saved_at=NOW - 60,
    )
    return replace(made, **changes)


CALM = Snapshot(
    taken_at=NOW,
    state="running",
    reason="",
    recovery_points=(RecoveryPoint("llama", "llama/checkpoint-4200", 1, 4200, NOW - 38, 10 * GIB),),
    checkpoints=(view(4200, "safe"), view(4100, "safe")),
    unsynced_bytes=0,
    unsynced_since=None,
    rate_bytes_per_second=0.0,
    notice=None,
    notice_deadline_at=None,
    warnings=(),
    last_error="",
    last_error_count=0,
    sources=(SourceView("aws", ""),),
    polled=(),
    overflows=0,
    rescans=0,
    pins=0,
    pieces_stored=1280,
    retries=0,
    bytes_sent=20 * GIB,
    store_failing="",
)

BUSY = replace(
    CALM,
    checkpoints=(
        view(4300, "uploading", bytes_stored=int(6.11 * GIB)),
        view(4400, "writing", reason="waiting for trainer_state.json", at_risk=False),
        view(4200, "safe"),
        view(4100, "safe"),
        view(4000, "safe"),
        view(3900, "superseded", reason="4000 went first"),
    ),
    unsynced_bytes=int(3.9 * GIB),
    unsynced_since=NOW - 52,
    rate_bytes_per_second=GIB / 3,
)

_text = st.binary(max_size=12).map(os.fsdecode)
_amount = st.integers(0, 2**50)
_time = st.floats(0, 2e9)
_maybe_time = st.none() | _time
_states = st.sampled_from(
    ["writing", "settled", "uploading", "sealing", "safe", "superseded", "parked", "vanished"]
)

VIEWS = st.builds(
    CheckpointView,
    checkpoint=_text,
    series=_text,
    edition=_amount,
    state=_states,
    reason=_text,
    step=st.none() | _amount,
    layout=_text,
    evidence=_text,
    bytes=_amount,
    bytes_stored=_amount,
    files=_amount,
    retry_at=_maybe_time,
    at_risk=st.booleans(),
    saved_at=_maybe_time,
    is_ahead=st.booleans(),
)
POINTS = st.builds(
    RecoveryPoint,
    series=_text,
    checkpoint=_text,
    edition=_amount,
    step=st.none() | _amount,
    committed_at=_time,
    bytes=_amount,
)
NOTICES = st.builds(
    Notice,
    source=_text,
    notice_id=_text,
    severity=st.sampled_from(["binding", "advisory", "scheduled", "pause"]),
    deadline_boot=_maybe_time,
    text=_text,
)
PLANNED = st.builds(
    PlannedView,
    checkpoint=_text,
    edition=_amount,
    series=_text,
    step=st.none() | _amount,
    bytes=_amount,
    reason=_text,
)
PLANS = st.builds(
    DrainPlanView,
    made_at=_time,
    deadline_at=_maybe_time,
    chosen=st.lists(PLANNED, max_size=3).map(tuple),
    given_up=st.lists(PLANNED, max_size=3).map(tuple),
    finish_at=_maybe_time,
    bytes_per_second=_time,
    doubt=st.floats(0, 0.5),
)
_texts = st.lists(_text, max_size=2).map(tuple)
DRAINS = st.builds(
    DrainReport,
    source=_text,
    notice_id=_text,
    text=_text,
    outcome=st.sampled_from(["drained", "deadline", "withdrawn", "outlived", "stopped"]),
    began_at=_time,
    ended_at=_time,
    deadline_at=_maybe_time,
    points=_texts,
    made_safe=_texts,
    left=st.lists(
        st.builds(LeftBehind, _text, _text, _amount, st.none() | _amount, _amount, _amount, _text),
        max_size=2,
    ).map(tuple),
    writing=_texts,
    bytes_sent=_amount,
    bytes_per_second=_time,
    trainer=_text,
    host=_text,
)
SNAPSHOTS = st.builds(
    Snapshot,
    taken_at=_time,
    state=st.sampled_from(["starting", "running", "draining", "drained", "stopped", "fenced"]),
    reason=_text,
    recovery_points=st.lists(POINTS, max_size=3).map(tuple),
    checkpoints=st.lists(VIEWS, max_size=5).map(tuple),
    unsynced_bytes=_amount,
    unsynced_since=_maybe_time,
    rate_bytes_per_second=_time,
    notice=st.none() | NOTICES,
    notice_deadline_at=_maybe_time,
    warnings=st.lists(_text, max_size=2).map(tuple),
    last_error=_text,
    last_error_count=_amount,
    sources=st.lists(st.builds(SourceView, _text, _text), max_size=2).map(tuple),
    polled=st.lists(_text, max_size=2).map(tuple),
    overflows=_amount,
    rescans=_amount,
    pins=_amount,
    pieces_stored=_amount,
    retries=_amount,
    bytes_sent=_amount,
    store_failing=_text,
    failing_since=_maybe_time,
    failing_kind=st.sampled_from(["", "again", "refused"]),
    throttled=_amount,
    slowed_to=st.none() | _amount,
    orphans=_amount,
    drain_plan=st.none() | PLANS,
    would_fit_notice=st.none()
    | st.builds(WouldFit, st.none() | st.booleans(), _amount, _maybe_time, _time),
    last_drain=st.none() | DRAINS,
)
