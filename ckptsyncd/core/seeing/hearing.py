"""What events and listings do to the eyes' memory. Nothing is judged here."""

from __future__ import annotations

from ckptsyncd.core.facts import FileFact
from ckptsyncd.core.messages import Scanned, Touched
from ckptsyncd.core.seeing.gaze import Departed, Gaze
from ckptsyncd.core.seeing.tree import Place, is_below, name_of, parent, root_of
from ckptsyncd.core.seeing.units import Unit

#: The two halves of a rename are heard within this time. A name that is gone for longer was
#: removed, and its inode may be that of the next arrival (20 ms later in one trace).
PAIR_SECONDS = 0.01

# Events -----------------------------------------------------------------------------------------


def touched(gaze: Gaze, message: Touched, now: float) -> None:
    """Take in one event."""
    departed = gaze.departed if _is_pair(gaze.departed, now) else None
    gaze.departed, gaze.heard_at = None, now
    path = message.path
    if message.gone:
        _gone(gaze, path, now)
        return
    has_arrived = message.arrived and (departed is None or departed.was_temporary)
    if message.tree:
        gaze.scans.want(path, now)
        if has_arrived:
            gaze.arrivals[path] = (gaze.seq, now)
        elif message.arrived and departed is not None and departed.was_unit:
            # A checkpoint under another name is still one.
            _keep_together(gaze, path)
    place = gaze.place(path, is_folder=message.tree)
    if place.kind == "temporary":
        unit = gaze.census.units.get(place.unit)
        if unit is not None:
            unit.worked = gaze.seq
            unit.work(path)
            gaze.stir(unit, gaze.seq, now)
    elif place.kind == "veil":
        _veiled(gaze, path, now)
    elif message.tree or place.kind == "ignored":
        return
    elif place.kind == "member":
        doubt = departed.inode if departed is not None and message.arrived else 0
        _member_touched(gaze, place, path, now, has_arrived=has_arrived, doubt=doubt)
    else:
        gaze.bystanders.touched(path, now, is_pointer=place.kind == "pointer")


def _is_pair(departed: Departed | None, now: float) -> bool:
    return departed is not None and now - departed.at <= PAIR_SECONDS


def _is_one(gaze: Gaze, path: str) -> bool:
    """Return whether all that is in a directory belongs to one checkpoint."""
    place = gaze.place(path, is_folder=True)
    return bool(place.unit) and place.scope == "tree"


def _keep_together(gaze: Gaze, path: str) -> None:
    if not _is_one(gaze, path):
        gaze.tree.claim(path)
        gaze.reseat()


def _member_touched(
    gaze: Gaze, place: Place, path: str, now: float, *, has_arrived: bool, doubt: int
) -> None:
    unit = gaze.obtain(place)
    unit.has_returned |= gaze.census.member(unit, path).touch(gaze.seq, now)
    unit.is_found = False
    if path == root_of(unit.name) and (has_arrived or doubt):
        unit.arrived, unit.arrived_at, unit.doubt = gaze.seq, now, 0 if has_arrived else doubt
    elif unit.arrived and now - unit.arrived_at <= gaze.policy.rename_seconds:
        # The close that follows a rename is part of it.
        unit.arrived = gaze.seq
    else:
        unit.arrived = 0
    gaze.stir(unit, gaze.seq, now)


def _veiled(gaze: Gaze, path: str, now: float) -> None:
    for name in gaze.tree.veiled_units(path):
        gaze.veils[name] = path
        unit = gaze.census.units.get(name)
        if unit is not None:
            unit.unveiled = 0
            gaze.stir(unit, gaze.seq, now)


def _gone(gaze: Gaze, path: str, now: float) -> None:
    place = gaze.tree.place(path, learns=False)
    gaze.depart(path)
    gaze.arrivals.pop(path, None)
    unit_there = gaze.census.units.get(place.unit)
    was_unit = (
        root_of(place.unit) == path and unit_there is not None and len(unit_there.members) > 1
    )
    gaze.departed = Departed(now, place.kind in ("temporary", "ignored"), was_unit=was_unit)
    if place.kind == "veil":
        _unveiled(gaze, path, now)
    elif place.kind != "member":
        gaze.bystanders.forget(path)
    for unit in gaze.census.under(path):
        for member in [p for p in unit.members if is_below(p, path)]:
            _member_gone(gaze, unit, member, now)
    if unit_there is not None:
        _member_gone(gaze, unit_there, path, now)


