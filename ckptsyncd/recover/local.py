"""Does what lies in the target have the content that the manifest says? Reads, changes nothing."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

from ckptsyncd.checksum import crc64nvme
from ckptsyncd.core.records.manifest import StoredFile
from ckptsyncd.errors import PathRefused
from ckptsyncd.recover.crew import each
from ckptsyncd.recover.ground import entered
from ckptsyncd.recover.plan import Plan, Unit

_BLOCK_BYTES = 1024 * 1024


def standing(root: Path, plan: Plan) -> tuple[Unit, ...]:
    """Return the units whose names are taken in the target, whatever by.

    Raises PathRefused where a link or a file is on the way to one.
    """
    return tuple(unit for unit in plan.units if _is_taken(root, unit.path))


def difference(root: Path, plan: Plan, units: tuple[Unit, ...], workers: int) -> dict[Unit, str]:
    """Return those of the standing units whose content is another one, with how it differs.

    Of a whole checkpoint's directory nothing may be left over either; sizes, checksums, link
    targets and the set of names count, modes and times do not.
    """
    files = {unit.path for unit in units if unit.kind != "directory"}
    inner = tuple(unit.path + "/" for unit in units if unit.kind == "directory")
    mine = [
        stored
        for stored in (*plan.files, *plan.links, *plan.directories)
        if stored.path in files or (stored.path + "/").startswith(inner)
    ]
    stop = threading.Event()
    found = each(mine, lambda stored: (stored.path, _differs(root, stored)), workers, stop)
    bad = {path: reason for path, reason in found if reason}
    bad |= {} if plan.partial else _left_over(root, units, {stored.path for stored in mine})
    return {
        unit: bad[path]
        for unit in units
        for path in sorted(bad, reverse=True)
        if path == unit.path or path.startswith(unit.path + "/")
    }


def _is_taken(root: Path, path: str) -> bool:
    parent, _, name = path.rpartition("/")
    try:
        with entered(root, parent, make=False) as here:
            os.stat(name, dir_fd=here, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _differs(root: Path, stored: StoredFile) -> str:
    """Return how a path differs from what the manifest says, empty where it does not."""
    parent, _, name = stored.path.rpartition("/")
    try:
        with entered(root, parent, make=False) as here:
            fact = os.stat(name, dir_fd=here, follow_symlinks=False)
            if stored.kind == "symlink":
                same = stat.S_ISLNK(fact.st_mode) and os.readlink(name, dir_fd=here)
                return "" if same == stored.target else f"{stored.path!r} is not the same link"
            if stored.kind == "directory":
                return "" if stat.S_ISDIR(fact.st_mode) else f"{stored.path!r} is no directory"
            if not stat.S_ISREG(fact.st_mode) or fact.st_size != stored.size:
                return f"{stored.path!r} has another size or kind"
            same_bytes = _sum(here, name) == stored.crc64nvme
            return "" if same_bytes else f"{stored.path!r} has other content"
    except FileNotFoundError:
        return f"{stored.path!r} is missing"
    except PathRefused:
        return f"{stored.path!r} lies behind a link or a file"


def _sum(here: int, name: str) -> int:
    handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=here)
    checksum = 0
    with os.fdopen(handle, "rb", buffering=0) as data:
        while block := data.read(_BLOCK_BYTES):
            checksum = crc64nvme(block, checksum)
    return checksum


def _left_over(root: Path, units: tuple[Unit, ...], known: set[str]) -> dict[str, str]:
    """Return what lies in the units' directories and not in the plan; directories do not count."""
    directories = (unit.path for unit in units if unit.kind == "directory")
    paths = (path for directory in directories for path in _walked(root, directory))
    return {path: f"{path!r} is not part of it" for path in paths if path not in known}


def _walked(root: Path, directory: str) -> Iterator[str]:
    if (root / directory).is_symlink():
        return
    for place, inner, found in os.walk(root / directory):
        links = [name for name in inner if Path(place, name).is_symlink()]
        for name in (*found, *links):
            yield Path(place, name).relative_to(root).as_posix()
