"""The middle of the screen: a run and its checkpoints, newest first, safe in plain words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ckptsyncd.core.lifecycle import MEANING
from ckptsyncd.core.snapshot import CheckpointView, RecoveryPoint, Snapshot
from ckptsyncd.core.words import count_words, duration_words, printable, size_words
from ckptsyncd.report.screen import Line, bar

#: How many checkpoints of a series are shown one by one, and how many of them may be safe.
_MOST_ROWS = 8
_MOST_SAFE = 2
#: So many series have rows of their own on the screen; with work at risk, so many.
_MOST_SHOWN = 6
_MOST_RISKY = 12
_WIDEST_LABEL = 28
_TONES = {"safe": "good", "uploading": "busy", "sealing": "busy", "parked": "warn"}
_DONE = ("safe", "superseded", "vanished")
_BUSY = ("uploading", "sealing")


@dataclass(frozen=True, slots=True)
class Moment:
    """When (wall time) and how it is shown: ``rate`` is 0 where nothing moves any more."""

    now: float
    rate: float
    has_bars: bool = False


@dataclass(slots=True)
class Series:
    """A run: its recovery point, if it has one, and its checkpoints."""

    name: str
    point: RecoveryPoint | None = None
    views: list[CheckpointView] = field(default_factory=list)

    @property
    def title(self) -> str:
        """Its name for people."""
        return "this directory" if self.name in ("", ".") else self.name

    @property
    def is_risky(self) -> bool:
        """Whether finished work of it is not safe."""
        return any(view.at_risk for view in self.views)

    def sentence(self, moment: Moment) -> str:
        """Return ``step 4200 safe 38 s ago; step 4300 at 61 %, 12 s left``."""
        point = self.point
        told = ["nothing safe yet" if point is None else _point_words(point, moment.now)]
        waiting = _newest_first([view for view in self.views if view.at_risk])
        busy = [view for view in waiting if view.state in _BUSY]
        if busy:
            told.append(f"{_name(busy[0])} at {_progress(busy[0], moment)}")
        elif waiting:
            state = "parked" if waiting[0].state == "parked" else "waits for its turn"
            told.append(f"{_name(waiting[0])} {state}")
        return "; ".join(told)


def series_of(snapshot: Snapshot) -> list[Series]:
    """Return the series, that with the newest finished checkpoint first."""
    found: dict[str, Series] = {}
    for point in snapshot.recovery_points:
        found.setdefault(point.series, Series(point.series)).point = point
    for view in snapshot.checkpoints:
        found.setdefault(view.series, Series(view.series)).views.append(view)

    def order(series: Series) -> tuple[float, str]:
        return -max((view.saved_at or 0.0 for view in series.views), default=0.0), series.name

    return sorted(found.values(), key=order)


def all_series(snapshot: Snapshot, moment: Moment) -> Iterator[Line]:
    """Yield the lines of every series that has a place on one screen, and count the others."""
    found = series_of(snapshot)
    shown = found[:_MOST_SHOWN]
    shown += [series for series in found[_MOST_SHOWN:] if series.is_risky][:_MOST_RISKY]
    for series in shown:
        yield from _lines(series, moment)
    left = found[_MOST_SHOWN:]
    risky = sum(series.is_risky for series in left) - (len(shown) - _MOST_SHOWN)
    count = len(found) - len(shown)
    if count > 0:
        told = f"{risky} of them with work at risk" if risky > 0 else "nothing of them at risk"
        yield Line("")
        yield Line(f"and {count} more series, {told}", "bad" if risky > 0 else "dim")


def _lines(series: Series, moment: Moment) -> Iterator[Line]:
    yield Line("")
    yield Line(f"{series.title}: {series.sentence(moment)}", "bold")
    chosen, rest = _chosen(_newest_first(series.views))
    wide = min(max((len(_label(view)) for view in chosen), default=0), _WIDEST_LABEL)
    for view in chosen:
        text = f"  {_label(view):<{wide}}  {view.state:<10}  {_detail(view, moment)}"
        yield Line(text, "bad" if view.at_risk and view.state == "parked" else _tone(view), 4)
    if rest:
        counts = sorted(Counter(view.state for view in rest).items())
        yield Line(f"  and {', '.join(f'{count} {state}' for state, count in counts)}", "dim")


def _chosen(
    views: Sequence[CheckpointView],
) -> tuple[list[CheckpointView], list[CheckpointView]]:
    """Return what is shown one by one, what is not done and the newest safe ones, and the rest."""
    chosen: list[CheckpointView] = []
    rest: list[CheckpointView] = []
    safe = 0
    for view in views:
        safe += view.state == "safe"
        is_worth = view.state not in _DONE or (view.state == "safe" and safe <= _MOST_SAFE)
        (chosen if is_worth and len(chosen) < _MOST_ROWS else rest).append(view)
    return chosen, rest


def _newest_first(views: Sequence[CheckpointView]) -> list[CheckpointView]:
    def order(view: CheckpointView) -> tuple[int, float, int]:
        return (-1 if view.step is None else view.step, view.saved_at or 0.0, view.edition)

    return sorted(views, key=order, reverse=True)


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


def _detail(view: CheckpointView, moment: Moment) -> str:
    size = f"{size_words(view.bytes)} in {count_words(view.files, 'file')}"
    if view.state == "sealing" and view.reason:
        told = f"100 % of what is here, {view.reason}; {size}"
    elif view.state in _BUSY:
        drawn = f"{bar(view.bytes_stored, view.bytes)} " if moment.has_bars else ""
        told = f"{drawn}{_progress(view, moment)}, {size}"
    elif view.state == "safe":
        told = size + (f", whole by {view.evidence}" if view.evidence else "")
    else:
        told = f"{view.reason or MEANING.get(view.state, '')}; {size}"
    if view.retry_at is not None:
        wait = view.retry_at - moment.now
        told += f"; tried again in {duration_words(wait)}" if wait > 0 else "; tried again now"
    return told


def _progress(view: CheckpointView, moment: Moment) -> str:
    """Return ``61 %, 12 s left``; 100 % only when every byte is stored."""
    if view.state == "sealing":
        return "100 %, being checked"
    share = 100 * view.bytes_stored // view.bytes if view.bytes else 100
    if moment.rate <= 0:
        return f"{share} %"
    left = (view.bytes - view.bytes_stored) / moment.rate
    return f"{share} %, {duration_words(left)} left"
