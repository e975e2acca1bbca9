"""The one table of metrics: name, kind, labels, meaning, and how each is read.

The exposition, the tables of the documentation and the checks of rules and dashboards are made
from it. Values are read when somebody asks; times are seconds since the epoch, sizes bytes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from ckptsyncd.core.lifecycle import DAEMON_MEANING, MEANING
from ckptsyncd.core.snapshot import Snapshot, StoreCalls, is_incomplete
from ckptsyncd.core.words import printable
from ckptsyncd.report.latency import Histogram
from ckptsyncd.report.series_names import SeriesNames
from ckptsyncd.report.status_json import DaemonView

PREFIX = "ckptsyncd_"
Row = tuple[tuple[str, ...], float]


@dataclass(frozen=True, slots=True)
class Seen:
    """What one scrape reads: everything as it stands, and the moment (wall time)."""

    snapshot: Snapshot
    daemon: DaemonView
    now: float
    calls: tuple[StoreCalls, ...]
    behind: Mapping[str, float]
    latency: Histogram
    credentials_expire_at: float | None
    longest_hold_seconds: float
    names: SeriesNames


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric. A counter's exposed name ends in ``_total``; ``read`` yields its samples."""

    name: str
    kind: Literal["gauge", "counter", "histogram"]
    labels: tuple[str, ...]
    meaning: str
    read: Callable[[Seen], Iterator[Row]]

    @property
    def exposed(self) -> str:
        """Its name as a query writes it."""
        return PREFIX + self.name + ("_total" if self.kind == "counter" else "")


def _one(value: float | None) -> Iterator[Row]:
    """Yield one sample without labels; none where there is nothing to say."""
    if value is not None and math.isfinite(value):
        yield (), float(value)


def _build(seen: Seen) -> Iterator[Row]:
    yield (seen.daemon.version,), 1.0


def _state(seen: Seen) -> Iterator[Row]:
    for state in DAEMON_MEANING:
        yield (state,), float(state == seen.snapshot.state)


def _checkpoints(seen: Seen) -> Iterator[Row]:
    states = [view.state for view in seen.snapshot.checkpoints]
    for state in MEANING:
        yield (state,), float(states.count(state))


def _point_times(seen: Seen) -> Iterator[Row]:
    points = ((point.series, point.committed_at) for point in seen.snapshot.recovery_points)
    for label, value in seen.names.folded(points, min):
        yield (label,), value


def _point_steps(seen: Seen) -> Iterator[Row]:
    steps = [(p.series, p.step) for p in seen.snapshot.recovery_points if p.step is not None]
    for label, value in seen.names.folded(((name, float(step)) for name, step in steps), min):
        yield (label,), value


def _point_bytes(seen: Seen) -> Iterator[Row]:
    points = ((point.series, float(point.bytes)) for point in seen.snapshot.recovery_points)
    for label, value in seen.names.folded(points, lambda one, other: one + other):
        yield (label,), value


def _behind(seen: Seen) -> Iterator[Row]:
    names = [point.series for point in seen.snapshot.recovery_points]
    names += [name for name in seen.behind if name not in names]
    ages = ((name, max(seen.now - seen.behind.get(name, seen.now), 0.0)) for name in names)
    for label, value in seen.names.folded(ages, max):
        yield (label,), value


def _unsynced_age(seen: Seen) -> Iterator[Row]:
    since = seen.snapshot.unsynced_since
    return _one(0.0 if since is None else max(seen.now - since, 0.0))


def _drain_eta(seen: Seen) -> Iterator[Row]:
    left, rate = seen.snapshot.unsynced_bytes, seen.snapshot.rate_bytes_per_second
    return _one(0.0 if left == 0 else left / rate if rate > 0 else None)


def _would_fit(seen: Seen) -> Iterator[Row]:
    found = seen.snapshot.would_fit_notice
    return _one(None if found is None or found.fits is None else float(found.fits))


def _given_up(seen: Seen) -> Iterator[Row]:
    plan = seen.snapshot.drain_plan
    return _one(0.0 if plan is None else plan.bytes_given_up)


