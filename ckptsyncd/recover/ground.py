"""The target directory: where a restore may write, and how it never leaves it.

Directories below the target are entered one by one and never through a link, so a link that lies
there (or is put there meanwhile) leads nobody out.
"""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ckptsyncd.core.records.names import OURS
from ckptsyncd.errors import AlreadyRunning, CkptsyncdError, PathRefused
from ckptsyncd.recover.plan import Folds

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
#: Two spellings of one name where case or normalisation do not count.
_PROBE = "Fold-\u00e9"
_PROBE_CASE = "fOLD-\u00e9"
_PROBE_NORMALISATION = "Fold-e\u0301"


@contextmanager
def told(what: str) -> Iterator[None]:
    """Turn what the system says about our own disk into one line for people."""
    try:
        yield
    except OSError as error:
        hint = "make room and run it again: what was fetched is kept"
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            hint = "check the directory and its rights, then run it again"
        msg = f"cannot {what}: {error.strerror or error}"
        raise CkptsyncdError(msg, hint=hint) from error


@contextmanager
def entered(root: Path, path: str, *, make: bool) -> Iterator[int]:
    """Yield a descriptor of the directory ``path`` below ``root``, made where ``make`` says so.

    Raises PathRefused where a link or a file is on the way, FileNotFoundError where it is missing.
    """
    here = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in filter(None, path.split("/")):
            inner = _step(here, part, path, make=make)
            os.close(here)
            here = inner
        yield here
    finally:
        os.close(here)


def _step(here: int, part: str, path: str, *, make: bool) -> int:
    if make:
        with suppress(FileExistsError):
            os.mkdir(part, dir_fd=here)
            os.fsync(here)
    try:
        return os.open(part, _DIRECTORY, dir_fd=here)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENOTDIR):
            raise
        msg = f"{part!r} on the way to {path!r} in the target is a link or a file"
        raise PathRefused(msg, hint="move it away, or restore into another directory") from None


@contextmanager
def claimed(root: Path) -> Iterator[Path]:
    """Make the target and our directory in it, and keep other restores out; yield the latter.

    Raises AlreadyRunning where another one is at work.
    """
    root.mkdir(parents=True, exist_ok=True)
    with entered(root, OURS.rstrip("/"), make=True) as ours:
        lock = os.open("restore.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600, dir_fd=ours)
        try:
            _lock(lock, root)
            yield root / OURS.rstrip("/")
        finally:
            os.close(lock)


def _lock(lock: int, root: Path) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        msg = f"another restore into {str(root)!r} is running"
        raise AlreadyRunning(msg, hint="wait until it is done") from None


def folds_of(directory: Path) -> Folds:
    """Return which names the file system takes for the same, found out with a file of our own."""
    probe = directory / _PROBE
    probe.touch()
    try:
        return Folds(
            case=os.path.lexists(directory / _PROBE_CASE),
            normalisation=os.path.lexists(directory / _PROBE_NORMALISATION),
        )
    finally:
        probe.unlink(missing_ok=True)


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable."""
    handle = os.open(path, _DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_durably(directory: Path, name: str, data: bytes) -> None:
    """Give a file its content as a whole and durably, whatever lay under its name."""
    temporary = directory / f".{name}.new"
    with temporary.open("wb") as handle:
        handle.write(data)
        handle.flush()
        os.fsync(handle.fileno())
    temporary.replace(directory / name)
    sync_directory(directory)
