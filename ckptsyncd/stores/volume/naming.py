"""How finished files get their names: linked, renamed, or renamed under a lock."""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ckptsyncd.errors import Again, Lost, Missing
from ckptsyncd.stores.volume.faults import faults
from ckptsyncd.stores.volume.probe import Findings
from ckptsyncd.stores.volume.tree import Tree

#: The file in the workroom that the writers of one volume lock.
LOCK = "lock"

#: When to come again while another process holds the lock (guessed: one record's fsync).
LOCK_WAIT_SECONDS = 0.2

#: A name in an open directory.
Place = tuple[int, str]


class Naming:
    """Gives finished files their names; what it returns from is durable."""

    def __init__(self, tree: Tree, findings: Findings) -> None:
        """Use what was seen to work."""
        self._tree = tree
        self._findings = findings
        self._turn = threading.Lock()

    def give(self, source: Place, target: Place, what: str, *, create_only: bool) -> None:
        """Make ``target`` what ``source`` was; with ``create_only`` Lost where it is taken.

        Where neither links nor locks work, two machines may both win: nothing better is there.
        """
        if not create_only:
            _rename(source, target, what)
        elif self._findings.links:
            _link(source, target, what)
        else:
            self.replace(source, target, what, lambda: not _exists(target, what))

    def replace(self, source: Place, target: Place, what: str, holds: Callable[[], bool]) -> None:
        """Make ``target`` what ``source`` was if the condition holds, else raise Lost.

        Under the volume's lock, as everybody does who replaces; Again where it is held.
        """
        with self._locked(what):
            if not holds():
                msg = f"{what}: somebody else wrote it first"
                raise Lost(msg)
            _rename(source, target, what)

    @contextmanager
    def _locked(self, what: str) -> Iterator[None]:
        """Hold the lock; threads of this process wait for each other, other processes do not."""
        with self._turn:
            if not self._findings.locks:
                yield
                return
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            with self._tree.workroom() as workroom, faults(what, writes=True):
                descriptor = os.open(LOCK, flags, 0o666, dir_fd=workroom)
            try:
                _lock(descriptor, what)
                yield
            finally:
                os.close(descriptor)


def size_of(place: Place, what: str) -> int:
    """Return the size of what has just got its name; Again where it is gone already."""
    with _naming(what):
        return _look(place).st_size


def _lock(descriptor: int, what: str) -> None:
    with faults(what, writes=True):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            msg = f"{what}: another process holds the volume's lock"
            raise Again(msg, wait_seconds=LOCK_WAIT_SECONDS) from None


@contextmanager
def _naming(what: str) -> Iterator[None]:
    """Raise what a missing name means here: the file or its directory was removed meanwhile."""
    try:
        with faults(what, writes=True):
            yield
    except Missing:
        msg = f"{what}: the upload, or the directory it was to go to, vanished meanwhile"
        raise Again(msg, ambiguous=True) from None


def _link(source: Place, target: Place, what: str) -> None:
    """Link, and only when that is durable drop the old name; linked before counts as well."""
    with _naming(what):
        try:
            os.link(
                source[1],
                target[1],
                src_dir_fd=source[0],
                dst_dir_fd=target[0],
                follow_symlinks=False,
            )
        except FileExistsError:
            if not os.path.samestat(_look(source), _look(target)):
                msg = f"{what}: exists already"
                raise Lost(msg) from None
        os.fsync(target[0])
        os.unlink(source[1], dir_fd=source[0])


def _rename(source: Place, target: Place, what: str) -> None:
    with _naming(what):
        os.rename(source[1], target[1], src_dir_fd=source[0], dst_dir_fd=target[0])
        os.fsync(target[0])


def _look(place: Place) -> os.stat_result:
    return os.stat(place[1], dir_fd=place[0], follow_symlinks=False)


def _exists(place: Place, what: str) -> bool:
    with faults(what):
        try:
            _look(place)
        except FileNotFoundError:
            return False
    return True