def _member_gone(gaze: Gaze, unit: Unit, path: str, now: float) -> None:
    unit.works.pop(path, None)
    member = unit.members.get(path)
    if member is not None and member.fact is not None:
        was_unit = gaze.departed is not None and gaze.departed.was_unit
        gaze.departed = Departed(now, False, inode=member.fact.inode, was_unit=was_unit)
    unit.drop(path, gaze.seq)
    unit.arrived = 0
    gaze.stir(unit, gaze.seq, now)


def _unveiled(gaze: Gaze, path: str, now: float) -> None:
    for name in gaze.tree.veiled_units(path):
        unit = gaze.census.units.get(name)
        if gaze.veils.pop(name, None) is not None and unit is not None:
            unit.unveiled = gaze.seq
            gaze.stir(unit, gaze.seq, now)


# Listings ---------------------------------------------------------------------------------------


def scanned(gaze: Gaze, message: Scanned, now: float) -> None:
    """Take in a listing: what is new, what changed without an event, what is gone."""
    asked = gaze.scans.answered(message.errand, now, failed=bool(message.error))
    if asked is None or message.error:
        return
    path = message.path
    first = not gaze.scanned_once and path == "" and message.recursive
    _claim_arrival(gaze, message)
    seen = set()
    for fact in message.facts:
        if fact.kind == "directory" or gaze.is_outdated(fact.path, asked):
            continue
        if gaze.is_old_news(fact) or _found(gaze, fact, asked, now, first=first):
            seen.add(fact.path)
    units = _units_listed(gaze, message)
    seen |= _also_there(gaze, message, units, seen)
    for unit in units:
        known = list(unit.members.values())
        scope = [m for m in known if is_below(m.path, path) and m.path not in seen]
        if not message.recursive:
            scope = [m for m in scope if parent(m.path) == path]
        drop_missing(gaze, unit, [m.path for m in scope], asked, now)
    arrival = gaze.arrivals.pop(path, None)
    if arrival is not None:
        _mark_arrived(gaze, path, arrival)
    if path == "" and message.recursive:
        gaze.bystanders.prune(path, seen)
        gaze.scanned_once = True
        gaze.rescans += 1
        gaze.lessons_placed = gaze.tree.lessons


def _also_there(gaze: Gaze, message: Scanned, units: list[Unit], seen: set[str]) -> set[str]:
    """Return what is kept and was listed although nothing new was found of it.

    Most of a large tree is not kept, and is read a second time only where something is missing.
    """
    kept = {path for unit in units for path in unit.members if path not in seen}
    if message.path == "" and message.recursive:
        kept |= {path for path in gaze.bystanders.prints if path not in seen}
    return {fact.path for fact in message.facts if fact.path in kept} if kept else kept


def _found(gaze: Gaze, fact: FileFact, asked: int, now: float, *, first: bool) -> bool:
    """Take in one that is new or not known to be old; return whether anything is kept of it."""
    place = gaze.place(fact.path)
    if place.kind == "ignored":
        return False
    if place.kind == "temporary":
        unit = gaze.census.units.get(place.unit)
        if unit is not None:
            unit.work(fact.path)
        return False
    if place.kind == "veil":
        if not all(name in gaze.veils for name in gaze.tree.veiled_units(fact.path)):
            _veiled(gaze, fact.path, now)
        return False
    if place.kind == "member" and not is_link_beside(place.unit, fact):
        is_new = place.unit not in gaze.census.units
        unit = gaze.obtain(place)
        unit.is_found |= is_new and first
        absorb(gaze, unit, fact, asked, now, is_first=first)
        return True
    is_pointer = place.kind == "pointer" or gaze.names_checkpoint(fact)
    if gaze.bystanders.scanned(fact, now, is_pointer=is_pointer, first=first):
        gaze.tell(fact, is_pointer=is_pointer)
        return True
    return False


