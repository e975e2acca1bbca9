"""From a look to a verdict, and what follows from the verdict."""

from __future__ import annotations

from collections.abc import Iterator

from ckptsyncd.core.facts import FileFact
from ckptsyncd.core.messages import Looked
from ckptsyncd.core.seeing.gaze import Gaze
from ckptsyncd.core.seeing.hearing import absorb, drop_missing, is_link_beside
from ckptsyncd.core.seeing.listed import Named, named
from ckptsyncd.core.seeing.marks import is_done, missing_mark
from ckptsyncd.core.seeing.settle import judge
from ckptsyncd.core.seeing.tree import root_of
from ckptsyncd.core.seeing.units import ANYTHING, Unit
from ckptsyncd.core.seeing.view import Held, Parked, Verdict, View, Waits, Whole
from ckptsyncd.core.seeing.viewing import (
    is_frozen,
    is_overdue,
    is_rotated,
    is_single,
    is_torn,
    marks_of,
    view_of,
)
from ckptsyncd.core.sightings import Removed, Settled, UnitView

#: A file that somebody holds open is looked at again so long after that, though no event came,
#: twice as late each time (guessed).
HELD_SECONDS = 2.0


def ripen(gaze: Gaze, name: str) -> None:
    """Line a unit up for a look, unless it is known that no look could settle it yet.

    A trainer in the middle of a save is not disturbed for nothing.
    """
    unit = gaze.census.units[name]
    if not unit.members:
        gaze.drop(unit)
        return
    if unit.scope == "group" and unit.layout is ANYTHING:
        _stand_aside(gaze, unit)
        return
    if unit.last_asked < unit.stirred and not _is_pressing(gaze, unit):
        reason = missing_mark(unit.layout, marks_of(unit))
        due = unit.changed_at + _least_quiet(gaze, unit, reason)
        if due > gaze.now:
            unit.reason = f"being written: {reason}" if reason else "waiting for quiet"
            gaze.set_due(unit, due, until=None if reason else due)
            return
    newest = max((m.fact.mtime_ns for m in unit.members.values() if m.fact is not None), default=0)
    gaze.dues.line_up(name, (-unit.changed_at, -newest))


def _is_pressing(gaze: Gaze, unit: Unit) -> bool:
    """Return whether a look may settle it at once, whatever its layout."""
    now = gaze.now
    is_late = is_torn(unit, gaze.policy, now) or is_overdue(unit, gaze.policy, now)
    is_sure = unit.is_explicit or unit.arrived > 0 or unit.unveiled > 0
    is_sure = is_sure or unit.name in gaze.trusted
    is_sure = is_sure or is_done(gaze.policy.done_file, marks_of(unit))
    return is_single(unit) or is_late or is_sure or is_frozen(unit)


def _least_quiet(gaze: Gaze, unit: Unit, reason: str) -> float:
    """Return how long it has to be quiet before any evidence can hold."""
    patience = gaze.patience
    if reason or gaze.veils.get(unit.name):
        return patience.quiet
    if any(marker.seals for marker in unit.layout.markers):
        return 0.0
    if gaze.census.model(unit) is not None:
        return patience.shape
    return patience.ranks if unit.layout.ranked else patience.quiet


def _stand_aside(gaze: Gaze, unit: Unit) -> None:
    """Leave files alone that are named like a part of a group whose main part is not there."""
    unit.state, unit.is_said_removed = "aside", True
    gaze.open.pop(unit.name, None)
    for path in unit.members:
        gaze.bystanders.touched(path, gaze.now, is_pointer=False)