def _lost(seen: Seen) -> Iterator[Row]:
    report = seen.snapshot.last_drain
    return _one(None if report is None else float(report.bytes_left))


def _drain_bytes(seen: Seen) -> Iterator[Row]:
    plan = seen.snapshot.drain_plan
    if plan is not None:
        yield ("chosen",), float(plan.bytes)
        yield ("given up",), float(plan.bytes_given_up)


def _blind(seen: Seen) -> Iterator[Row]:
    found: dict[str, bool] = {}
    for source in seen.snapshot.sources:
        label = printable(source.source)
        found[label] = found.get(label, False) or bool(source.blind)
    for label, is_blind in found.items():
        yield (label,), float(is_blind)


def _calls(seen: Seen) -> Iterator[Row]:
    for row in seen.calls:
        yield (row.verb, row.outcome), float(row.count)


def _call_bytes(seen: Seen) -> Iterator[Row]:
    for row in seen.calls:
        if row.outcome == "done":
            yield (row.verb,), float(row.bytes)


def _call_seconds(seen: Seen) -> Iterator[Row]:
    sums: dict[str, float] = {}
    for row in seen.calls:
        sums[row.verb] = sums.get(row.verb, 0.0) + row.seconds
    for verb, seconds in sums.items():
        yield (verb,), seconds


def _of_histogram(_: Seen) -> Iterator[Row]:
    """Yield nothing: a histogram's samples are made from its counts."""
    return iter(())


