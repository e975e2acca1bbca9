"""What the file system below a volume can do, found out by trying."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex

from ckptsyncd.errors import Never
from ckptsyncd.stores.volume.faults import faults
from ckptsyncd.stores.volume.scraps import sweep

#: How file systems say that they cannot do something (vfat: EPERM for a link, NFS without its lock
#: daemon: ENOLCK).
_NO = frozenset(
    {
        errno.EACCES,
        errno.EINVAL,
        errno.EMLINK,
        errno.ENOLCK,
        errno.ENOSYS,
        errno.EOPNOTSUPP,
        errno.EPERM,
        errno.EXDEV,
    }
)
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Findings:
    """What was seen to work between two descriptors of this machine."""

    links: bool
    renames: bool
    locks: bool
    writes_anywhere: bool
    file_system: str

    @property
    def create_only(self) -> bool:
        """Whether a second writer of one name can be refused."""
        return self.links or self.locks

    @property
    def is_fuse(self) -> bool:
        """Whether a program stands behind it: some were seen to lose what they acknowledged."""
        return self.file_system.startswith("fuse")

    def in_words(self) -> str:
        """Return one line for people."""
        create_only = "link" if self.links else "lock" if self.locks else "no (single writer only)"
        return (
            f"{self.file_system}: create-only {create_only}; "
            f"compare-and-set {'lock' if self.locks else 'no (single writer only)'}; "
            f"pieces in {'any' if self.writes_anywhere else 'their'} order"
        )


def try_out(path: str, folder: int) -> Findings:
    """Try links, renames, locks and writes out of order in an open directory; leave nothing.

    Raises Never where a file can neither be linked nor renamed: nothing could appear as a whole.
    """
    name = f"probe.{token_hex(8)}"
    others = [f"{name}.{number}" for number in range(3)]
    with faults(f"{path}: trying out the file system", writes=True):
        descriptor = os.open(name, _NEW, dir_fd=folder)
        try:
            findings = Findings(
                links=_works(lambda: _link(folder, name, others[0])),
                renames=_works(lambda: _rename(folder, others[1], others[2])),
                locks=_works(lambda: _lock(folder, name)),
                writes_anywhere=_works(lambda: _write(descriptor)),
                file_system=file_system_of(path),
            )
            sweep(folder, os.fstat(descriptor).st_mtime_ns)
        finally:
            os.close(descriptor)
            for left in (name, *others):
                _remove(folder, left)
    if not findings.renames:
        msg = f"{path} ({findings.file_system}): files cannot be renamed"
        raise Never(msg, hint="use the object store behind the mount by its own URL")
    return findings


def file_system_of(path: str, mounts: str = "/proc/self/mountinfo") -> str:
    """Return the type of the file system that holds a path, ``unknown`` where nobody says."""
    real = os.path.realpath(path)
    best, found = "", "unknown"
    try:
        lines = Path(mounts).read_text(errors="surrogateescape").splitlines()
    except OSError:
        return found
    for line in lines:
        before, _, after = line.partition(" - ")
        point = before.split()[4].replace("\\040", " ")
        inside = real == point or real.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, found = point, after.split()[0]
    return found


def _works(act: Callable[[], bool]) -> bool:
    """Tell whether it works; a full disk or a lost mount is no answer and is raised."""
    try:
        return act()
    except OSError as error:
        if error.errno in _NO:
            return False
        raise


def _link(folder: int, name: str, other: str) -> bool:
    _hard_link(folder, name, other)
    try:
        _hard_link(folder, name, other)
    except FileExistsError:
        return True
    return False


def _hard_link(folder: int, name: str, other: str) -> None:
    os.link(name, other, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)


def _rename(folder: int, name: str, other: str) -> bool:
    os.close(os.open(name, _NEW, dir_fd=folder))
    os.rename(name, other, src_dir_fd=folder, dst_dir_fd=folder)
    return True


def _lock(folder: int, name: str) -> bool:
    first, second = (os.open(name, os.O_RDWR | os.O_CLOEXEC, dir_fd=folder) for _ in range(2))
    try:
        fcntl.flock(first, fcntl.LOCK_EX | fcntl.LOCK_NB)
        try:
            fcntl.flock(second, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False
    finally:
        os.close(first)
        os.close(second)


def _write(descriptor: int) -> bool:
    return os.pwrite(descriptor, b"later", 4096) + os.pwrite(descriptor, b"first", 0) == len(
        b"laterfirst"
    )


def _remove(folder: int, name: str) -> None:
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return