def looked(gaze: Gaze, message: Looked, now: float) -> None:
    """Take in a look at one unit, and judge it if nothing was heard of it since."""
    unit = gaze.census.units.get(message.errand.checkpoint)
    if unit is None or unit.asked is None:
        return
    asked = unit.last_asked = unit.asked
    unit.asked = None
    unit.looked_at = unit.asked_at
    _take_in(gaze, unit, message, asked, now)
    if unit.name not in gaze.census.units:
        return
    if not unit.members:
        gaze.drop(unit)
        return
    verdict = judge(_view(gaze, unit), gaze.patience)
    gaze.held.pop(unit.name, None)
    if isinstance(verdict, Held):
        gaze.held[unit.name] = None
    is_fresh = unit.stirred <= asked and None not in unit.works.values() and not _has_news(unit)
    if is_fresh or (isinstance(verdict, Whole) and verdict.is_copy):
        follow(gaze, unit, verdict)
    else:
        unit.until = None
        gaze.look_soon(unit, max(unit.changed_at, now - gaze.policy.probe_seconds))


def _has_news(unit: Unit) -> bool:
    """Return whether the look found files that it was not asked to examine: they are new."""
    found = (path for path, member in unit.members.items() if member.look is None)
    return any(path not in unit.closely and unit.members[path].needs_look for path in found)


def judge_again(gaze: Gaze, unit: Unit) -> None:
    """Judge what the last look found once more, because what it is judged by changed."""
    if unit.asked is not None or not unit.members:
        return
    if unit.last_asked < unit.stirred:
        gaze.look_soon(unit, unit.changed_at)
    else:
        follow(gaze, unit, judge(_view(gaze, unit), gaze.patience))


def _view(gaze: Gaze, unit: Unit) -> View:
    veil = gaze.veils.get(unit.name, "")
    return view_of(unit, gaze.policy, gaze.census.model(unit), veil, _trusted(gaze, unit))


def _trusted(gaze: Gaze, unit: Unit) -> str:
    """Return the evidence on which this very content settled before, if it did.

    Events that come late, somebody who opens a file and writes nothing, a lost pin, another name:
    none of them makes another save of it.
    """
    listing = unit.listing()
    before = gaze.trusted.get(unit.name, [])
    told = [unit.told] if unit.told is not None else []
    evidence = next((s.evidence for s in (*told, *before) if s.listing == listing), "")
    if listing == unit.handled and evidence in ("", "copy"):
        return "rename"
    return evidence or ("rename" if gaze.contents.has(unit.name, listing) else "")


def _take_in(gaze: Gaze, unit: Unit, message: Looked, asked: int, now: float) -> None:
    facts = {fact.path: fact for fact in message.facts if fact.kind != "directory"}
    facts |= {look.fact.path: look.fact for look in message.looks}
    unit.folders = tuple(_folders(gaze, unit, message))
    links = [fact for fact in facts.values() if is_link_beside(unit.name, fact)]
    for fact in facts.values():
        if fact not in links and _belongs(gaze, unit, fact):
            absorb(gaze, unit, fact, asked, now)
    missing = [path for path in unit.members if path not in facts]
    drop_missing(gaze, unit, missing, asked, now)
    for look in message.looks:
        if look.fact.kind == "file":
            gaze.is_leaseless = look.writer == "unknown"
        member = unit.members.get(look.fact.path)
        if member is not None:
            member.examine(look)
    _take_in_works(unit, message, asked, now)
    root = unit.members.get(root_of(unit.name))
    if root is not None and root.fact is not None and unit.doubt:
        unit.arrived = unit.arrived if root.fact.inode != unit.doubt else 0
        unit.doubt = 0
    for fact in links:
        unit.members.pop(fact.path, None)
        unit.weight = None
        gaze.bystanders.touched(fact.path, now, is_pointer=gaze.names_checkpoint(fact))


def _folders(gaze: Gaze, unit: Unit, message: Looked) -> Iterator[FileFact]:
    """Yield the directories whose files would be the unit's own."""
    for fact in message.facts if unit.scope == "tree" else ():
        if fact.kind == "directory":
            place = gaze.place(f"{fact.path}/x")
            if place.kind == "member" and place.unit == unit.name:
                yield fact


def _take_in_works(unit: Unit, message: Looked, asked: int, now: float) -> None:
    """Note what is under temporary names: one that grows is as good as an event."""
    looks = {look.fact.path: look for look in message.looks}
    for path, before in list(unit.works.items()):
        if path in unit.closely and path not in looks:
            del unit.works[path]
        elif path in looks:
            unit.works[path] = looks[path]
            if before is not None and before.fact != looks[path].fact:
                unit.worked = max(unit.worked, asked)
                unit.stir(asked, now)


