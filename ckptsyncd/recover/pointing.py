"""The framework's pointers in the target, made so that they name what was restored."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from posixpath import dirname

from ckptsyncd.core.ports import Store
from ckptsyncd.core.records import names
from ckptsyncd.core.records.documents import MAX_RECORD_BYTES, Pointer, Pointers
from ckptsyncd.core.records.manifest import Manifest
from ckptsyncd.core.sending.pointers import may_replace, point_at
from ckptsyncd.errors import Missing, Never, PathRefused
from ckptsyncd.recover.ground import entered
from ckptsyncd.recover.patience import Pace, patiently

#: No pointer's text is longer (guessed; TensorFlow's lists a few names).
_MAX_TEXT_BYTES = 64 * 1024
_NEW = "pointer.new"


@dataclass(slots=True)
class Pointed:
    """The pointers that were made, and what is to be said of the others."""

    made: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def stored_pointers(store: Store, series: str, pace: Pace) -> tuple[tuple[Pointer, ...], str]:
    """Return the pointers of a series as last seen, and what is wrong with their record."""
    try:
        data, _ = patiently(
            lambda: store.get_small(names.pointers_key(series), MAX_RECORD_BYTES), pace
        )
        return Pointers.decode(data).pointers, ""
    except Missing:
        return (), ""
    except (Never, PathRefused) as error:
        return (), f"the stored pointers cannot be used: {error}"


def wanted_pointers(pointers: Sequence[Pointer], manifest: Manifest) -> tuple[list[Pointer], str]:
    """Return the pointers as they must be to name the manifest's checkpoint; those left out."""
    files = [stored.path for stored in manifest.files if stored.kind != "directory"]
    wanted, left = [], []
    for pointer in pointers:
        new = None if _is_taken(pointer.path, manifest) else _pointed(pointer, manifest, files)
        if new is None:
            left.append(repr(pointer.path))
        else:
            wanted.append(new)
    text = f"not made, for it cannot name {manifest.checkpoint!r}: {', '.join(left)}"
    return wanted, text if left else ""


def make_pointers(root: Path, ours: Path, pointers: Sequence[Pointer]) -> Pointed:
    """Make the pointers in the target, each in one rename. A trainer's own file is left alone."""
    pointed = Pointed()
    for pointer in pointers:
        try:
            reason = _make(root, ours, pointer)
        except PathRefused as error:
            reason = str(error)
        if reason:
            pointed.warnings.append(f"the pointer {pointer.path!r} is not made: {reason}")
        else:
            pointed.made.append(pointer.path)
    return pointed


def _is_taken(path: str, manifest: Manifest) -> bool:
    """Return whether a pointer would lie in our own directory or in the checkpoint itself.

    Case does not count: on some file systems it does not.
    """
    path = path.casefold()
    if names.OURS.rstrip("/") in path.split("/"):
        return True
    paths = (manifest.checkpoint, *(stored.path for stored in manifest.files))
    return any(
        path == other or path.startswith(other + "/") or other.startswith(path + "/")
        for other in map(str.casefold, paths)
    )


def _pointed(pointer: Pointer, manifest: Manifest, files: list[str]) -> Pointer | None:
    new = point_at(pointer, manifest.checkpoint, manifest.step, files)
    if new is None or len(new.text) > _MAX_TEXT_BYTES:
        return None
    try:
        new.text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return None
    return new


def _make(root: Path, ours: Path, pointer: Pointer) -> str:
    """Make one pointer; return why not."""
    parent, _, name = pointer.path.rpartition("/")
    with entered(root, parent, make=True) as here:
        if _is_there(pointer, name, here):
            return ""
        if pointer.kind == "symlink" and not _names_something(root, pointer):
            return f"it would name {pointer.text!r}, which is not there"
        if not _may_make(pointer, name, here):
            return "a file of this name is there and is no such pointer"
        _write(ours / _NEW, pointer)
        os.rename(ours / _NEW, name, dst_dir_fd=here)
        os.fsync(here)
    return ""


def _names_something(root: Path, pointer: Pointer) -> bool:
    """Return whether a link's target is there; a target that cannot be a name is not."""
    return os.path.exists(root / dirname(pointer.path) / pointer.text)  # noqa: PTH110


def _write(path: Path, pointer: Pointer) -> None:
    path.unlink(missing_ok=True)
    if pointer.kind == "symlink":
        path.symlink_to(pointer.text)
        return
    with path.open("xb") as handle:
        handle.write(pointer.text.encode("utf-8", "surrogateescape"))
        handle.flush()
        os.fsync(handle.fileno())


def _is_there(pointer: Pointer, name: str, here: int) -> bool:
    kind, text = _present(name, here)
    return (kind, text) == ("symlink" if pointer.kind == "symlink" else "file", pointer.text)


def _may_make(pointer: Pointer, name: str, here: int) -> bool:
    kind, text = _present(name, here)
    if kind == "nothing":
        return True
    is_pointer = kind == "symlink" or (kind == "file" and text is not None)
    return is_pointer and may_replace(pointer.path, None if kind == "symlink" else text)


def _present(name: str, here: int) -> tuple[str, str | None]:
    """Return what has a name now: nothing, symlink, file or other, and its target or text."""
    try:
        fact = os.stat(name, dir_fd=here, follow_symlinks=False)
    except FileNotFoundError:
        return "nothing", None
    if stat.S_ISLNK(fact.st_mode):
        return "symlink", os.readlink(name, dir_fd=here)
    if not stat.S_ISREG(fact.st_mode) or fact.st_size > _MAX_TEXT_BYTES:
        return "other", None
    handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=here)
    with os.fdopen(handle, "rb") as data:
        return "file", data.read(_MAX_TEXT_BYTES).decode("utf-8", "surrogateescape")
