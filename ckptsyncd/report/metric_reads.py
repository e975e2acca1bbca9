"""How a metric is read: from what one scrape sees to samples, labels and values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from ckptsyncd.core.lifecycle import DAEMON_MEANING, MEANING
from ckptsyncd.core.snapshot import RecoveryPoint, Snapshot, StoreCalls
from ckptsyncd.core.words import printable
from ckptsyncd.report.latency import Histogram
from ckptsyncd.report.series_names import Pair, SeriesNames
from ckptsyncd.report.status_json import DaemonView
from ckptsyncd.report.usage import CLASSES, Usage

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
    usage: Usage


Read = Callable[[Seen], Iterator[Row]]


def one(value: Callable[[Seen], float | None]) -> Read:
    """Read one sample without labels; none where there is nothing to say."""

    def read(seen: Seen) -> Iterator[Row]:
        found = value(seen)
        if found is not None and math.isfinite(found):
            yield (), float(found)

    return read


def shown(value: Callable[[Snapshot], float | None]) -> Read:
    """Read one sample of the snapshot."""
    return one(lambda seen: value(seen.snapshot))


def points(
    value: Callable[[RecoveryPoint], float | None], fold: Callable[[float, float], float]
) -> Read:
    """Read a value of every recovery point; those of series that share a label are folded."""

    def read(seen: Seen) -> Iterator[Row]:
        found = ((point.series, value(point)) for point in seen.snapshot.recovery_points)
        known = [(series, float(it)) for series, it in found if it is not None]
        return _labelled(seen.names.folded(known, fold))

    return read


def _labelled(pairs: list[Pair]) -> Iterator[Row]:
    for label, value in pairs:
        yield (label,), value


def build(seen: Seen) -> Iterator[Row]:
    """Read the version."""
    yield (seen.daemon.version,), 1.0


def state(seen: Seen) -> Iterator[Row]:
    """Read every state of the daemon."""
    for state in DAEMON_MEANING:
        yield (state,), float(state == seen.snapshot.state)


def checkpoints(seen: Seen) -> Iterator[Row]:
    """Read how many checkpoints are in each state."""
    states = [view.state for view in seen.snapshot.checkpoints]
    for state in MEANING:
        yield (state,), float(states.count(state))


def behind(seen: Seen) -> Iterator[Row]:
    """Read for how long each series is behind."""
    names = [point.series for point in seen.snapshot.recovery_points]
    names += [name for name in seen.behind if name not in names]
    ages = ((name, max(seen.now - seen.behind.get(name, seen.now), 0.0)) for name in names)
    return _labelled(seen.names.folded(ages, max))


def unsynced_age(seen: Seen) -> float:
    """Return for how long finished bytes have not been in the store."""
    since = seen.snapshot.unsynced_since
    return 0.0 if since is None else max(seen.now - since, 0.0)


def drain_eta(snapshot: Snapshot) -> float | None:
    """Return how long everything unsynced takes, where a rate was measured."""
    left, rate = snapshot.unsynced_bytes, snapshot.rate_bytes_per_second
    return 0.0 if left == 0 else left / rate if rate > 0 else None


def would_fit(snapshot: Snapshot) -> float | None:
    """Return whether a notice would do, where that is known."""
    found = snapshot.would_fit_notice
    return None if found is None else found.fits


def given_up(snapshot: Snapshot) -> float:
    """Return what the plan of a drain gives up."""
    return 0.0 if snapshot.drain_plan is None else snapshot.drain_plan.bytes_given_up


def lost(snapshot: Snapshot) -> float | None:
    """Return what the last drain left behind, where there was one."""
    return None if snapshot.last_drain is None else snapshot.last_drain.bytes_left


def verified_broken(snapshot: Snapshot) -> float | None:
    """Return how many checkpoints were not whole, where everything was ever looked at."""
    tidying = snapshot.tidying
    return None if tidying.verified_at is None else tidying.verified_broken


def drain_bytes(seen: Seen) -> Iterator[Row]:
    """Read the plan of a drain that is under way."""
    plan = seen.snapshot.drain_plan
    if plan is not None:
        yield ("chosen",), float(plan.bytes)
        yield ("given up",), float(plan.bytes_given_up)


def blind(seen: Seen) -> Iterator[Row]:
    """Read which sources cannot be heard; those that look alike are one."""
    found: dict[str, bool] = {}
    for source in seen.snapshot.sources:
        label = printable(source.source)
        found[label] = found.get(label, False) or bool(source.blind)
    for label, is_blind in found.items():
        yield (label,), float(is_blind)


def calls(seen: Seen) -> Iterator[Row]:
    """Read what was asked of the store."""
    for row in seen.calls:
        yield (row.verb, row.outcome), float(row.count)


def call_bytes(seen: Seen) -> Iterator[Row]:
    """Read what calls moved that were done."""
    for row in seen.calls:
        if row.outcome == "done":
            yield (row.verb,), float(row.bytes)


def call_seconds(seen: Seen) -> Iterator[Row]:
    """Read how long calls took."""
    sums: dict[str, float] = {}
    for row in seen.calls:
        sums[row.verb] = sums.get(row.verb, 0.0) + row.seconds
    for verb, seconds in sums.items():
        yield (verb,), seconds


def requests(seen: Seen) -> Iterator[Row]:
    """Read how many requests of each class of the bill there were."""
    for kind in CLASSES:
        yield (kind,), float(seen.usage.of(kind))


def directions(seen: Seen) -> Iterator[Row]:
    """Read what went to the store and came from it."""
    yield ("sent",), float(seen.usage.bytes_sent)
    yield ("received",), float(seen.usage.bytes_received)


def of_histogram(_: Seen) -> Iterator[Row]:
    """Yield nothing: a histogram's samples are made from its counts."""
    return iter(())
