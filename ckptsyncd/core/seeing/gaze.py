"""What the eyes know, and the few things that every part of them does with it."""

from __future__ import annotations

from typing import NamedTuple

from ckptsyncd.core.facts import FileFact
from ckptsyncd.core.rules.policy import Policy
from ckptsyncd.core.seeing.bystanders import Bystanders, print_of
from ckptsyncd.core.seeing.census import Census
from ckptsyncd.core.seeing.contents import Contents
from ckptsyncd.core.seeing.dues import Dues
from ckptsyncd.core.seeing.layouts.base import Layout
from ckptsyncd.core.seeing.scans import Scans
from ckptsyncd.core.seeing.tree import Place, Tree, ancestors, parent
from ckptsyncd.core.seeing.units import Unit
from ckptsyncd.core.seeing.view import Patience
from ckptsyncd.core.seeing.viewing import is_overdue
from ckptsyncd.core.sightings import Removed, Settled, Sighting

#: A unit that is never quiet for long enough is looked at this often all the same (guessed).
OVERDUE_LOOK_SECONDS = 1.0
#: So many names that went are remembered, the newest ones (guessed: no listing takes longer).
MOST_DEPARTURES = 4096


class Departed(NamedTuple):
    """A name that was just removed or renamed away.

    ``inode`` is 0 where it was never looked at; ``was_unit``: a directory that was a checkpoint.
    """

    at: float
    was_temporary: bool
    inode: int = 0
    was_unit: bool = False


