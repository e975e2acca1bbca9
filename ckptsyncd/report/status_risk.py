"""The lower half of the screen: what is at risk, what a drain does about it, and what is wrong."""

from __future__ import annotations

from collections.abc import Iterator

from ckptsyncd.core.draining.drain_report import DrainReport
from ckptsyncd.core.draining.drain_view import DrainPlanView, WouldFit
from ckptsyncd.core.snapshot import Snapshot, TidyView
from ckptsyncd.core.words import count_words, duration_words, size_words
from ckptsyncd.report.screen import Line

_OUTCOMES = {
    "drained": "everything finished became safe",
    "deadline": "the time was up",
    "withdrawn": "the notice was withdrawn",
    "outlived": "the deadline passed and nothing happened",
    "stopped": "the program ended",
}


def failing_words(snapshot: Snapshot) -> str:
    """Say what is wrong with the store, for how long and how often."""
    what = "refused by the store" if snapshot.failing_kind == "refused" else "store failing"
    if snapshot.failing_since is not None:
        what += f" for {duration_words(snapshot.taken_at - snapshot.failing_since)}"
    if snapshot.last_error == snapshot.store_failing and snapshot.last_error_count > 1:
        what += f" ({snapshot.last_error_count} times in a row)"
    return what


def at_risk(snapshot: Snapshot, now: float, *, is_dead: bool) -> Iterator[Line]:
    """Say what is at risk; of a dead daemon no rate and no forecast, for nothing moves there."""
    risky = sum(view.at_risk for view in snapshot.checkpoints)
    if risky or snapshot.unsynced_bytes:
        since = snapshot.unsynced_since
        age = "" if since is None else f", for {duration_words(now - since)}"
        what = count_words(risky, "finished checkpoint")
        yield Line(f"at risk: {size_words(snapshot.unsynced_bytes)} of {what}{age}", "bad")
    elif snapshot.state == "starting":
        yield Line("not known yet what is at risk", "warn")
    elif not (snapshot.checkpoints or snapshot.recovery_points):
        yield Line("no checkpoint has been seen yet", "dim")
    else:
        yield Line("at risk: nothing that is finished", "good")
    if not is_dead:
        yield from _forecast(snapshot, now)
    if snapshot.last_drain is not None:
        yield from _last_drain(snapshot.last_drain, now)


def troubles(snapshot: Snapshot) -> Iterator[Line]:
    """Say what is wrong, each thing once."""
    if snapshot.disk_failing:
        yield Line(f"{snapshot.disk_failing}: what was saved since is not seen", "bad")
    if snapshot.store_failing:
        yield Line(f"{failing_words(snapshot)}: {snapshot.store_failing}", "bad")
    if snapshot.slowed_to is not None:
        hands = count_words(snapshot.slowed_to, "request")
        yield Line(f"slowed down to {hands} at a time: the store asks for fewer", "warn")
    if snapshot.last_error and snapshot.last_error != snapshot.store_failing:
        times = count_words(snapshot.last_error_count, "time")
        yield Line(f"last error ({times} in a row): {snapshot.last_error}", "warn")
    for warning in snapshot.warnings:
        yield Line(f"warning: {warning}", "warn")
    for source in snapshot.sources:
        if source.blind:
            yield Line(f"no notices from {source.source}: {source.blind}", "warn")
    if snapshot.polled:
        yield Line(f"polled, because no events come: {', '.join(snapshot.polled)}", "warn")


def tidying(found: TidyView, now: float) -> Iterator[Line]:
    """Say when everything was verified last, and what keeps old checkpoints from going."""
    if found.verified_at is not None:
        age = duration_words(now - found.verified_at)
        how = f"verified ({found.verified_level}) {age} ago"
        if found.verified_broken:
            broken = count_words(found.verified_broken, "checkpoint")
            yield Line(f"{how}: {broken} broken; see 'ckptsyncd verify'", "bad")
        else:
            yield Line(f"{how}: {count_words(found.verified_whole, 'checkpoint')} whole", "dim")
    if found.pruned:
        yield Line(f"pruned since the start: {count_words(found.pruned, 'checkpoint')}", "dim")
    if found.also_failing:
        yield Line(f"the second destination fails: {found.also_failing}", "warn")
    elif found.also_behind is not None:
        lacks = count_words(found.also_behind, "checkpoint")
        text = f"lacks {lacks}" if found.also_behind else "has everything that is safe"
        yield Line(f"the second destination {text}", "warn" if found.also_behind else "dim")
    if found.prune_failing:
        yield Line(f"pruning fails: {found.prune_failing}", "warn")


def _forecast(snapshot: Snapshot, now: float) -> Iterator[Line]:
    if snapshot.rate_bytes_per_second > 0:
        yield Line(f"rate: {size_words(snapshot.rate_bytes_per_second)}/s")
    if snapshot.drain_plan is not None:
        yield from _plan(snapshot.drain_plan, now)
    elif snapshot.would_fit_notice is not None and snapshot.would_fit_notice.bytes:
        yield _would_fit(snapshot.would_fit_notice)


def _plan(plan: DrainPlanView, now: float) -> Iterator[Line]:
    if plan.chosen:
        names = ", ".join(view.checkpoint for view in plan.chosen)
        eta = "" if plan.finish_at is None else f" in {duration_words(plan.finish_at - now)}"
        yield Line(f"plan: {names} ({size_words(plan.bytes)}) will be safe{eta}", "busy")
    for view in plan.given_up:
        size = size_words(view.bytes)
        yield Line(f"given up: {view.checkpoint}, {size} left: {view.reason}", "bad")


def _would_fit(found: WouldFit) -> Line:
    """Say what a notice would save, on the first day and not in the last minute."""
    notice = f"a notice of {duration_words(found.notice_seconds)}"
    if found.seconds_needed is None:
        return Line(f"not known yet whether {size_words(found.bytes)} fit {notice}", "dim")
    need = f"{size_words(found.bytes)} need {duration_words(found.seconds_needed)}"
    if found.fits:
        return Line(f"{notice} would do: {need}", "good")
    return Line(f"{notice} would not do: {need}; save less or upload faster", "warn")


def _last_drain(report: DrainReport, now: float) -> Iterator[Line]:
    """Say how the last drain ended, and what it left behind."""
    took = duration_words(report.ended_at - report.began_at)
    when = duration_words(max(now - report.ended_at, 0.0))
    told = _OUTCOMES.get(report.outcome, report.outcome)
    yield Line(f"last drain, {when} ago: {told}, after {took}", "bad" if report.left else "good")
    for left in report.left:
        missing = size_words(left.bytes - left.bytes_stored)
        yield Line(f"  left behind: {left.checkpoint}, {missing} missing: {left.reason}", "bad", 4)
