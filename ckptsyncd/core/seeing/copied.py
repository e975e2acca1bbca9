"""What is whole although its marker is not its newest file: it was copied, or added to.

``rsync``, a checkout or a bucket's client write files in the order of their names: a marker comes
before what it stands for, and its event and its ctime say nothing. Where the copy kept the files'
own times, those still tell in which order the framework wrote them.
"""

from __future__ import annotations

from ckptsyncd.core.seeing.layouts.base import Marker, fits
from ckptsyncd.core.seeing.marks import is_asked_for
from ckptsyncd.core.seeing.shapes import is_same, shape_of
from ckptsyncd.core.seeing.view import Patience, Verdict, View, Waits, Whole


def grown(view: View, patience: Patience) -> Verdict | None:
    """Take what was whole, and to which files were added since, for whole when it is quiet.

    Where ranks could write another save they may be late.
    """
    if not view.is_grown:
        return None
    is_quick = not (view.layout.ranked or view.layout.markers)
    end = view.changed_at + (patience.quiet if is_quick else patience.ranks)
    if view.looked_at >= end:
        return Whole("quiet")
    return Waits(end, "files were added to what was whole: waiting for quiet")


def copied(view: View, patience: Patience) -> Verdict | None:
    """Take a copy that was made in another order for whole, if all of it must be there.

    Its files kept their times, and by these its marker is the newest; and it has what its siblings
    have, or what its marker lists.
    """
    fresh = [(m.rel, m.fact) for m in view.members]
    fits_model = view.model is not None and is_same(shape_of(view.name, fresh), view.model)
    is_all_there = fits_model or _is_listed_by_mark(view)
    if not (is_all_there and _is_in_order(view)):
        return None
    end = view.changed_at + patience.quiet
    if view.looked_at >= end:
        return Whole("shape" if fits_model else "marker")
    return Waits(end, "its files have older times than this disk: waiting for quiet")


def _is_in_order(view: View) -> bool:
    """Return whether every mark that is asked for is newest by mtime of all that it stands for.

    A file that was written in place since has a newer time; so has one whose copy is under way.
    """
    asked = [marker for marker in view.markers if is_asked_for(marker, view.members)]
    return bool(asked) and all(_is_newest(marker, view) for marker in asked)


def _is_newest(marker: Marker, view: View) -> bool:
    marks = [m.fact.mtime_ns for m in view.members if fits(marker.path, m.rel)]
    over = (m for m in view.members if fits(marker.over, m.rel) and not fits(marker.ranks, m.rel))
    return bool(marks) and all(m.fact.mtime_ns <= max(marks) for m in over)


def _is_listed_by_mark(view: View) -> bool:
    """Return whether a mark itself says which files there are; that they are was asked before."""
    marks = (m for m in view.members if any(fits(x.path, m.rel) for x in view.markers))
    return any(m.look is not None and m.look.lists for m in marks)
