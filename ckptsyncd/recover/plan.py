"""What is needed of a manifest, and whether it can lie safely on this file system; pure.

A manifest from a hostile store must touch nothing outside the target: names are checked one by one
(``manifest.decode``), and here together: none leads through a file or a link, none is the same as
another for this file system, none lies in our own directory.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from posixpath import basename

from ckptsyncd.core.facts import Kind
from ckptsyncd.core.records import names
from ckptsyncd.core.records.manifest import Manifest, StoredFile
from ckptsyncd.core.seeing.layouts import BUILT_IN
from ckptsyncd.core.sending.pointers import is_inside
from ckptsyncd.errors import PathRefused, UsageError
from ckptsyncd.recover.request import RestoreRequest

#: Linux: the longest component of a path, and what is left of PATH_MAX (4,096) for the target.
_MAX_COMPONENT_BYTES = 255
_MAX_PATH_BYTES = 3072


@dataclass(frozen=True, slots=True)
class Folds:
    """Which names a file system takes for the same: other case, other Unicode normalisation."""

    case: bool = False
    normalisation: bool = False

    def folded(self, path: str) -> str:
        """Return the same text for paths that are the same file there."""
        text = path.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")
        if self.normalisation:
            text = unicodedata.normalize("NFD", text)
        if self.case:
            text = text.casefold()
        return unicodedata.normalize("NFD", text) if self.normalisation else text


@dataclass(frozen=True, slots=True)
class Unit:
    """What is renamed into place as one thing: the checkpoint's directory, or a file beside it."""

    path: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to lie in the target. ``units`` are in the order of placing: the marker comes last.

    ``partial``: less than the whole checkpoint. ``warnings`` say what is left out.
    """

    files: tuple[StoredFile, ...]
    links: tuple[StoredFile, ...]
    directories: tuple[StoredFile, ...]
    units: tuple[Unit, ...]
    partial: bool
    warnings: tuple[str, ...]

    @property
    def bytes(self) -> int:
        """How many bytes the files hold together."""
        return sum(stored.size for stored in self.files)

    def without(self, units: frozenset[Unit]) -> Plan:
        """Return the plan without what these units hold."""
        files = {unit.path for unit in units if unit.kind != "directory"}
        inner = tuple(unit.path + "/" for unit in units if unit.kind == "directory")

        def stays(stored: StoredFile) -> bool:
            return stored.path not in files and not (stored.path + "/").startswith(inner)

        return replace(
            self,
            files=tuple(filter(stays, self.files)),
            links=tuple(filter(stays, self.links)),
            directories=tuple(filter(stays, self.directories)),
            units=tuple(unit for unit in self.units if unit not in units),
        )


def plan_of(manifest: Manifest, request: RestoreRequest, folds: Folds) -> Plan:
    """Return what a request needs of a manifest.

    Raises PathRefused where it cannot lie there safely, UsageError where the request fits nothing.
    """
    check_names(manifest.files, folds)
    wanted = [stored for stored in manifest.files if _is_wanted(stored, manifest, request)]
    files = tuple(stored for stored in wanted if stored.kind == "file")
    links = tuple(s for s in wanted if s.kind == "symlink" and is_inside(s.path, s.target or ""))
    outside = [s for s in wanted if s.kind == "symlink" and not is_inside(s.path, s.target or "")]
    partial = bool(request.only) or request.node is not None
    if partial and not files:
        raise UsageError(_nothing_fits(manifest, request))
    needed = {way for s in (*files, *links) for way in _parents(s.path)} if partial else None
    directories = tuple(
        stored
        for stored in manifest.files
        if stored.kind == "directory" and (needed is None or stored.path in needed)
    )
    warnings = tuple(
        f"the link {s.path!r} leads out of the directory ({s.target!r}): not made" for s in outside
    )
    top = _top_of(manifest)
    units = _units(top, (*files, *links, *directories))
    return Plan(files, links, directories, units, partial, warnings)


def check_names(files: tuple[StoredFile, ...], folds: Folds) -> None:
    """Raise PathRefused where the paths of a manifest cannot all lie in one directory."""
    seen: dict[str, tuple[str, Kind]] = {}
    parents: set[str] = set()
    ours = folds.folded(names.OURS.rstrip("/"))
    for stored in files:
        _check_length(stored.path)
        if ours in folds.folded(stored.path).split("/"):
            msg = f"a path in a directory of ours is refused: {stored.path!r:.200}"
            raise PathRefused(msg)
        _note(seen, folds, stored.path, stored.kind)
        new = [path for path in _parents(stored.path) if path not in parents]
        for path in new:
            _note(seen, folds, path, "directory")
        parents.update(new)


def _check_length(path: str) -> None:
    raw = path.encode("utf-8", "surrogateescape")
    if len(raw) > _MAX_PATH_BYTES or max(map(len, raw.split(b"/"))) > _MAX_COMPONENT_BYTES:
        msg = f"a path that is too long for a file system is refused: {path!r:.200}"
        raise PathRefused(msg)


def _note(seen: dict[str, tuple[str, Kind]], folds: Folds, path: str, kind: Kind) -> None:
    other, other_kind = seen.setdefault(folds.folded(path), (path, kind))
    if other != path:
        msg = f"two names that are one for this file system are refused: {other!r} and {path!r}"
        raise PathRefused(msg)
    if other_kind != kind:
        msg = f"a path that leads through a file or a link is refused: {path!r:.200}"
        raise PathRefused(msg)


def _is_wanted(stored: StoredFile, manifest: Manifest, request: RestoreRequest) -> bool:
    if stored.kind == "directory":
        return False
    if not _is_of_node(stored, manifest, request):
        return False
    inner = stored.path.removeprefix(manifest.checkpoint + "/")
    texts = (stored.path, inner, basename(stored.path))
    return not request.only or any(fnmatchcase(t, g) for g in request.only for t in texts)


def _is_of_node(stored: StoredFile, manifest: Manifest, request: RestoreRequest) -> bool:
    """Return whether a file falls to the node that is asked for.

    Among another number of machines the shares stay in their order and whole.
    """
    if request.node is None:
        return True
    owners = {stored.node, *stored.also}
    count = len(manifest.nodes)
    if request.nodes in (None, count):
        return request.node in owners
    assert request.nodes is not None  # noqa: S101 - just compared
    places = (manifest.nodes.index(owner) for owner in owners if owner in manifest.nodes)
    return any(place * request.nodes // count == request.node for place in places)


def _nothing_fits(manifest: Manifest, request: RestoreRequest) -> str:
    count = len(manifest.nodes)
    if request.nodes is not None and request.nodes > count:
        return (
            f"{manifest.checkpoint!r} was written by {count} nodes: of {request.nodes} "
            f"not each has a share; restore all of it, without --node"
        )
    if request.node is not None and request.node not in manifest.nodes:
        return f"{manifest.checkpoint!r} has no node {request.node}, only {list(manifest.nodes)}"
    some = [stored.path for stored in manifest.files if stored.kind == "file"][:5]
    return f"no file of {manifest.checkpoint!r} fits; it has {', '.join(map(repr, some))} ..."


def _parents(path: str) -> list[str]:
    """Return the directories on the way to a path, the outermost first."""
    return [path[:end] for end, letter in enumerate(path) if letter == "/"]


def _top_of(manifest: Manifest) -> Callable[[str], str]:
    """Return the function that tells for a path what it is renamed into place with.

    That is the checkpoint's own directory where it has one to itself, the top-level entry where the
    checkpoint is the watch root, and else the path alone.
    """
    if any(known.name == manifest.layout and known.claims == "flat" for known in BUILT_IN):
        return str
    if manifest.checkpoint == ".":
        return lambda path: path.partition("/")[0]
    inside = manifest.checkpoint + "/"
    return lambda path: manifest.checkpoint if path.startswith(inside) else path


def _units(top: Callable[[str], str], rows: tuple[StoredFile, ...]) -> tuple[Unit, ...]:
    """Return what is renamed as one, in the order of placing.

    Whatever the trainer wrote last (its marker) comes last, links after all files. A directory with
    others of these in it is no such thing itself: it is made on the way to them.
    """
    ranks: dict[Unit, tuple[bool, int]] = {}
    for stored in rows:
        path = top(stored.path)
        is_whole = path == stored.path and stored.kind != "directory"
        unit = Unit(path, stored.kind if is_whole else "directory")
        newest = stored.mtime_ns if stored.kind == "file" else 0
        rank = (unit.kind == "symlink", newest)
        ranks[unit] = max(ranks.get(unit, rank), rank)
    ways = {way for unit in ranks for way in _parents(unit.path)}
    units = (unit for unit in ranks if unit.path not in ways)
    return tuple(sorted(units, key=lambda unit: (ranks[unit], unit.path)))
