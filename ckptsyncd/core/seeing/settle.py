"""Is a checkpoint whole? A pure function over what the last look found.

Evidence, strongest first: *explicit* (a user said so), *rename* (it arrived whole under its name,
or was whole under another), *marker* (the file that its framework writes last is newer than all
others), *format* (one file, nobody writes it, its end mark is there), *shape* (the same files as
its siblings, as large), *quiet* (nothing open, nothing changed for a while), *copy* (it is
rewritten faster than it could be uploaded: what is there at this moment is whole, and is copied
aside).

Never whole: a file that somebody holds open, that is broken or empty, a numbered set with a number
missing, an index that names a file that is not there, a checkpoint that files are being removed
from, a known layout without its marker.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ckptsyncd.core.seeing.copied import copied, grown
from ckptsyncd.core.seeing.layouts.base import Marker, fits
from ckptsyncd.core.seeing.layouts.files import DATA_FILE
from ckptsyncd.core.seeing.listed import contradiction, gap
from ckptsyncd.core.seeing.marks import is_asked_for, marks_for, missing_mark
from ckptsyncd.core.seeing.shapes import is_same, lacking, normal, shape_of
from ckptsyncd.core.seeing.view import (
    Held,
    MemberView,
    Parked,
    Patience,
    Verdict,
    View,
    Waits,
    Whole,
)

#: Where no lease tells whether somebody writes: this much longer after the last change (the late
#: closes that were seen came within 110 ms, those under a final name within 42 ms).
UNKNOWN_WRITER_SECONDS = 0.15


def judge(view: View, patience: Patience) -> Verdict:
    """Return whether the checkpoint is whole, or what is missing."""
    verdict = (
        _held(view)
        or _broken_off(view, patience)
        or _said_so(view)
        or _unsure(view, patience)
        or _ruled_out(view, patience)
        or _evidence(view, patience)
    )
    if isinstance(verdict, Whole) and view.is_torn and verdict.evidence != "explicit":
        return Whole("copy", is_copy=True)
    return verdict


def _said_so(view: View) -> Verdict | None:
    if view.is_explicit:
        return Whole("explicit", is_copy=view.is_torn)
    return Whole(view.trusted, view.trusted == "copy") if view.trusted else None


def _evidence(view: View, patience: Patience) -> Verdict:
    """Return the strongest evidence that there is, or what the weakest waits for."""
    if view.is_arrived and not _unmarked(view):
        return Whole("rename")
    if view.is_unveiled:
        return Whole("marker")
    for marker in view.markers:
        verdict = _marked(view, marker, patience)
        if not isinstance(verdict, Whole):
            return grown(view, patience) or copied(view, patience) or verdict
    if any(m.seals and is_asked_for(m, view.members) for m in view.markers):
        return Whole("marker")
    if view.is_single and _has_end(view.members[0]):
        return Whole("format")
    return grown(view, patience) or _patient(view, patience)


# What rules it out ------------------------------------------------------------------------------


def _held(view: View) -> Held | None:
    for member in view.members:
        if member.look is not None and member.look.writer == "open":
            name = member.look.writer_name
            return Held(f"{member.rel} is held open for writing" + (f" by {name}" if name else ""))
    for look in view.works:
        if look.writer == "open":
            return Held(f"a temporary file in it is being written: {look.fact.path}")
    return None


def _broken_off(view: View, patience: Patience) -> Verdict | None:
    reason = _broken(view.members)
    if not reason:
        return None
    end = _still_since(view) + patience.quiet
    if _doubtful(view) and view.looked_at < end:
        return Waits(end, reason)
    return Parked(reason, is_broken=True)


def _broken(members: Iterable[MemberView]) -> str:
    for member in members:
        fault = member.look.fault if member.look is not None else ""
        if fault:
            kind = "" if fault.startswith("unreadable") else "truncated: "
            return f"{kind}{member.rel}: {fault}"
        fact = member.fact
        if fact.kind == "file" and fact.size == 0 and fits(DATA_FILE, fact.path):
            return f"truncated: {member.rel} is empty"
    return ""


def _ruled_out(view: View, patience: Patience) -> Verdict | None:
    if view.veil:
        return Waits(None, f"its framework marks it as unfinished: {view.veil}")
    if view.is_frozen:
        because = "files of it were removed and nothing was written since"
        return Parked(f"{because} ({_remedy(view)})")
    missing = gap(view.members) or contradiction(view.layout, view.members)
    if missing and not view.is_share:
        return _or_parked(missing, view, patience)
    end = view.changed_at + patience.quiet
    if view.is_busy and view.looked_at < end:
        return Waits(end, "a temporary file in it is being written")
    return None


def _or_parked(reason: str, view: View, patience: Patience) -> Verdict:
    """Wait for more while it is young, and give up on it after that."""
    end = view.changed_at + patience.quiet
    return Parked(reason) if view.looked_at >= end else Waits(None, reason)


def _remedy(view: View) -> str:
    return f"if it is whole: ckptsyncd commit {view.name}"


# Whether somebody writes ------------------------------------------------------------------------


def _doubtful(view: View) -> list[MemberView]:
    """Return the files of which nobody can tell whether they are being written."""
    return [m for m in _files(view) if m.look is None or m.look.writer == "unknown"]


def _still_since(view: View) -> float:
    """Return since when nothing changed, as far as was seen: a file that grows sends no event."""
    return max((view.changed_at, *(member.seen_at for member in _doubtful(view))))


def _files(view: View) -> Iterator[MemberView]:
    return (m for m in view.members if m.fact.kind == "file")


def _has_end(member: MemberView) -> bool:
    look = member.look
    return look is not None and look.has_end_mark and look.shape == "whole"


def _unsure(view: View, patience: Patience) -> Verdict | None:
    """Wait where no lease tells about writers: long, where nothing else tells of them either."""
    doubtful = _doubtful(view)
    if not doubtful:
        return None
    if _has_ended(view):
        end = view.changed_at + UNKNOWN_WRITER_SECONDS
    elif all(_has_end(member) for member in doubtful):
        end = _still_since(view) + UNKNOWN_WRITER_SECONDS
    else:
        end = _still_since(view) + patience.quiet
    if view.looked_at >= end:
        return None
    return Waits(end, "who writes it cannot be told here: waiting for quiet")


def _has_ended(view: View) -> bool:
    """Return whether its framework did what it does when nobody writes any more.

    It renamed a directory into place, or wrote its marker, for which all ranks had waited. A single
    file may be renamed before it is closed.
    """
    if view.is_arrived:
        return not view.is_single and not _unmarked(view)
    asked = [m for m in view.layout.markers if is_asked_for(m, view.members)]
    is_behind_barrier = any(m.seals for m in asked) and not any(m.ranks for m in asked)
    return is_behind_barrier and not view.stale and not missing_mark(view.layout, view.members)


# Markers ----------------------------------------------------------------------------------------


def _unmarked(view: View) -> bool:
    asked = (m for m in view.markers if m.seals and is_asked_for(m, view.members))
    return any(not marks_for(m, view.members) for m in asked)


def _marked(view: View, marker: Marker, patience: Patience) -> Verdict:
    """Return Whole where this marker holds, or what it waits for."""
    if not is_asked_for(marker, view.members):
        return Whole("marker")
    reason = missing_mark(view.layout, view.members, view.markers)
    if reason:
        return _or_parked(f"{reason} ({_remedy(view)})", view, patience)
    mark = max(marks_for(marker, view.members), key=lambda m: (m.event, m.ctime_ns))
    end = mark.changed_at + patience.grace
    if view.looked_at >= end:
        return Whole("marker")
    if view.stale:
        return Waits(end, f"{view.stale[0]} is older than this save")
    if marker.ranks and not _all_ranks(view, marker):
        return Waits(end, "other ranks may still write their files")
    return Whole("marker")


def _all_ranks(view: View, marker: Marker) -> bool:
    """Return whether every rank that was ever seen has written its file in this save."""
    there = {m.rel for m in view.members if fits(marker.ranks, m.rel)}
    if not there:
        return True
    known = {rel for rel in view.model or () if fits(marker.ranks, rel)}
    return known <= there and (bool(known) or view.is_complete_again)


# Patience ---------------------------------------------------------------------------------------


def _patient(view: View, patience: Patience) -> Verdict:
    idle = view.looked_at - view.changed_at
    fresh = [(m.rel, m.fact) for m in view.members if not m.is_stale]
    shape = shape_of(view.name, fresh)
    lacks = lacking(shape, view.model) if view.model is not None else ""
    fits_model = view.model is not None and is_same(shape, view.model)
    if fits_model and idle >= patience.shape:
        return Whole("shape")
    if _can_copy(view, fits_model=fits_model):
        return Whole("copy", is_copy=True)
    # The mark of a share may lie on another machine: nobody here tells when the last file came.
    ranked = view.layout.ranked or view.markers != view.layout.markers
    quiet = patience.ranks if ranked else patience.quiet
    if lacks:
        quiet += patience.differs
    if idle >= quiet:
        return Whole("quiet, shape differs" if lacks else "quiet")
    if fits_model:
        return Waits(view.changed_at + patience.shape, "waiting for quiet")
    reason = _lacks(view, lacks) if lacks else "waiting for quiet"
    return Waits(view.changed_at + quiet, reason)


def _lacks(view: View, what: str) -> str:
    old = next((m.rel for m in view.members if m.is_stale and normal(m.rel, view.name) == what), "")
    if old:
        return f"its siblings have {what}, and {old} is older than this save"
    return f"its siblings have {what}, this one does not yet"


def _can_copy(view: View, *, fits_model: bool) -> bool:
    """Return whether what is there now is a save as a whole, though it is never quiet."""
    if not (view.is_overdue or view.is_torn):
        return False
    if view.is_single:
        return view.is_rewritten or view.is_complete_again or view.is_torn
    return fits_model or view.is_complete_again or view.is_rewritten