def _belongs(gaze: Gaze, unit: Unit, fact: FileFact) -> bool:
    if fact.path in unit.members:
        return True
    place = gaze.place(fact.path)
    if place.kind == "temporary" and place.unit == unit.name:
        unit.work(fact.path)
    return place.kind == "member" and place.unit == unit.name


# Verdicts ---------------------------------------------------------------------------------------


def follow(gaze: Gaze, unit: Unit, verdict: Verdict) -> None:
    """Do what a verdict asks for: tell it, or look again at the right time."""
    if is_frozen(unit):
        _say_removed(gaze, unit)
    quiet_at = unit.changed_at + gaze.patience.quiet
    if isinstance(verdict, Whole):
        _whole(gaze, unit, verdict)
    elif isinstance(verdict, Held):
        pause = min(HELD_SECONDS * 2**unit.held_looks, gaze.policy.sweep_seconds)
        unit.held_looks += 1
        unit.state, unit.reason = "writing", verdict.because
        gaze.set_due(unit, unit.looked_at + pause, until=None)
    elif isinstance(verdict, Waits):
        unit.state, unit.reason = "writing", verdict.because
        again = quiet_at if unit.looked_at < quiet_at else None
        due = verdict.until if verdict.until is not None else again
        gaze.set_due(unit, due, until=verdict.until)
    elif isinstance(verdict, Parked):
        unit.state, unit.reason = "parked", verdict.because
        again = unit.looked_at + gaze.policy.sweep_seconds if verdict.is_broken else None
        gaze.set_due(unit, again, until=None)


def _whole(gaze: Gaze, unit: Unit, verdict: Whole) -> None:
    view = _view(gaze, unit)
    listing = unit.listing()
    unit.state, unit.reason = "whole", ""
    unit.edition, unit.unsafe_since, unit.is_explicit = 0, None, False
    unit.arrived = unit.unveiled = unit.removed = 0
    is_back, unit.is_said_removed = unit.is_said_removed, False
    for member in unit.members.values():
        member.is_rewritten, member.visits = False, 0
    unit.has_returned = False
    gaze.set_due(unit, None, until=None)
    gaze.open.pop(unit.name, None)
    if listing in (unit.settled, unit.handled) and not is_back:
        return
    unit.settled = listing
    if not verdict.is_copy:
        gaze.contents.keep(unit.name, listing)
    by_index = named(unit.layout, unit.name, view.members) if view.is_share else Named()
    unit.told = Settled(
        checkpoint=unit.name,
        series=unit.series,
        step=unit.step,
        layout=unit.layout.name,
        evidence=verdict.evidence,
        listing=listing,
        found=unit.is_found,
        copy=verdict.is_copy,
        stale=view.stale,
        changed_at=unit.changed_at,
        named=by_index.names,
        absent=by_index.absent,
        loose=by_index.loose,
    )
    gaze.news.append(unit.told)


def _say_removed(gaze: Gaze, unit: Unit) -> None:
    if is_rotated(unit) and not unit.is_said_removed:
        unit.is_said_removed = True
        gaze.news.append(Removed(unit.name))


def is_going(unit: Unit) -> bool:
    """Return whether known content is being removed, and no look found yet that it stays so."""
    return unit.state == "writing" and is_rotated(unit)


def unit_view(unit: Unit) -> UnitView:
    """Return how a unit that is not whole stands, for status."""
    return UnitView(
        checkpoint=unit.name,
        series=unit.series,
        step=unit.step,
        layout=unit.layout.name,
        state="parked" if unit.state == "parked" else "writing",
        reason=unit.reason,
        bytes=unit.bytes,
        files=len(unit.members),
        since=unit.unsafe_since if unit.unsafe_since is not None else unit.changed_at,
        until=unit.asked_at if unit.asked is not None else unit.until,
    )
