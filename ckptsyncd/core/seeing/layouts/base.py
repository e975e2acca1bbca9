"""What a layout is: data that says how a framework lays a checkpoint out on disk.

All patterns are regular expressions that must match a whole string. A *unit* is what is restored as
one thing (a checkpoint); its *members* are its files. Patterns for members see the path relative to
the unit's directory (of a unit that is a single file or a group of files: the file's name).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal


@dataclass(frozen=True, slots=True)
class Marker:
    """A member that the framework writes after others, and what it proves.

    ``path``: the marker. ``when``: asked for only where a member matches this (empty: always).
    ``over``: the members that must not be newer than it. ``ranks``: members that other ranks write
    without a barrier: they may be newer, and are waited for during the grace. ``seals``: nothing
    follows it, so a unit with it is whole at once; otherwise it is only one condition more.
    """

    path: str
    when: str = ""
    over: str = r"(?s:.*)"
    ranks: str = ""
    seals: bool = True


@dataclass(frozen=True, slots=True)
class Layout:
    """One way of writing checkpoints. The first layout of a list that fits is a unit's layout.

    ``read_from`` names the versions whose traces or sources it was written from.
    ``folder``: names of directories that are units by their name alone; ``weak`` ones stop being
    units when other units turn up inside them (a run directory called ``42``).
    ``file``: names of files that are units. ``group``: names of files that belong together; the
    named group ``unit`` is the unit's name.
    ``signs``: the layout is recognised when each of these matches some member. ``claims``: such a
    directory becomes a unit whatever its name; with all that is below it (``tree``), or only with
    those of its own files that ``members`` matches (``flat``).
    ``markers``: what is written last; all must hold. ``ranked``: several ranks write without a
    barrier that could be seen, so quiet takes longer.
    ``unfinished``: a file beside the unit (named group ``unit``) that exists while it is written.
    ``pointers``: files beside units that name one. ``streams``: files that grow for the whole run.
    ``temporary``: names, of files and directories, of what is being written or was left behind.
    They never count, but while somebody writes one inside a unit, that is not whole.
    ``ignored``: names that never count at all.
    ``step``: the number in the unit's name (first group), where the usual rule would be wrong.
    """

    name: str
    read_from: str
    folder: str = ""
    weak: bool = False
    file: str = ""
    group: str = ""
    signs: tuple[str, ...] = ()
    claims: Literal["", "tree", "flat"] = ""
    members: str = r"(?s:.*)"
    markers: tuple[Marker, ...] = ()
    ranked: bool = False
    unfinished: str = ""
    pointers: str = ""
    streams: str = ""
    temporary: str = ""
    ignored: str = ""
    step: str = ""


@lru_cache(maxsize=4096)
def pattern(text: str) -> re.Pattern[str]:
    """Return the compiled pattern; a dot matches every character, for names have newlines too."""
    return re.compile(text, re.DOTALL)


def fits(text: str, name: str) -> bool:
    """Return whether the whole name matches the pattern; an empty pattern matches nothing."""
    return bool(text) and pattern(text).fullmatch(name) is not None


def any_of(patterns: list[str]) -> str:
    """Return one pattern that matches what any of these matches (named groups stay apart)."""
    return "|".join(f"(?:{text})" for text in patterns if text)


#: A number that stands for training progress, best evidence first; the first that is found counts.
STEPS = (
    r"(?:^|[^a-z])(?:.?global_)?s?step[-_=]?(\d+)",
    r"(?:^|[^a-z])iter(?:ation)?[-_=]?(\d+)",
    r"(\d+)[-_]steps?(?![a-z])",
    r"(?:^|[^a-z])ba(\d+)",
    r"(?:^|[^a-z])e?epoch[-_=]?(\d+)",
    r"(?:^|[^a-z])ep(\d+)",
    r"(?:^|[^a-z])(?:checkpoint|ckpt)[-_=]?(\d+)(?![-_.]?\d)",
    r"^(\d+)(?=\.|$)",
    r"^[a-z]+(\d+)\.[a-z.]+$",
    r"[-_](\d+)(?=[-_]\d+\.\d+\.[a-z]|\.[a-z.]+[a-z5]$|$)",
)


def step_of(name: str, rule: str = "") -> int | None:
    """Return the training step that a unit's name tells (``checkpoint-500``: 500), if it does.

    ``rule`` is a layout's own pattern.
    """
    base = name.rpartition("/")[2].lower()
    for text in (rule,) if rule else STEPS:
        found = pattern(text).search(base)
        if found is not None:
            return int(found.group(1))
    return None
