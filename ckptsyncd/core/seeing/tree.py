"""To which checkpoint a path belongs. Decided for each path by itself, from names and a few signs.

The tree remembers directories that were claimed (by a sign inside, by arriving whole, by a user's
word) and directories that hold checkpoints; it keeps nothing per file. Each question costs as much
as the path is deep, however large the tree is.
"""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ckptsyncd.core.seeing.layouts.base import Layout, any_of, pattern, step_of

Kind = Literal["member", "pointer", "companion", "temporary", "ignored", "veil"]
Scope = Literal["tree", "flat", "group"]

#: So many directories keep their answer at hand (guessed: a few hundred bytes each).
_MOST_FOLDERS = 4096

#: A number in a file's name that is surely training progress.
_PROGRESS = r"(?i)(?:epoch|step|iter|ckpt|checkpoint)[-_=]?\d"


class Place(NamedTuple):
    """Where a path belongs. ``unit`` is a checkpoint's name, empty where it is in none.

    A temporary path inside a checkpoint's directory names that checkpoint: somebody works there.
    ``veil``: a file that marks the checkpoint beside it as unfinished.
    """

    kind: Kind
    unit: str = ""
    scope: Scope = "tree"


class _Folder(NamedTuple):
    """What a directory's path says about everything in it."""

    out: Literal["", "temporary", "ignored"]
    unit: str
    scope: Scope
    members: str = ""


@dataclass(frozen=True, slots=True)
class Claim:
    """A directory (or file) that is a unit whatever its name."""

    scope: Scope
    members: str


def parent(path: str) -> str:
    """Return the directory of a path, empty for the watch root."""
    return path.rpartition("/")[0]


def name_of(folder: str) -> str:
    """Return the checkpoint's name of a unit that is this directory; the watch root is ``.``."""
    return folder or "."


def root_of(unit: str) -> str:
    """Return the path of a checkpoint's name: the opposite of ``name_of``."""
    return "" if unit == "." else unit


def is_below(path: str, folder: str) -> bool:
    """Return whether a path is the directory itself or inside it."""
    return not folder or path == folder or path.startswith(folder + "/")


def ancestors(path: str) -> list[str]:
    """Return the directories above a path, the watch root (empty) first."""
    if not path:
        return []
    parts = path.split("/")[:-1]
    return ["", *("/".join(parts[: i + 1]) for i in range(len(parts)))]


def _nameless(text: str) -> str:
    return text.replace("(?P<unit>", "(?:")


