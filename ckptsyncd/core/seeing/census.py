"""All checkpoints that are on disk, by name and by directory."""

from __future__ import annotations

from collections.abc import Iterator

from ckptsyncd.core.facts import Listing
from ckptsyncd.core.seeing.layouts.base import Layout
from ckptsyncd.core.seeing.shapes import Shape, kind_of, shape_of
from ckptsyncd.core.seeing.tree import Place, Tree, ancestors, name_of, root_of
from ckptsyncd.core.seeing.units import ANYTHING, Member, Unit, relative


class Census:
    """The units, what is known to be safe of each name, and the shape of each series."""

    def __init__(self, tree: Tree, layouts: tuple[Layout, ...]) -> None:
        """Begin with an empty disk."""
        self._tree = tree
        self._layouts = layouts
        self._below: dict[str, set[str]] = {}
        self.units: dict[str, Unit] = {}
        self.handled: dict[str, Listing] = {}
        self.models: dict[str, Shape] = {}

    def obtain(self, place: Place) -> Unit:
        """Return the unit of a place, a new one if there was none."""
        unit = self.units.get(place.unit)
        if unit is None:
            unit = self.units[place.unit] = Unit(place.unit, place.scope, ANYTHING)
            unit.handled = self.handled.get(place.unit)
            self._house(unit)
            self._tree.has_units_below(unit.name)
        elif unit.scope != place.scope:
            self._evict(unit)
            unit.scope = place.scope
            self._house(unit)
        return unit

    def member(self, unit: Unit, path: str) -> Member:
        """Return a unit's member, a new one (which may tell the layout) if it was not known."""
        found = unit.members.get(path)
        if found is None:
            found = unit.member(path)
            unit.choose(self._layouts, found.rel)
        return found

    def drop(self, unit: Unit) -> None:
        """Forget a unit that has no members any more."""
        del self.units[unit.name]
        self.handled.pop(unit.name, None)
        self._evict(unit)

    def under(self, folder: str) -> list[Unit]:
        """Return the units that are this directory or lie below it, sorted by name."""
        names = set(self._below.get(folder, ()))
        if name_of(folder) in self.units:
            names.add(name_of(folder))
        return [self.units[name] for name in sorted(names)]

    def reseat(self, folder: str) -> Iterator[tuple[Unit, Unit | None]]:
        """Move members below a directory to where they belong by now.

        Yields each unit that lost members, with the unit that got them (``None``: they are in no
        checkpoint any more). What a unit has left is the caller's to judge.
        """
        for unit in self.under(folder):
            for path in list(unit.members):
                place = self._tree.place(path)
                if place.kind == "member" and place.unit == unit.name:
                    self.obtain(place)
                    continue
                member = unit.members.pop(path)
                unit.weight = None
                if place.kind != "member":
                    yield unit, None
                    continue
                other = self.obtain(place)
                member.move(other.name)
                other.members[path], other.weight = member, None
                other.choose(self._layouts, member.rel)
                other.changed_at = max(other.changed_at, unit.changed_at)
                other.stirred = max(other.stirred, unit.stirred)
                yield unit, other

    def model(self, unit: Unit) -> Shape | None:
        """Return the shape that checkpoints of this kind had, if any is known."""
        return self.models.get(kind_of(unit.name))

    def keep(self, name: str, listing: Listing) -> None:
        """Note that this content of this name is handled, and what its series looks like."""
        self.handled[name] = listing
        facts = [(relative(name, fact.path), fact) for fact in listing.files]
        self.models[kind_of(name)] = shape_of(name, facts)
        if name in self.units:
            self.units[name].handled = listing

    def _house(self, unit: Unit) -> None:
        for folder in self._homes(unit):
            self._below.setdefault(folder, set()).add(unit.name)

    def _evict(self, unit: Unit) -> None:
        for folder in self._homes(unit):
            names = self._below[folder]
            names.discard(unit.name)
            if not names:
                del self._below[folder]

    def _homes(self, unit: Unit) -> list[str]:
        root = root_of(unit.name)
        return [*ancestors(root), root] if unit.scope == "tree" else ancestors(root)
