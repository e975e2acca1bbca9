"""The files that an index or a number names: whether all are there, and as large as it says."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from ckptsyncd.core.facts import FileFact, FileLook
from ckptsyncd.core.seeing.layouts.base import Layout, fits
from ckptsyncd.core.seeing.layouts.files import DATA_FILE

#: The named files may hold this much less than the index says: it counts tensors as they were in
#: memory, and some writers quantise (guessed, as for shapes).
_SMALLEST_SHARE = 0.9

_SET = re.compile(r"(.*?)(\d{5,6})-of-(\d{5,6})(.*)", re.DOTALL)


class Seen(Protocol):
    """A member as the last look found it."""

    @property
    def rel(self) -> str:
        """Its path below the checkpoint."""
        ...

    @property
    def fact(self) -> FileFact:
        """What it is."""
        ...

    @property
    def look(self) -> FileLook | None:
        """What a close look found."""
        ...

    @property
    def is_stale(self) -> bool:
        """Whether it is older than this save."""
        ...


def gap(members: Iterable[Seen]) -> str:
    """Return which number of a numbered set (``-00002-of-00004``) is missing, if any is."""
    sets: dict[tuple[str, int, str], set[int]] = {}
    for member in members:
        found = _SET.fullmatch(member.rel)
        if found is not None and int(found[3]) > 0 and "shard-" not in found[1]:
            sets.setdefault((found[1], int(found[3]), found[4]), set()).add(int(found[2]))
    for (start, count, end), numbers in sorted(sets.items()):
        first = 0 if 0 in numbers else 1
        for number in range(first, first + count):
            if number not in numbers:
                return f"truncated: {start}{number:05d}-of-{count:05d}{end} is missing"
    return ""


def contradiction(layout: Layout, members: Iterable[Seen]) -> str:
    """Return how the files differ from what an index among them says, or nothing."""
    there = {m.rel: m for m in members}
    for member in there.values():
        if member.look is not None and member.look.lists:
            reason = _differs(layout, member, member.look, there)
            if reason:
                return f"truncated: {reason}"
    return ""


def _differs(layout: Layout, index: Seen, look: FileLook, there: Mapping[str, Seen]) -> str:
    folder = posixpath.dirname(index.rel)
    named = [posixpath.join(folder, name) for name in look.lists]
    ours = [rel for rel in named if _is_member(layout, rel)]
    for rel in ours:
        if rel not in there:
            return f"{rel} is missing, which {index.rel} names"
    held = sum(there[rel].fact.size for rel in ours)
    if len(ours) == len(named) and held < look.lists_bytes * _SMALLEST_SHARE:
        return f"{index.rel} names files of {look.lists_bytes} bytes, they hold {held}"
    return ""


@dataclass(frozen=True, slots=True)
class Named:
    """Paths of a share: ``names`` of indexes in it, what of that is not here, what they leave out.

    ``loose``: files with data that no index here names; a mark is none.
    """

    names: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    loose: tuple[str, ...] = ()


def named(layout: Layout, name: str, members: Iterable[Seen]) -> Named:
    """Return what the indexes among the files of one machine's share say of it."""
    there = {m.rel: m for m in members}
    found: set[str] = set()
    for member in there.values():
        folder = posixpath.dirname(member.rel)
        lists = () if member.look is None else member.look.lists
        rels = (posixpath.join(folder, one) for one in lists)
        found |= {rel for rel in rels if _is_member(layout, rel)}
    data = {
        rel
        for rel, member in there.items()
        if member.fact.kind == "file"
        and fits(DATA_FILE, rel)
        and not any(fits(marker.path, rel) for marker in layout.markers)
    }

    def paths(some: set[str]) -> tuple[str, ...]:
        return tuple(sorted(rel if name == "." else f"{name}/{rel}" for rel in some))

    return Named(paths(found), paths(found - there.keys()), paths(data - found))


def _is_member(layout: Layout, rel: str) -> bool:
    """Return whether a file of this name would count as a part of such a checkpoint at all."""
    if layout.group:
        return fits(layout.group, rel)
    return layout.claims != "flat" or fits(layout.members, rel)