class Tree:
    """Places paths by layouts, the first one first."""

    def __init__(self, layouts: tuple[Layout, ...], exclude: tuple[str, ...] = ()) -> None:
        """Join the layouts' patterns; ``exclude`` are the user's own, as in a shell."""
        join = [any_of([getattr(x, kind) for x in layouts]) for kind in ("folder", "file")]
        self._strong = any_of([x.folder for x in layouts if not x.weak] + join[1:])
        self._named = any_of([x.folder for x in layouts if not x.weak])
        self._weak = any_of([x.folder for x in layouts if x.weak])
        self._file = join[1]
        self._groups = [x.group for x in layouts if x.group]
        self._veils = [x.unfinished for x in layouts if x.unfinished]
        # Most names match none of these: one question for all saves many.
        self._any_group = any_of([_nameless(text) for text in self._groups])
        self._any_veil = any_of([_nameless(text) for text in self._veils])
        self._pointers = any_of([x.pointers for x in layouts])
        self._streams = any_of([x.streams for x in layouts])
        self._temporary = any_of([x.temporary for x in layouts])
        self._ignored = any_of(
            [x.ignored for x in layouts]
            + [fnmatch.translate(text) for text in exclude if "/" not in text]
        )
        self._excluded_paths = any_of([fnmatch.translate(text) for text in exclude if "/" in text])
        self._claimers = [x for x in layouts if x.claims and x.signs]
        self._signs = any_of([sign for x in self._claimers for sign in x.signs])
        self._claims: dict[str, Claim] = {}
        self._hints: dict[str, set[tuple[int, int]]] = {}
        #: Directories that hold units, and those that hold saves of a run by name.
        self._parents: set[str] = set()
        self._runs: set[str] = set()
        self._folders: dict[str, _Folder] = {}
        #: Directories that became units, or stopped being one, since somebody last looked.
        self.changed: list[str] = []
        #: How often that happened: while it stays, every path belongs where it belonged.
        self.lessons = 0

    # Questions ----------------------------------------------------------------------------------

    def place(self, path: str, *, is_folder: bool = False, learns: bool = True) -> Place:
        """Return where a path belongs; may learn from it (``changed`` tells)."""
        folder = self._folder(parent(path))
        base = path.rpartition("/")[2]
        out = folder.out or self._out(path, base)
        if out:
            return Place(out, folder.unit)
        if is_folder:
            return self._place_folder(path)
        if path in self._claims:
            return Place("member", path)
        if pattern(self._streams).fullmatch(base):
            return Place("companion")
        if folder.unit and folder.scope == "tree":
            if not (learns and self._outgrown(base, folder)):
                return Place("member", folder.unit)
            folder = self._folder(parent(path))
        if learns and self._signs:
            self._heed_signs(path, base)
            folder = self._folder(parent(path))
        return self._place_file(path, base, folder)

    def veiled_units(self, path: str) -> tuple[str, ...]:
        """Return the possible names of the checkpoint that this file marks as unfinished."""
        folder, base = parent(path), path.rpartition("/")[2]
        names = [m.group("unit") for text in self._veils if (m := pattern(text).fullmatch(base))]
        start = folder + "/" if folder else ""
        return tuple(start + name + end for name in names for end in ("", ".ckpt", ".nemo"))

    def is_save(self, unit: str) -> bool:
        """Return whether a checkpoint's own name says that it is one of a series."""
        base = unit.rpartition("/")[2]
        return self._is_named(unit, self._named) or pattern(_PROGRESS).search(base) is not None

    # What it learns -----------------------------------------------------------------------------

    def claim(self, path: str, scope: Scope = "tree", members: str = r"(?s:.*)") -> None:
        """Make a directory or a file a unit whatever its name.

        A directory of which only some files counted may become one with all of them.
        """
        if not self._is_claimed(path) or (scope == "tree" and not self._is_claimed(path, "tree")):
            self._claims[path] = Claim(scope, members)
            self._learnt(path)

    def has_units_below(self, unit: str) -> None:
        """Note that a unit exists: the directories above it are no units by a weak name."""
        is_save = self.is_save(unit)
        for folder in ancestors(root_of(unit)):
            if is_save:
                self._runs.add(folder)
            if folder not in self._parents:
                self._parents.add(folder)
                if pattern(self._weak).fullmatch(folder.rpartition("/")[2]):
                    self._learnt(folder)

    def _learnt(self, folder: str) -> None:
        self._folders.clear()
        self.changed.append(folder)
        self.lessons += 1

    # How it decides -----------------------------------------------------------------------------

    def _out(self, path: str, base: str) -> Literal["", "temporary", "ignored"]:
        if pattern(self._ignored).fullmatch(base):
            return "ignored"
        if self._excluded_paths and pattern(self._excluded_paths).fullmatch(path):
            return "ignored"
        return "temporary" if pattern(self._temporary).fullmatch(base) else ""

    def _place_folder(self, path: str) -> Place:
        folder = self._folder(path)
        if folder.out:
            return Place(folder.out, folder.unit)
        return Place("member" if folder.unit else "companion", folder.unit, folder.scope)

    def _folder(self, path: str) -> _Folder:
        known = self._folders.get(path)
        if known is None:
            if len(self._folders) >= _MOST_FOLDERS:
                self._folders.clear()
            known = self._folders[path] = self._judge_folder(path)
        return known

    def _judge_folder(self, path: str) -> _Folder:
        steps = [*ancestors(path), path]
        outs = [self._out(step, step.rpartition("/")[2]) for step in steps if step]
        out: Literal["", "temporary", "ignored"] = "temporary" if "temporary" in outs else ""
        out = "ignored" if "ignored" in outs else out
        strong = [s for s in steps if s and self._is_named(s, self._strong)]
        if strong:
            return _Folder(out, strong[0], "tree")
        claimed = [s for s in steps if s in self._claims]
        trees = [s for s in claimed if self._claims[s].scope == "tree"]
        if trees:
            return _Folder(out, name_of(trees[0]), "tree")
        weak = [s for s in steps if self._is_named(s, self._weak) and s not in self._parents]
        if weak:
            return _Folder(out, weak[0], "tree")
        if path in claimed:
            return _Folder(out, name_of(path), "flat", self._claims[path].members)
        return _Folder(out, "", "tree")

    def _is_named(self, path: str, names: str) -> bool:
        return bool(names) and pattern(names).fullmatch(path.rpartition("/")[2]) is not None

    def _place_file(self, path: str, base: str, folder: _Folder) -> Place:
        if pattern(self._any_veil).fullmatch(base):
            return Place("veil")
        if folder.unit and folder.scope == "tree":
            return Place("member", folder.unit)
        if pattern(self._pointers).fullmatch(base):
            return Place("pointer")
        if folder.unit and self._is_flat_member(base, folder):
            return Place("member", folder.unit, "flat")
        return self._place_loose(path, base)

    def _is_flat_member(self, base: str, folder: _Folder) -> bool:
        is_own = pattern(self._file).fullmatch(base) and pattern(_PROGRESS).search(base)
        return not is_own and pattern(folder.members).fullmatch(base) is not None

    def _place_loose(self, path: str, base: str) -> Place:
        for text in self._groups if pattern(self._any_group).fullmatch(base) else ():
            found = pattern(text).fullmatch(base)
            if found is not None:
                return Place("member", path[: len(path) - len(base)] + found["unit"], "group")
        is_bare = "." not in base and self._is_named(path, self._strong)
        if is_bare or pattern(self._file).fullmatch(base):
            return Place("member", path)
        return Place("companion")

    def _heed_signs(self, path: str, base: str) -> None:
        folder = parent(path)
        inner = f"{folder.rpartition('/')[2]}/{base}" if folder else base
        places = [(folder, base)] + ([(parent(folder), inner)] if folder else [])
        for home, name in places:
            if pattern(self._signs).fullmatch(name) and not self._is_claimed(home, "tree"):
                self._hint(home, name)

    def _is_claimed(self, path: str, scope: str = "") -> bool:
        claim = self._claims.get(path)
        return claim is not None and scope in ("", claim.scope)

    def _hint(self, home: str, name: str) -> None:
        for which, layout in enumerate(self._claimers):
            met = {
                (which, sign)
                for sign, text in enumerate(layout.signs)
                if pattern(text).fullmatch(name)
            }
            if not met:
                continue
            hints = self._hints.setdefault(home, set())
            hints |= met
            if sum(kind == which for kind, _ in hints) == len(layout.signs):
                # A run's own directory is never one checkpoint with all that is below it.
                is_run = home in self._runs and layout.claims == "tree"
                self.claim(home, "flat" if is_run else layout.claims or "tree", layout.members)
                if self._is_claimed(home, "tree"):
                    del self._hints[home]
                    return

    def _outgrown(self, base: str, folder: _Folder) -> bool:
        """Return whether a unit by a weak name turns out to be a run that holds checkpoints."""
        root = root_of(folder.unit)
        if root in self._claims or not self._is_named(root, self._weak):
            return False
        if self._is_named(root, self._strong) or not pattern(self._file).fullmatch(base):
            return False
        if pattern(_PROGRESS).search(base) is None:
            return False
        if step_of(base) == step_of(root):
            return False
        self._parents.add(root)
        self._learnt(root)
        return True
