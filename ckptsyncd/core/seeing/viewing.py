"""A unit as ``settle`` sees it: frozen values, made from what the eyes remember."""

from __future__ import annotations

from collections.abc import Iterator

from ckptsyncd.core.facts import Listing
from ckptsyncd.core.rules.policy import Policy
from ckptsyncd.core.seeing.marks import Written, is_done
from ckptsyncd.core.seeing.shapes import Shape
from ckptsyncd.core.seeing.tree import root_of
from ckptsyncd.core.seeing.units import Member, Unit
from ckptsyncd.core.seeing.view import MemberView, View


def marks_of(unit: Unit) -> Iterator[Written]:
    """Yield when each member was written as far as events tell, without any look."""
    return (
        Written(
            rel=member.rel,
            event=member.touched if member.touched > member.known else member.event,
            ctime_ns=member.ctime_ns,
            mtime_ns=member.fact.mtime_ns if member.fact is not None else 0,
            is_stale=bool(unit.edition) and max(member.seen, member.touched) < unit.edition,
        )
        for member in unit.members.values()
    )


def is_torn(unit: Unit, policy: Policy, now: float) -> bool:
    """Return whether it changed under too many uploads, or for too long."""
    first = unit.first_void_at
    too_long = first is not None and now - first >= policy.max_wait_seconds
    return too_long or unit.voids >= policy.max_wait_saves


def is_overdue(unit: Unit, policy: Policy, now: float) -> bool:
    """Return whether it has been rewritten for too long without ever settling.

    A first save that takes long is not: nothing in it comes again, and nobody is to disturb it.
    """
    since = unit.unsafe_since
    if since is None or now - since < policy.max_wait_seconds:
        return False
    was_whole = unit.settled is not None or unit.handled is not None
    return was_whole or unit.has_returned or is_single(unit)


def view_of(unit: Unit, policy: Policy, model: Shape | None, veil: str, trusted: str) -> View:
    """Return the unit as its last look found it.

    ``trusted`` is the evidence on which this very content settled before, if it did.
    """
    seen = (_member(unit, member) for _, member in sorted(unit.members.items()))
    members = tuple(member for member in seen if member is not None)
    at = unit.looked_at
    return View(
        name=unit.name,
        layout=unit.layout,
        members=members,
        looked_at=at,
        changed_at=unit.changed_at,
        is_single=is_single(unit),
        is_arrived=unit.arrived > 0,
        is_explicit=unit.is_explicit or is_done(policy.done_file, members),
        trusted=trusted,
        is_frozen=is_frozen(unit),
        works=tuple(look for look in unit.works.values() if look is not None),
        is_busy=unit.worked > max((m.touched for m in unit.members.values()), default=0),
        is_unveiled=unit.unveiled > max((m.seen for m in unit.members.values()), default=0),
        veil=veil,
        model=model,
        is_grown=_is_grown(unit),
        is_complete_again=_is_complete_again(unit),
        is_rewritten=bool(unit.members) and all(m.is_rewritten for m in unit.members.values()),
        is_overdue=is_overdue(unit, policy, at),
        is_torn=is_torn(unit, policy, at),
        is_share=policy.is_joint,
    )


def is_single(unit: Unit) -> bool:
    """Return whether it is one file."""
    return unit.scope == "tree" and list(unit.members) == [root_of(unit.name)]


def is_frozen(unit: Unit) -> bool:
    """Return whether files were removed from it, and nothing was written since.

    What one listing finds both missing and new may have come in either order.
    """
    return unit.removed > 0 and all(m.seen < unit.removed for m in unit.members.values())


def is_rotated(unit: Unit) -> bool:
    """Return whether files were removed from known content, and nothing else happened to it."""
    if not is_frozen(unit):
        return False
    rest = {member.fact for member in unit.members.values()}
    known = (listing for listing in (unit.settled, unit.handled) if listing is not None)
    return any(rest <= set(listing.files) for listing in known)


def _member(unit: Unit, member: Member) -> MemberView | None:
    if member.fact is None:
        return None
    return MemberView(
        rel=member.rel,
        fact=member.fact,
        look=member.look if member.look is not None and member.look.fact == member.fact else None,
        event=member.event,
        ctime_ns=member.ctime_ns,
        mtime_ns=member.fact.mtime_ns,
        changed_at=member.changed_at,
        seen_at=member.seen_at,
        is_stale=bool(unit.edition) and member.seen < unit.edition,
    )


def _is_grown(unit: Unit) -> bool:
    """Return whether it holds all of what was whole, unchanged, and more."""
    known = (listing for listing in (unit.settled, unit.handled) if listing is not None)
    fewer = [listing for listing in known if len(listing.files) < len(unit.members)]
    facts = {member.fact for member in unit.members.values()} if fewer else set()
    return any(facts.issuperset(listing.files) for listing in fewer)


def _is_complete_again(unit: Unit) -> bool:
    before = _known(unit)
    if before is None or not unit.edition:
        return False
    is_stale = any(member.seen < unit.edition for member in unit.members.values())
    return not is_stale and all(fact.path in unit.members for fact in before.files)


def _known(unit: Unit) -> Listing | None:
    return unit.settled if unit.settled is not None else unit.handled
