"""The JSON of status: its schema, its exit codes, and that nothing of a snapshot is lost in it."""

from __future__ import annotations

import dataclasses
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from ckptsyncd.core.facts import Notice
from ckptsyncd.core.snapshot import Snapshot
from ckptsyncd.report.status_json import DaemonView, exit_code, to_json
from ckptsyncd.report.status_read import from_json
from tests.report.examples import BUSY, CALM, DAEMON, NOW, SNAPSHOTS, view

DOCS = Path(__file__).parent.parent.parent / "docs" / "status-json.md"
NOTICE = Notice("aws", "spot-1", "binding", 120.0, "spot interruption")


def test_the_schema_is_kept() -> None:
    """Every key that version 1 promised is there, in its place and of its type."""
    snapshot = replace(BUSY, notice=NOTICE, notice_deadline_at=NOW + 87)
    document = to_json(snapshot, DAEMON, NOW)
    daemon = {k: document["daemon"][k] for k in ("state", "pid", "started_at", "watch_root")}
    assert document["version"] == 1
    assert daemon == {
        "state": "running",
        "pid": 4242,
        "started_at": NOW - 7500,
        "watch_root": "/data/run",
    }
    assert document["daemon"]["store"] == "s3://bucket/run"
    (point,) = document["recovery_points"]
    assert point == {
        "series": "llama",
        "checkpoint": "llama/checkpoint-4200",
        "edition": 1,
        "step": 4200,
        "committed_at": NOW - 38,
        "age_seconds": 38.0,
        "bytes": 10 * 2**30,
    }
    promised = {"checkpoint", "series", "edition", "state", "reason", "bytes", "bytes_stored"}
    assert promised | {"files"} <= set(document["checkpoints"][0])
    assert document["unsynced_bytes"] == int(3.9 * 2**30)
    assert document["unsynced_age_seconds"] == 52.0
    assert document["rate_bytes_per_second"] == pytest.approx(2**30 / 3)
    assert document["notice"]["seconds_left"] == 87.0


def test_without_trouble_most_is_nothing() -> None:
    """A calm daemon has no notice, no age of unsynced bytes, and exit code 0."""
    document = to_json(CALM, DAEMON, NOW)
    assert document["notice"] is None
    assert document["unsynced_age_seconds"] == 0.0
    assert document["exit_code"] == 0


@pytest.mark.parametrize(
    ("snapshot", "code"),
    [
        (CALM, 0),
        (BUSY, 6),
        (replace(CALM, checkpoints=(view(1, "writing", at_risk=False),)), 0),
        (replace(CALM, checkpoints=(view(1, "parked"),)), 6),
        (replace(CALM, unsynced_bytes=1), 6),
        (replace(CALM, state="starting"), 6),
        (replace(CALM, store_failing="HTTP 503"), 5),
        (replace(CALM, disk_failing="the disk is silent"), 5),
        (replace(CALM, stands="the loop turned 31 s ago"), 5),
        (replace(BUSY, store_failing="HTTP 503"), 5),
    ],
)
def test_exit_codes(snapshot: Snapshot, code: int) -> None:
    """0 all safe, 6 finished bytes at risk or not known yet, 5 the store fails."""
    assert exit_code(snapshot) == code


@given(SNAPSHOTS)
@settings(max_examples=40, deadline=None)
def test_nothing_is_lost(snapshot: Snapshot) -> None:
    """A snapshot goes through strict JSON, whatever bytes its names hold, and comes back equal."""
    text = json.dumps(to_json(snapshot, DAEMON, NOW), allow_nan=False)
    assert from_json(json.loads(text)) == (snapshot, DAEMON)


def test_a_deadline_that_never_comes_is_none() -> None:
    """An infinite deadline (one pass without a daemon) is no JSON number."""
    document = to_json(replace(CALM, notice_deadline_at=float("inf")), DAEMON, NOW)
    json.dumps(document, allow_nan=False)
    assert document["deadline_at"] is None


@pytest.mark.parametrize(
    "document",
    [{}, {"daemon": 3, "checkpoints": {}, "warnings": "x", "notice": []}, {"checkpoints": [1, {}]}],
)
def test_another_version_is_read_as_far_as_it_goes(document: dict[str, Any]) -> None:
    """Missing keys and wrong types count as nothing; reading never fails."""
    snapshot, daemon = from_json(document)
    assert daemon == DaemonView()
    assert snapshot.recovery_points == ()


def test_every_key_is_documented() -> None:
    """The page about the schema names every key that is printed."""
    told = set(re.findall(r"`([a-z_]+)`", DOCS.read_text()))
    snapshot = replace(BUSY, notice=NOTICE)
    document = to_json(snapshot, DAEMON, NOW)
    keys = set(document) | set(document["daemon"]) | set(document["notice"])
    keys |= {key for row in document["recovery_points"] for key in row}
    keys |= {key for row in document["checkpoints"] for key in row}
    keys |= {key for row in document["sources"] for key in row}
    assert keys - told == set()


def test_every_field_of_a_snapshot_is_told() -> None:
    """No field of the snapshot is left out of the examples, and so of the tests above."""
    names = {field.name for field in dataclasses.fields(Snapshot)}
    assert names == {name for name in names if hasattr(CALM, name)}
