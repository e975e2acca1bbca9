"""Snapshots for the tests of the taps: one that everybody can read, and any at all."""

from __future__ import annotations

import os
from dataclasses import is_dataclass, replace
from typing import Any, Literal, cast, get_args, get_origin

from hypothesis import strategies as st

from ckptsyncd.core.snapshot import CheckpointView, RecoveryPoint, Snapshot, SourceView
from ckptsyncd.report.status_json import DaemonView
from ckptsyncd.report.typed import hints_of

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
_PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    str: _text,
    int: _amount,
    float: _time,
    bool: st.booleans(),
}


def anything(hint: Any) -> st.SearchStrategy[Any]:
    """Return every value of a type of the snapshot's: a dataclass of any field is any dataclass."""
    args = get_args(hint)
    if is_dataclass(hint):
        parts = {name: anything(part) for name, part in hints_of(cast("Any", hint)).items()}
        return st.builds(cast("Any", hint), **parts)
    if get_origin(hint) is Literal:
        return st.sampled_from(args)
    if get_origin(hint) is tuple:
        return st.lists(anything(args[0]), max_size=3).map(tuple)
    if type(None) in args:
        return st.none() | anything(next(arg for arg in args if arg is not type(None)))
    return _PLAIN[hint]


SNAPSHOTS = anything(Snapshot)
