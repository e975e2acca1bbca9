"""The snapshot in plain words: one screen for people, one line for the service manager.

Pure: the moment, the width and the colours are arguments. Names come from the disk and may hold
anything, so every line is made printable before it leaves.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from shlex import quote

from ckptsyncd.core.lifecycle import DAEMON_MEANING
from ckptsyncd.core.snapshot import Snapshot
from ckptsyncd.core.words import duration_words, printable, redacted
from ckptsyncd.report.screen import Line, finished
from ckptsyncd.report.status_json import DaemonView
from ckptsyncd.report.status_risk import at_risk, failing_words, tidying, troubles
from ckptsyncd.report.status_series import Moment, all_series, series_of

_MOST_IN_SUMMARY = 3


@dataclass(frozen=True, slots=True)
class Style:
    """How a screen is drawn: as wide as the terminal, with colours and bars where it shows them."""

    width: int = 100
    colour: bool = False
    bars: bool = False


def lines(
    snapshot: Snapshot,
    daemon: DaemonView,
    *,
    now: float,
    style: Style = Style(),
    dead: str = "",
) -> list[str]:
    """Return the screen: series by series, newest first, then what is at risk and what is wrong.

    ``now`` is wall time. ``dead`` says that the daemon does not run any more, and why one thinks
    so; the rest is then what it last knew, without a forecast.
    """
    moment = Moment(now, 0.0 if dead else snapshot.rate_bytes_per_second, has_bars=style.bars)
    found = [*_head(snapshot, daemon, now, dead), *all_series(snapshot, moment), Line("")]
    found += [*at_risk(snapshot, now, is_dead=bool(dead)), *tidying(snapshot.tidying, now)]
    found += troubles(snapshot)
    return finished(found, style.width, colour=style.colour)


def summary(snapshot: Snapshot, now: float) -> str:
    """Return one line: ``running: step 4200 safe 38 s ago; step 4300 at 61 %, 12 s left``."""
    found, moment = series_of(snapshot), Moment(now, snapshot.rate_bytes_per_second)
    parts = [
        (f"{one.title}: " if len(found) > 1 else "") + one.sentence(moment)
        for one in found[:_MOST_IN_SUMMARY]
    ]
    if snapshot.disk_failing:
        parts.insert(0, snapshot.disk_failing)
    if snapshot.store_failing:
        parts.insert(0, f"{failing_words(snapshot)}: {snapshot.store_failing}")
    told = "; ".join(parts) or "nothing seen yet"
    return printable(redacted(f"{snapshot.state}: {told}"))


def _head(snapshot: Snapshot, daemon: DaemonView, now: float, dead: str) -> Iterator[Line]:
    where = f"{daemon.watch_root} -> {daemon.store}"
    if dead:
        age = duration_words(now - snapshot.taken_at)
        yield Line(f"the daemon is dead: {dead}", "bad")
        yield Line(f"what follows is what it knew {age} ago, when it was {snapshot.state}", "warn")
        yield Line(where, "dim")
        yield Line("start it again, and it goes on; or save what is whole in one pass:", "warn")
        yield Line(f"  ckptsyncd sync {quote(daemon.watch_root)} {quote(daemon.store)}", "warn")
        return
    if snapshot.stands:
        yield Line(f"nothing moves, and what follows is old: {snapshot.stands}", "bad")
        yield Line("the disk of its state directory may hang; look at its log", "warn")
    meaning = snapshot.reason or DAEMON_MEANING.get(snapshot.state, "")
    bad = snapshot.state in ("draining", "fenced")
    age = duration_words(now - daemon.started_at)
    yield Line(f"{snapshot.state}: {meaning}", "bad" if bad else "bold")
    yield Line(f"{where} (pid {daemon.pid} on {daemon.host}, up {age})", "dim")
    if snapshot.notice is not None:
        notice = snapshot.notice
        left = _left(snapshot.notice_deadline_at, now)
        yield Line(f"notice from {notice.source}: {notice.text or notice.severity}{left}", "bad")
    elif snapshot.notice_deadline_at is not None:
        yield Line(f"stopping{_left(snapshot.notice_deadline_at, now)}", "warn")


def _left(deadline: float | None, now: float) -> str:
    if deadline is None or not math.isfinite(deadline):
        return ""
    if deadline < now:
        return f", its deadline was {duration_words(now - deadline)} ago"
    return f", {duration_words(deadline - now)} left"
