"""The metrics as a scraper reads them: every name of the table, bounded labels, honest values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from ckptsyncd.core.draining.drain_report import DrainReport
from ckptsyncd.core.draining.drain_view import DrainPlanView, WouldFit
from ckptsyncd.core.facts import Notice
from ckptsyncd.core.snapshot import RecoveryPoint, Snapshot, SourceView, StoreCalls, TidyView
from ckptsyncd.report.latency import BOUNDS, Histogram
from ckptsyncd.report.metric_reads import Seen
from ckptsyncd.report.metrics import Metrics
from ckptsyncd.report.metrics_table import METRICS
from ckptsyncd.report.series_names import MOST_LETTERS, MOST_SERIES, OVERFLOW, SeriesNames
from ckptsyncd.report.usage import Usage
from tests.report.examples import BUSY, CALM, DAEMON, NOW, SNAPSHOTS

CALLS = (
    StoreCalls("put_piece", "again", 3, 0, 9.0),
    StoreCalls("put_piece", "done", 40, 640, 80.0),
)
Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def seen(snapshot: Snapshot, **changes: Any) -> Seen:
    """Return what a scrape of an example reads."""
    made = Seen(
        snapshot=snapshot,
        daemon=DAEMON,
        now=NOW,
        calls=CALLS,
        behind={},
        latency=Histogram().with_one(7.0).with_one(99999.0),
        credentials_expire_at=None,
        longest_hold_seconds=0.000002,
        names=SeriesNames(),
        usage=Usage(40, 3, 2, 640, 10, 0.25, "USD"),
    )
    return replace(made, **changes)


def scraped(one: Seen) -> Samples:
    """Return what a scraper reads of it, by name and labels; a sample twice is an error."""
    found: Samples = {}
    for family in text_string_to_metric_families(Metrics(lambda: one).page().decode()):
        for sample in family.samples:
            key = (sample.name, tuple(sorted(sample.labels.items())))
            assert key not in found, f"{key} twice"
            found[key] = sample.value
    return found


def test_every_metric_of_the_table_is_there() -> None:
    """A busy daemon in trouble exposes every name, and nothing of ours that the table lacks."""
    snapshot = replace(
        BUSY,
        notice=Notice("aws", "n", "binding", 9.0),
        notice_deadline_at=NOW + 100,
        would_fit_notice=WouldFit(False, 4 * 2**30, 40.0, 30.0),
        drain_plan=DrainPlanView(NOW, None, (), (), None, 0.0, 0.0),
        last_drain=DrainReport("aws", "n", "", "drained", NOW, NOW, None),
        failing_since=NOW - 60,
        slowed_to=1,
        tidying=TidyView(verified_at=NOW - 60),
    )
    found = {name for name, _ in scraped(seen(snapshot, credentials_expire_at=NOW + 9))}
    ours = {re.sub("_(bucket|sum|count)$", "", name) for name in found if "ckptsyncd" in name}
    assert ours == {metric.exposed for metric in METRICS}
    assert "process_resident_memory_bytes" in found


def test_values_are_those_of_the_snapshot() -> None:
    """Times, ages, amounts and states are what the snapshot says."""
    found = scraped(seen(BUSY, behind={"llama": NOW - 60}))
    series = (("series", "llama"),)
    assert found["ckptsyncd_recovery_point_timestamp_seconds", series] == NOW - 38
    assert found["ckptsyncd_recovery_point_step", series] == 4200
    assert found["ckptsyncd_behind_seconds", series] == 60
    assert found["ckptsyncd_unsynced_age_seconds", ()] == 52
    assert found["ckptsyncd_drain_eta_seconds", ()] == pytest.approx(11.7)
    assert found["ckptsyncd_state", (("state", "running"),)] == 1
    assert found["ckptsyncd_checkpoints", (("state", "safe"),)] == 3
    assert found["ckptsyncd_source_blind", (("source", "aws"),)] == 0
    assert found["ckptsyncd_store_calls_total", (("call", "put_piece"), ("outcome", "again"))] == 3
    assert found["ckptsyncd_store_call_bytes_total", (("call", "put_piece"),)] == 640
    assert found["ckptsyncd_store_call_seconds_total", (("call", "put_piece"),)] == 89
    assert found["ckptsyncd_build_info", (("version", "0.1.0"),)] == 1


@pytest.mark.parametrize(("fits", "value"), [(True, 1.0), (False, 0.0), (None, None)])
def test_what_would_fit_a_notice(fits: bool | None, value: float | None) -> None:  # noqa: FBT001
    """Whether a notice would do is told as 1 or 0, and not at all while no speed is known."""
    shown = replace(CALM, would_fit_notice=WouldFit(fits, 10, None, 30.0))
    assert scraped(seen(shown)).get(("ckptsyncd_would_fit_notice", ())) == value


def test_the_histogram_is_cumulative() -> None:
    """Each bucket counts what is below it too; the last counts everything."""
    found = scraped(seen(CALM))
    buckets = [found["ckptsyncd_commit_latency_seconds_bucket", (("le", str(b)),)] for b in BOUNDS]
    assert buckets == [float(bound >= 7.0) for bound in BOUNDS]
    assert found["ckptsyncd_commit_latency_seconds_bucket", (("le", "+Inf"),)] == 2
    assert found["ckptsyncd_commit_latency_seconds_count", ()] == 2


def test_what_is_not_known_is_not_told() -> None:
    """Without a notice, a rate, or credentials that end there is no sample, not a zero."""
    found = {name for name, _ in scraped(seen(replace(CALM, unsynced_bytes=5)))}
    assert not found & {
        "ckptsyncd_drain_eta_seconds",
        "ckptsyncd_notice_deadline_timestamp_seconds",
        "ckptsyncd_credentials_expiry_timestamp_seconds",
    }


def points(count: int) -> Iterator[RecoveryPoint]:
    """Yield recovery points of so many series."""
    for number in range(count):
        yield RecoveryPoint(f"run-{number:04d}", "c", 1, number, NOW - number, 10)


def test_series_beyond_the_cap_share_a_label() -> None:
    """A thousand runs make a bounded number of time series; the shared one tells the worst."""
    names = SeriesNames()
    many = replace(CALM, recovery_points=tuple(points(1000)))
    found = scraped(seen(many, names=names))
    name = "ckptsyncd_recovery_point_timestamp_seconds"
    labels = [labels for metric, labels in found if metric == name]
    assert len(labels) == MOST_SERIES + 1
    other = (("series", OVERFLOW),)
    assert found[name, other] == NOW - 999
    assert found["ckptsyncd_recovery_point_bytes", other] == 10 * (1000 - MOST_SERIES)
    fresh = replace(CALM, recovery_points=tuple(points(1003))[1000:])
    later = [labels for metric, labels in scraped(seen(fresh, names=names)) if metric == name]
    assert later == [other], "places are not given out again"


def test_long_names_are_cut_and_stay_apart() -> None:
    """Names that differ only far behind have different labels of bounded length."""
    names = SeriesNames()
    one, other = names.label("x" * 500 + "a"), names.label("x" * 500 + "b")
    assert one != other
    assert len(one) < MOST_LETTERS + 20


@settings(max_examples=50, deadline=None)
@given(SNAPSHOTS, st.dictionaries(st.text(max_size=5), st.floats(0, 2e9), max_size=3))
def test_any_snapshot_can_be_scraped(snapshot: Snapshot, behind: dict[str, float]) -> None:
    """Whatever names lie on the disk, a scraper reads the page, and no sample comes twice."""
    sources = tuple({source.source: source for source in snapshot.sources}.values())
    scraped(seen(replace(snapshot, sources=sources), behind=behind))


def test_sources_whose_names_look_alike() -> None:
    """Two sources whose names are the same once printable are one sample: blind if any is."""
    twins = (SourceView("a\n", "dead"), SourceView("a\\n", ""))
    found = scraped(seen(replace(CALM, sources=twins)))
    assert found["ckptsyncd_source_blind", (("source", "a\\n"),)] == 1