# fmt: off
METRICS: tuple[Metric, ...] = (
    Metric("build_info", "gauge", ("version",), "1, with the program's version.", _build),
    Metric("state", "gauge", ("state",),
        "1 for the state in which the daemon is, 0 for the others.", _state),
    Metric("snapshot_timestamp_seconds", "gauge", (),
        "When the values of this scrape were taken; it stands still if the loop does.",
        lambda seen: _one(seen.snapshot.taken_at)),
    Metric("recovery_point_timestamp_seconds", "gauge", ("series",),
        "When the newest safe checkpoint of the series was committed.", _point_times),
    Metric("recovery_point_step", "gauge", ("series",),
        "Training step of the newest safe checkpoint of the series.", _point_steps),
    Metric("recovery_point_bytes", "gauge", ("series",),
        "Size of the newest safe checkpoint of the series.", _point_bytes),
    Metric("behind_seconds", "gauge", ("series",),
        "For how long the series has had finished work that is newer than its recovery point"
        " and not safe; 0 where there is none.", _behind),
    Metric("checkpoints", "gauge", ("state",),
        "Checkpoints that the daemon knows, by state.", _checkpoints),
    Metric("incomplete_checkpoints", "gauge", (),
        "Checkpoints for whose other machines' parts was waited longer than is usual; 'status' says"
        " which nodes are missing.",
        lambda seen: _one(float(sum(is_incomplete(v) for v in seen.snapshot.checkpoints)))),
    Metric("unsynced_bytes", "gauge", (),
        "Bytes of finished checkpoints that are not in the store.",
        lambda seen: _one(seen.snapshot.unsynced_bytes)),
    Metric("unsynced_age_seconds", "gauge", (),
        "For how long there have been such bytes; 0 where there are none.", _unsynced_age),
    Metric("upload_rate_bytes_per_second", "gauge", (),
        "How fast bytes arrived in the store of late, while something was under way.",
        lambda seen: _one(seen.snapshot.rate_bytes_per_second)),
    Metric("drain_eta_seconds", "gauge", (),
        "How long everything unsynced takes at that rate; absent where no rate was measured.",
        _drain_eta),
    Metric("would_fit_notice", "gauge", (),
        "1 where what is at risk, or else the newest checkpoint, would be safe within a notice as"
        " it is usual here, 0 where not; absent where no rate was measured.", _would_fit),
    Metric("drain_given_up_bytes", "gauge", (),
        "Bytes that will not be safe by the deadline, by the plan of the drain that is under way.",
        _given_up),
    Metric("drain_bytes", "gauge", ("fate",),
        "Bytes of the plan of a drain that is under way: chosen, or given up.", _drain_bytes),
    Metric("drain_lost_bytes", "gauge", (),
        "Bytes of finished checkpoints that the last report of a drain calls lost.",
        _lost),
    Metric("notice", "gauge", (),
        "1 while a binding interruption notice is in force.",
        lambda seen: _one(float(seen.snapshot.notice is not None))),
    Metric("notice_deadline_timestamp_seconds", "gauge", (),
        "When this machine or process ends; absent where that is not known.",
        lambda seen: _one(seen.snapshot.notice_deadline_at)),
    Metric("source_blind", "gauge", ("source",),
        "1 where a source of interruption notices cannot be heard.", _blind),
    Metric("store_failing", "gauge", (),
        "1 while nothing that is asked of the store succeeds.",
        lambda seen: _one(float(bool(seen.snapshot.store_failing)))),
    Metric("store_failing_since_timestamp_seconds", "gauge", (),
        "Since when nothing that is asked of the store succeeds; absent while something does.",
        lambda seen: _one(seen.snapshot.failing_since)),
    Metric("store_refused", "gauge", (),
        "1 while nothing succeeds because the store refuses the credentials or its policy says no.",
        lambda seen: _one(float(seen.snapshot.failing_kind == "refused"))),
    Metric("slowed_to_hands", "gauge", (),
        "Requests at a time while the store asks for fewer; absent while it does not.",
        lambda seen: _one(seen.snapshot.slowed_to)),
    Metric("warnings", "gauge", (),
        "Warnings that 'ckptsyncd status' shows.",
        lambda seen: _one(len(seen.snapshot.warnings))),
    Metric("polled_subtrees", "gauge", (),
        "Directories that are listed again and again because no events come from them.",
        lambda seen: _one(len(seen.snapshot.polled))),
    Metric("pins", "gauge", (),
        "Checkpoints kept readable although the trainer may remove them.",
        lambda seen: _one(seen.snapshot.pins)),
    Metric("orphaned_uploads", "gauge", (),
        "Begun uploads in the store that nobody goes on with and that are still to be dropped.",
        lambda seen: _one(seen.snapshot.orphans)),
    Metric("credentials_expiry_timestamp_seconds", "gauge", (),
        "When the store's credentials end that nobody renews; absent where they are renewed by"
        " themselves or never end.",
        lambda seen: _one(seen.credentials_expire_at)),
    Metric("longest_lease_seconds", "gauge", (),
        "Longest time for which a trainer's open() could have been held up by a look of ours.",
        lambda seen: _one(seen.longest_hold_seconds)),
    Metric("event_overflows", "counter", (),
        "How often the kernel lost file events.",
        lambda seen: _one(seen.snapshot.overflows)),
    Metric("rescans", "counter", (),
        "How often the whole watch root was listed.",
        lambda seen: _one(seen.snapshot.rescans)),
    Metric("pieces_stored", "counter", (),
        "Pieces and small files that reached the store.",
        lambda seen: _one(seen.snapshot.pieces_stored)),
    Metric("sent_bytes", "counter", (),
        "Bytes of checkpoints that reached the store.",
        lambda seen: _one(seen.snapshot.bytes_sent)),
    Metric("retries", "counter", (),
        "Store orders that failed and are tried again.",
        lambda seen: _one(seen.snapshot.retries)),
    Metric("throttled", "counter", (),
        "Answers in which the store asked for fewer requests.",
        lambda seen: _one(seen.snapshot.throttled)),
    Metric("store_calls", "counter", ("call", "outcome"),
        "What was asked of the store, by verb and by outcome: done, or the kind of the error"
        " (again, never, gone, missing, lost, refused; failed: our own disk).", _calls),
    Metric("store_call_bytes", "counter", ("call",),
        "Bytes that calls moved which were done.", _call_bytes),
    Metric("store_call_seconds", "counter", ("call",),
        "Time that calls took, whatever their outcome.", _call_seconds),
    Metric("commit_latency_seconds", "histogram", (),
        "From the last byte that the trainer wrote into a checkpoint to safe.",
        _of_histogram),
)
# fmt: on