def absorb(
    gaze: Gaze, unit: Unit, fact: FileFact, asked: int, now: float, *, is_first: bool = False
) -> None:
    """Note what a member is; a change that no event told is as good as an event."""
    member = gaze.census.member(unit, fact.path)
    unit.weight = unit.weight if member.fact == fact else None
    was_known = member.fact is not None
    if not member.learn(fact, asked, now):
        return
    unit.is_found = unit.is_found and is_first
    if was_known:
        unit.arrived = 0
    if is_first and unit.is_found:
        unit.stir(asked, now)
        unit.state = "writing"
        gaze.set_due(unit, now, until=now)
    else:
        gaze.stir(unit, asked, now)


def drop_missing(gaze: Gaze, unit: Unit, paths: list[str], asked: int, now: float) -> None:
    """Note that members were not there any more at count ``asked``."""
    gone = [p for p in paths if max(unit.members[p].touched, unit.members[p].known) <= asked]
    for path in gone:
        # Not now, but after it was last known: what was found since may have been written later.
        known = max(unit.members[path].touched, unit.members[path].known)
        unit.drop(path, min(known + 1, asked))
    if gone:
        unit.arrived = 0
        gaze.stir(unit, asked, now)


def is_link_beside(name: str, fact: FileFact) -> bool:
    """Return whether a fact is a link in a checkpoint's own place, not a member of one."""
    return fact.kind == "symlink" and fact.path == root_of(name)


def _units_listed(gaze: Gaze, message: Scanned) -> list[Unit]:
    path = message.path
    units = gaze.census.under(path)
    around = gaze.census.units.get(gaze.tree.place(path, is_folder=True).unit) if path else None
    if around is not None and around not in units:
        units.append(around)
    if not message.recursive:
        units = [unit for unit in units if unit.scope != "tree" or unit.name == name_of(path)]
    return units


# Arrivals ---------------------------------------------------------------------------------------


def _claim_arrival(gaze: Gaze, message: Scanned) -> None:
    """Make a directory that arrived whole one checkpoint, unless it holds several."""
    path = message.path
    if path not in gaze.arrivals or _is_one(gaze, path):
        return
    places = [gaze.place(f.path) for f in message.facts if f.kind != "directory"]
    units = {place.unit for place in places if place.kind == "member"}
    if units and not any(gaze.tree.is_save(unit) for unit in units):
        gaze.tree.claim(path)
        gaze.reseat()


def _mark_arrived(gaze: Gaze, path: str, arrival: tuple[int, float]) -> None:
    count, at = arrival
    for unit in gaze.census.under(path):
        if unit.scope == "tree" and all(m.touched <= count for m in unit.members.values()):
            unit.arrived, unit.arrived_at = count, at
            gaze.look_soon(unit, max(at, gaze.now - gaze.policy.rename_seconds))


# The rest ---------------------------------------------------------------------------------------


def looked_aside(gaze: Gaze, facts: tuple[FileFact, ...]) -> None:
    """Take in a look at pointers and companions: tell those that changed."""
    files = [fact for fact in facts if fact.kind != "directory"]
    for fact in gaze.bystanders.looked(files):
        place = gaze.tree.place(fact.path, learns=False)
        unit = gaze.census.units.get(place.unit)
        is_aside = unit is not None and unit.state == "aside"
        if not place.unit or is_aside or is_link_beside(place.unit, fact):
            gaze.tell(fact, is_pointer=place.kind == "pointer")


def overflowed(gaze: Gaze, now: float) -> None:
    """List everything; trust no order of events that was not looked at before some were lost."""
    gaze.overflows += 1
    gaze.scans.want("", now)
    for name in list(gaze.open):
        unit = gaze.census.units[name]
        for member in unit.members.values():
            if member.touched > member.known:
                member.touched = member.event = 0
        gaze.stir(unit, gaze.seq, now)


def commit_requested(gaze: Gaze, path: str, now: float) -> None:
    """Take a user's word that what lies at this path is whole."""
    path = path.strip("/")
    as_folder = gaze.place(path, is_folder=True)
    name = as_folder.unit or gaze.place(path).unit
    if not name:
        name = name_of(path)
        gaze.tree.claim(path)
        gaze.reseat()
    unit = gaze.census.units.get(name)
    if unit is None:
        gaze.explicit.add(name)
        gaze.scans.want(path, now)
        return
    unit.is_explicit = True
    gaze.look_soon(unit, now)
