"""The snapshot in plain words: one screen for people, one line for the service manager.

Pure: the moment, the width and the colours are arguments. Names come from the disk and may hold
anything, so every line is made printable before it leaves.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from ckptsyncd.core.draining.drain_view import DrainPlanView, WouldFit
from ckptsyncd.core.lifecycle import DAEMON_MEANING, MEANING
from ckptsyncd.core.snapshot import CheckpointView, RecoveryPoint, Snapshot
from ckptsyncd.core.words import count_words, duration_words, printable, redacted, size_words
from ckptsyncd.report.status_json import DaemonView

#: How many checkpoints of a series are shown one by one, and how many of them may be safe.
_MOST_ROWS = 8
_MOST_SAFE = 2
_WIDEST_LABEL = 28
_MOST_SERIES = 3
_COLOURS = {"good": "32", "busy": "36", "bad": "31;1", "warn": "33", "dim": "2", "bold": "1"}
_TONES = {"safe": "good", "uploading": "busy", "sealing": "busy", "parked": "warn"}
_DONE = ("safe", "superseded", "vanished")


@dataclass(frozen=True, slots=True)
class _Line:
    """A line before it is wrapped and coloured; what follows the first line is indented."""

    text: str
    tone: str = ""
    indent: int = 0


def lines(
    snapshot: Snapshot,
    daemon: DaemonView,
    *,
    now: float,
    width: int = 100,
    colour: bool = False,
    dead: str = "",
) -> list[str]:
    """Return the screen: series by series, newest first, then what is at risk and what is wrong.

    ``now`` is wall time. ``dead`` says that the daemon does not run any more, and why one thinks
    so; the rest is then what it last knew.
    """
    found = [*_head(snapshot, daemon, now, dead)]
    for series in _series_of(snapshot):
        found += _series(snapshot, series, now)
    found += [_Line(""), *_risk(snapshot, now), *_troubles(snapshot)]
    return [text for line in found for text in _finished(line, width, colour)]


def summary(snapshot: Snapshot, now: float) -> str:
    """Return one line: ``running: step 4200 safe 38 s ago; step 4300 at 61 %, 12 s left``."""
    names = _series_of(snapshot)
    parts = [
        (f"{_title(name)}: " if len(names) > 1 else "") + _sentence(snapshot, name, now)
        for name in names[:_MOST_SERIES]
    ]
    if snapshot.store_failing:
        parts.insert(0, f"{_failing(snapshot)}: {snapshot.store_failing}")
    told = "; ".join(parts) or "nothing seen yet"
    return printable(redacted(f"{snapshot.state}: {told}"))


def _failing(snapshot: Snapshot) -> str:
    """Say what is wrong with the store, and for how long."""
    what = "refused by the store" if snapshot.failing_kind == "refused" else "store failing"
    since = snapshot.failing_since
    return what if since is None else f"{what} for {duration_words(snapshot.taken_at - since)}"


def _head(snapshot: Snapshot, daemon: DaemonView, now: float, dead: str) -> Iterator[_Line]:
    where = f"{daemon.watch_root} -> {daemon.store}"
    if dead:
        age = duration_words(now - snapshot.taken_at)
        yield _Line(f"the daemon is dead: {dead}", "bad")
        yield _Line(f"what follows is what it knew {age} ago, when it was {snapshot.state}", "warn")
        yield _Line(where, "dim")
        return
    meaning = snapshot.reason or DAEMON_MEANING.get(snapshot.state, "")
    bad = snapshot.state in ("draining", "fenced")
    age = duration_words(now - daemon.started_at)
    yield _Line(f"{snapshot.state}: {meaning}", "bad" if bad else "bold")
    yield _Line(f"{where} (pid {daemon.pid} on {daemon.host}, up {age})", "dim")
    if snapshot.notice is not None:
        notice = snapshot.notice
        left = _left(snapshot.notice_deadline_at, now)
        yield _Line(f"notice from {notice.source}: {notice.text or notice.severity}{left}", "bad")
    elif snapshot.notice_deadline_at is not None:
        yield _Line(f"stopping{_left(snapshot.notice_deadline_at, now)}", "warn")


def _left(deadline: float | None, now: float) -> str:
    if deadline is None or not math.isfinite(deadline):
        return ""
    if deadline < now:
        return f", its deadline was {duration_words(now - deadline)} ago"
    return f", {duration_words(deadline - now)} left"


def _series_of(snapshot: Snapshot) -> list[str]:
    """Return the series, that with the newest finished or growing checkpoint first."""
    names = [point.series for point in snapshot.recovery_points]
    names += [view.series for view in snapshot.checkpoints]
    newest = {
        name: max((v.saved_at or 0.0 for v in snapshot.checkpoints if v.series == name), default=0)
        for name in names
    }
    return sorted(newest, key=lambda name: (-newest[name], name))


def _series(snapshot: Snapshot, series: str, now: float) -> Iterator[_Line]:
    yield _Line("")
    yield _Line(f"{_title(series)}: {_sentence(snapshot, series, now)}", "bold")
    views = _newest_first([view for view in snapshot.checkpoints if view.series == series])
    chosen = _chosen(views)
    wide = min(max((len(_label(view)) for view in chosen), default=0), _WIDEST_LABEL)
    for view in chosen:
        text = f"  {_label(view):<{wide}}  {view.state:<10}  {_detail(snapshot, view, now)}"
        yield _Line(text, "bad" if view.at_risk and view.state == "parked" else _tone(view), 4)
    rest = [view.state for view in views if view not in chosen]
    if rest:
        told = ", ".join(f"{len(list(group))} {state}" for state, group in groupby(sorted(rest)))
        yield _Line(f"  and {told}", "dim")


def _title(series: str) -> str:
    return "this directory" if series in ("", ".") else series


def _sentence(snapshot: Snapshot, series: str, now: float) -> str:
    """Return ``step 4200 safe 38 s ago; step 4300 at 61 %, 12 s left``."""
    points = [point for point in snapshot.recovery_points if point.series == series]
    told = [_point_words(point, now) for point in points] or ["nothing safe yet"]
    busy = [
        view
        for view in _newest_first(snapshot.checkpoints)
        if view.series == series and view.state in ("uploading", "sealing")
    ]
    told += [f"{_name(view)} at {_progress(snapshot, view)}" for view in busy[:1]]
    return "; ".join(told)


def _point_words(point: RecoveryPoint, now: float) -> str:
    name = point.checkpoint if point.step is None else f"step {point.step}"
    return f"{name} safe {duration_words(now - point.committed_at)} ago"


def _name(view: CheckpointView) -> str:
    return view.checkpoint if view.step is None else f"step {view.step}"


def _label(view: CheckpointView) -> str:
    """Return the checkpoint's own name below its series, with its edition from the second on."""
    inside = view.checkpoint.startswith(view.series + "/")
    name = view.checkpoint[len(view.series) + 1 :] if inside else view.checkpoint
    return printable(name) + (f" (edition {view.edition})" if view.edition > 1 else "")


