"""From staging to the names in the target: nothing, or the whole, never a part under its name.

First the checkpoint is built in staging as it will lie in the target, then it is renamed there: a
directory in one rename, files beside each other one by one, what the trainer wrote last coming
last. What is in the way is set aside only on request, and never removed.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path

from ckptsyncd.core.records.manifest import StoredFile
from ckptsyncd.recover.ground import entered, sync_directory
from ckptsyncd.recover.plan import Plan, Unit
from ckptsyncd.recover.staging import Staging, clear

#: Directories keep setgid (groups share them so) and sticky.
_DIRECTORY_MODES = 0o3777


def build(staging: Staging, plan: Plan) -> None:
    """Make the staging tree as the target will be, durable, with modes and times."""
    if staging.tree.exists():
        clear(staging.tree)
    staging.tree.mkdir()
    for stored in plan.directories:
        (staging.tree / stored.path).mkdir(parents=True, exist_ok=True)
    known = {stored.path: stored for stored in plan.files}
    for stored in plan.files:
        twin = known.get(stored.twin or "", stored)
        same = [twin, stored] if _content(twin) == _content(stored) else [stored]
        _link_data([staging.file_of(one) for one in same], staging.tree / stored.path)
    for stored in plan.links:
        _make_link(stored, staging.tree / stored.path)
    for place, _, _ in os.walk(staging.tree):
        sync_directory(Path(place))
    tops = {unit.path for unit in plan.units}
    for stored in sorted(plan.directories, key=lambda s: s.path, reverse=True):
        if stored.path not in tops:
            _dress(stored, staging.tree / stored.path)


def put(root: Path, staging: Staging, plan: Plan, unit: Unit) -> None:
    """Rename one unit into place; FileExistsError where its name has been taken meanwhile.

    A directory gets its mode afterwards: one that may not be written could not be moved.
    """
    parent, _, name = unit.path.rpartition("/")
    source = staging.tree / unit.path
    with entered(root, parent, make=True) as here:
        if unit.kind == "directory":
            _put_directory(source, name, here)
            for stored in plan.directories:
                if stored.path == unit.path:
                    _dress(stored, root / unit.path)
        elif unit.kind == "symlink":
            os.symlink(source.readlink(), name, dir_fd=here)
        else:
            _put_file(source, name, here)
        os.fsync(here)


def set_aside(root: Path, ours: Path, unit: Unit) -> str:
    """Move what has the unit's name out of the way; return where it lies now, below the root."""
    parent, _, name = unit.path.rpartition("/")
    aside = _fresh(ours / "aside")
    with entered(root, parent, make=False) as here:
        os.rename(name, aside / name, src_dir_fd=here)
        os.fsync(here)
    sync_directory(aside)
    return (aside / name).relative_to(root).as_posix()


def _fresh(directory: Path) -> Path:
    """Make and return a directory of a new number."""
    number = 1
    while True:
        fresh = directory / str(number)
        try:
            fresh.mkdir(parents=True)
        except FileExistsError:
            number += 1
        else:
            return fresh


def _content(stored: StoredFile) -> tuple[int, int, int, int]:
    """Return what two names of one file cannot differ in."""
    return stored.size, stored.crc64nvme, stored.mode, stored.mtime_ns


def _link_data(data: list[Path], path: Path) -> None:
    """Give the first that can be linked its name; where links do not work, the last its only one.

    So a file that had several names has them again.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    for one in data:
        with suppress(OSError):
            path.hardlink_to(one)
            return
    data[-1].rename(path)


def _make_link(stored: StoredFile, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(stored.target or "")
    if stored.mtime_ns:
        os.utime(path, ns=(stored.mtime_ns, stored.mtime_ns), follow_symlinks=False)


def _dress(stored: StoredFile, path: Path) -> None:
    path.chmod(stored.mode & _DIRECTORY_MODES)
    if stored.mtime_ns:
        os.utime(path, ns=(stored.mtime_ns, stored.mtime_ns))


def _put_directory(source: Path, name: str, here: int) -> None:
    """Rename refuses a name that holds anything; an empty directory loses nothing."""
    try:
        os.rename(source, name, dst_dir_fd=here)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.ENOTDIR):
            raise FileExistsError(errno.EEXIST, error.strerror, name) from error
        raise


def _put_file(source: Path, name: str, here: int) -> None:
    """Link, which never replaces anything; rename where links do not work."""
    try:
        os.link(source, name, dst_dir_fd=here)
    except FileExistsError:
        raise
    except OSError:
        os.rename(source, name, dst_dir_fd=here)
    else:
        source.unlink()
