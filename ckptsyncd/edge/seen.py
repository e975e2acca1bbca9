"""From what the system says of a path to a ``FileFact``, and in words how two of them differ."""

from __future__ import annotations

import errno
import os
import stat
from functools import lru_cache

from ckptsyncd.core.facts import FileFact


def absolute(root: str, path: str) -> str:
    """Return the absolute path of a relative one; OSError (EINVAL) where it would leave the root.

    ``""`` is the root itself. Only names are judged, no disk is touched.
    """
    parts = path.split("/") if path else []
    if path.startswith("/") or ".." in parts or "\0" in path:
        raise OSError(errno.EINVAL, "the path leaves the watch root", path)
    return f"{root.rstrip('/')}/{path}" if path else root


def fact_of(path: str, status: os.stat_result, target: str | None = None) -> FileFact | None:
    """Return the fact of a file, symlink or directory; ``None`` for FIFOs, sockets, devices."""
    mode, device = _one(stat.S_IMODE(status.st_mode)), _one(status.st_dev)
    inode, ctime_ns = status.st_ino, status.st_ctime_ns
    size, mtime_ns = status.st_size, status.st_mtime_ns
    if stat.S_ISREG(status.st_mode):
        return FileFact(path, "file", device, inode, size, mtime_ns, None, mode, ctime_ns)
    if stat.S_ISLNK(status.st_mode):
        return FileFact(path, "symlink", device, inode, size, mtime_ns, target, mode, ctime_ns)
    if stat.S_ISDIR(status.st_mode):
        # Both change with every name made inside; they are no content of a checkpoint.
        return FileFact(path, "directory", device, inode, 0, 0, None, mode, ctime_ns)
    return None


@lru_cache(maxsize=256)
def _one(number: int) -> int:
    """Return the same object for equal numbers: a hundred thousand files keep few of them."""
    return number


def fact_at(path: str, name: str, directory: int) -> FileFact:
    """Return the fact of what lies at a name in an open directory, never following a symlink.

    Raises OSError as the system does, FileNotFoundError also where the kind is none of ours.
    """
    status = os.stat(name, dir_fd=directory, follow_symlinks=False)
    is_link = stat.S_ISLNK(status.st_mode)
    target = os.readlink(name, dir_fd=directory) if is_link else None
    fact = fact_of(path, status, target)
    if fact is None:
        raise FileNotFoundError(errno.ENOENT, "neither file, link nor directory", path)
    return fact


def difference(old: FileFact, new: FileFact, *, copied: bool = False) -> str:
    """Return in words how ``new`` is not the content that ``old`` was, or ``""``.

    A copy of ours has another inode, and was given the size and mtime of what it is a copy of.
    """
    if old.kind != new.kind:
        return f"{old.path} is a {new.kind} now, it was a {old.kind}"
    if not copied and (old.device, old.inode) != (new.device, new.inode):
        return f"{old.path} was replaced by another {old.kind}"
    if old.size != new.size:
        return f"{old.path} changed: {old.size} bytes became {new.size}"
    if old.target != new.target:
        return f"{old.path} points elsewhere: {old.target} became {new.target}"
    if old.mtime_ns != new.mtime_ns:
        return f"{old.path} was written again: mtime {old.mtime_ns} became {new.mtime_ns} ns"
    return ""


def age(fact: FileFact) -> tuple[int, int, int]:
    """Return what sorts files by when they were written, the oldest first.

    Of those that one tick of the clock (4 ms) wrote, the later has the higher inode, mostly.
    """
    return fact.ctime_ns, fact.mtime_ns, fact.inode


def words(error: OSError) -> str:
    """Return what the system says, without its number."""
    text = error.strerror or str(error)
    if not isinstance(error.filename, str | bytes):  # an open file may stand there by its number
        return text
    return f"{text}: {os.fsdecode(error.filename)}"