def _tone(view: CheckpointView) -> str:
    return _TONES.get(view.state, "dim" if view.state in _DONE else "")


def _newest_first(views: Sequence[CheckpointView]) -> list[CheckpointView]:
    def order(view: CheckpointView) -> tuple[int, float, int]:
        return (-1 if view.step is None else view.step, view.saved_at or 0.0, view.edition)

    return sorted(views, key=order, reverse=True)


def _chosen(views: Sequence[CheckpointView]) -> list[CheckpointView]:
    """Return what is shown one by one: everything that is not done, and the newest safe ones."""
    done = [view for view in views if view.state in _DONE]
    keep = [view for view in done if view.state == "safe"][:_MOST_SAFE]
    return [view for view in views if view not in done or view in keep][:_MOST_ROWS]


def _detail(snapshot: Snapshot, view: CheckpointView, now: float) -> str:
    size = f"{size_words(view.bytes)} in {count_words(view.files, 'file')}"
    if view.state in ("uploading", "sealing"):
        told = f"{_progress(snapshot, view)}, {size}"
    elif view.state == "safe":
        told = size + (f", whole by {view.evidence}" if view.evidence else "")
    else:
        told = f"{view.reason or MEANING.get(view.state, '')}; {size}"
    if view.retry_at is not None:
        told += f"; tried again in {duration_words(max(view.retry_at - now, 0.0))}"
    return told