class Gaze:
    """The disk as it is remembered, and what is to be looked at when.

    ``seq`` counts what was heard; ``now`` is the latest time that was heard of (boot seconds).
    """

    def __init__(
        self, policy: Policy, layouts: tuple[Layout, ...], exclude: tuple[str, ...]
    ) -> None:
        """Begin with an unknown disk."""
        self.policy = policy
        self.patience = Patience.under(policy, hasty=False)
        self.is_hasty = False
        self.tree = Tree(layouts, exclude)
        self.census = Census(self.tree, layouts)
        self.scans = Scans(policy)
        self.bystanders = Bystanders(policy)
        self.dues = Dues()
        self.seq = 0
        self.now = 0.0
        self.heard_at = float("-inf")
        self.news: list[Sighting] = []
        #: Names of units that are not whole, and of those that somebody holds open.
        self.open: dict[str, None] = {}
        self.held: dict[str, None] = {}
        #: Files that mark a unit (by name) as unfinished.
        self.veils: dict[str, str] = {}
        #: Names that a user said are whole, before anything of them was seen.
        self.explicit: set[str] = set()
        #: What had settled in an earlier life, by name.
        self.trusted: dict[str, list[Settled]] = {}
        #: What was whole under any name.
        self.contents = Contents()
        #: Directories that arrived by a rename, until they are listed: count and time.
        self.arrivals: dict[str, tuple[int, float]] = {}
        #: What the message just before said was gone: a rename comes as a pair.
        self.departed: Departed | None = None
        #: Names that went, and at which count: answers to what was asked before are outdated.
        self.departures: dict[str, int] = {}
        self.departed_last = 0
        self.scanned_once = False
        self.is_root_missing = False
        #: Whether the last look got no lease: then looking can hold up no writer.
        self.is_leaseless = False
        self.overflows = 0
        self.rescans = 0
        #: How much the tree had learnt when everything was last placed.
        self.lessons_placed = -1

    def place(self, path: str, *, is_folder: bool = False) -> Place:
        """Return where a path belongs, after moving everything that this taught us to move."""
        place = self.tree.place(path, is_folder=is_folder)
        if self.tree.changed:
            self.reseat()
            place = self.tree.place(path, is_folder=is_folder)
        return place

    def obtain(self, place: Place) -> Unit:
        """Return the unit of a place, a new one if there was none."""
        unit = self.census.units.get(place.unit)
        if unit is None:
            unit = self.census.obtain(place)
            unit.is_explicit = unit.name in self.explicit
            self.explicit.discard(unit.name)
            self.open[unit.name] = None
            if self.tree.changed:
                self.reseat()
        return unit

    def reseat(self) -> None:
        """Move what lies in directories that became units, or stopped being one."""
        while self.tree.changed:
            folder = self.tree.changed.pop()
            for unit, other in self.census.reseat(folder):
                if other is not None:
                    self.open[other.name] = None
                    self.stir(other, self.seq, max(unit.changed_at, other.changed_at))
                if not unit.members:
                    unit.is_said_removed |= unit.settled is None and unit.handled is None
                    self.drop(unit)
            self.scans.want(folder, self.now)

    def depart(self, path: str) -> None:
        """Note that what has this name is gone by now, with all that is below it."""
        self.departed_last = self.seq
        self.departures.pop(path, None)
        if len(self.departures) >= MOST_DEPARTURES:
            del self.departures[next(iter(self.departures))]
        self.departures[path] = self.seq

    def is_outdated(self, path: str, asked: int) -> bool:
        """Return whether what an answer found under a name went after it was asked for."""
        if self.departed_last <= asked:
            return False
        return any(self.departures.get(name, 0) > asked for name in (path, *ancestors(path)))

    def is_old_news(self, fact: FileFact) -> bool:
        """Return whether this is a bystander that did not change: most of a large tree is."""
        if self.tree.lessons != self.lessons_placed:
            return False
        return self.bystanders.prints.get(fact.path) == print_of(fact)

    def stir(self, unit: Unit, seq: int, now: float) -> None:
        """Note that something happened in a unit; it is looked at when that has calmed down."""
        unit.stir(seq, now)
        unit.held_looks = 0
        if unit.state != "writing":
            unit.state, unit.reason = "writing", "being written"
        self.open[unit.name] = None
        self.look_soon(unit, now)

    def look_soon(self, unit: Unit, now: float) -> None:
        """Have a unit looked at as soon as the trainer would not be disturbed."""
        if unit.asked is not None:
            return
        policy = self.policy
        due = now + (policy.rename_seconds if self.is_leaseless else policy.probe_seconds)
        if unit.arrived:
            due = unit.arrived_at + policy.rename_seconds
        if is_overdue(unit, policy, now):
            due = min(due, max(unit.looked_at + OVERDUE_LOOK_SECONDS, now + policy.rename_seconds))
            if unit.until is not None and unit.until <= due:
                return
        self.set_due(unit, due, until=due)

    def set_due(self, unit: Unit, due: float | None, *, until: float | None) -> None:
        """Have a unit looked at then; ``until`` is when that may settle it."""
        unit.until = until
        self.dues.set(unit.name, due)

    def drop(self, unit: Unit) -> None:
        """Forget a unit that is gone, and tell it."""
        if unit.name not in self.census.units:
            return
        if not unit.is_said_removed:
            self.news.append(Removed(unit.name))
        self.census.drop(unit)
        self.dues.serve(unit.name)
        self.open.pop(unit.name, None)
        self.held.pop(unit.name, None)

    def tell(self, fact: FileFact, *, is_pointer: bool) -> None:
        """Tell the news of one that lies beside."""
        is_pointer = is_pointer or self.names_checkpoint(fact)
        self.news.append(self.bystanders.tell(fact, is_pointer=is_pointer))

    def names_checkpoint(self, fact: FileFact) -> bool:
        """Return whether this is a link whose target is, or is named like, a checkpoint."""
        if fact.kind != "symlink" or not fact.target:
            return False
        target = fact.target.rstrip("/")
        home = parent(fact.path)
        if target.startswith("/"):
            # Where the watch root lies is not known here: the neighbour of that name is meant.
            target = target.rpartition("/")[2]
        path = _resolved(f"{home}/{target}" if home else target)
        if path is None:
            return False
        place = self.tree.place(path, is_folder=True)
        return place.unit == path or self.tree.place(path).unit == path


def _resolved(path: str) -> str | None:
    """Return the path without dots, ``None`` where it leaves the watch root."""
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)