def _progress(snapshot: Snapshot, view: CheckpointView) -> str:
    """Return ``61 %, 12 s left``; 100 % only when every byte is stored."""
    if view.state == "sealing":
        return "100 %, being checked"
    share = int(100 * view.bytes_stored / view.bytes) if view.bytes else 0
    rate = snapshot.rate_bytes_per_second
    left = (view.bytes - view.bytes_stored) / rate if rate > 0 else None
    return f"{share} %" + (f", {duration_words(left)} left" if left is not None else "")


def _risk(snapshot: Snapshot, now: float) -> Iterator[_Line]:
    risky = [view for view in snapshot.checkpoints if view.at_risk]
    if risky or snapshot.unsynced_bytes:
        since = snapshot.unsynced_since
        age = "" if since is None else f", for {duration_words(now - since)}"
        what = count_words(len(risky), "finished checkpoint")
        yield _Line(f"at risk: {size_words(snapshot.unsynced_bytes)} of {what}{age}", "bad")
    elif snapshot.state == "starting":
        yield _Line("not known yet what is at risk", "warn")
    else:
        yield _Line("at risk: nothing that is finished", "good")
    if snapshot.rate_bytes_per_second > 0:
        yield _Line(f"rate: {size_words(snapshot.rate_bytes_per_second)}/s")
    if snapshot.drain_plan is not None:
        yield from _plan(snapshot.drain_plan, now)
    elif snapshot.would_fit_notice is not None and snapshot.would_fit_notice.bytes:
        yield _would_fit(snapshot.would_fit_notice)


def _plan(plan: DrainPlanView, now: float) -> Iterator[_Line]:
    if plan.chosen:
        names = ", ".join(view.checkpoint for view in plan.chosen)
        eta = "" if plan.finish_at is None else f" in {duration_words(plan.finish_at - now)}"
        yield _Line(f"plan: {names} ({size_words(plan.bytes)}) will be safe{eta}", "busy")
    for view in plan.given_up:
        size = size_words(view.bytes)
        yield _Line(f"given up: {view.checkpoint}, {size} left: {view.reason}", "bad")


def _would_fit(found: WouldFit) -> _Line:
    """Say what a notice would save, on the first day and not in the last minute."""
    notice = f"a notice of {duration_words(found.notice_seconds)}"
    if found.seconds_needed is None:
        return _Line(f"not known yet whether {size_words(found.bytes)} fit {notice}", "dim")
    need = f"{size_words(found.bytes)} need {duration_words(found.seconds_needed)}"
    if found.fits:
        return _Line(f"{notice} would do: {need}", "good")
    return _Line(f"{notice} would not do: {need}; save less or upload faster", "warn")


def _troubles(snapshot: Snapshot) -> Iterator[_Line]:
    if snapshot.store_failing:
        yield _Line(f"{_failing(snapshot)}: {snapshot.store_failing}", "bad")
    if snapshot.slowed_to is not None:
        hands = count_words(snapshot.slowed_to, "request")
        yield _Line(f"slowed down to {hands} at a time: the store asks for fewer", "warn")
    if snapshot.last_error and snapshot.last_error != snapshot.store_failing:
        times = count_words(snapshot.last_error_count, "time")
        yield _Line(f"last error ({times} in a row): {snapshot.last_error}", "warn")
    for warning in snapshot.warnings:
        yield _Line(f"warning: {warning}", "warn")
    for source in snapshot.sources:
        if source.blind:
            yield _Line(f"no notices from {source.source}: {source.blind}", "warn")
    if snapshot.polled:
        yield _Line(f"polled, because no events come: {', '.join(snapshot.polled)}", "warn")


def _finished(line: _Line, width: int, colour: bool) -> Iterator[str]:  # noqa: FBT001
    text = printable(redacted(line.text))
    wrapped = textwrap.wrap(
        text,
        max(width, 20),
        subsequent_indent=" " * line.indent,
        drop_whitespace=True,
        break_on_hyphens=False,
        replace_whitespace=False,
    )
    for part in wrapped or [""]:
        yield f"\x1b[{_COLOURS[line.tone]}m{part}\x1b[0m" if colour and line.tone and part else part
