"""The volume's directories, opened name by name so that no symlink leads out of them."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ckptsyncd.errors import Again, Missing, Never
from ckptsyncd.stores.volume.faults import faults

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

#: Where uploads lie until they are whole; that it is there shows that the volume is mounted.
WORKROOM = (".ckptsyncd", "tmp")


#: Of so many directories it is remembered that their names are durable (guessed: some megabytes).
MOST_DURABLE = 20_000

#: Why a directory that was just made is not there: somebody pruned it, since it was still empty.
_REMOVED = "the directory was removed as soon as it was made"


class Tree:
    """The directory of a ``file://`` URL. Only its own path may lead through symlinks."""

    def __init__(self, path: str) -> None:
        """Remember where; nothing is opened."""
        self.path = path
        self._prepared = False
        self._durable: set[tuple[str, ...]] = set()

    def prepare(self) -> None:
        """Make the directory, where its parent exists, and the workroom in it.

        Afterwards neither is ever made again: where they are missing, the volume was unmounted,
        and writing into the empty mount point would keep nothing.
        """
        with faults(self.path, writes=True):
            try:
                os.mkdir(self.path)  # noqa: PTH102 - the parents are not made, on purpose
                _sync(str(Path(self.path).parent))
            except FileExistsError:
                pass
            except FileNotFoundError:
                raise self._no_parent() from None
        with self.folder(WORKROOM, make=True):
            self._prepared = True

    @contextmanager
    def workroom(self) -> Iterator[int]:
        """Open the directory of unfinished uploads; Again where the volume has vanished."""
        try:
            opened = self.open(WORKROOM, make=False)
        except Missing:
            raise self._vanished() from None
        with closing(opened) as descriptor:
            yield descriptor

    @contextmanager
    def folder(self, names: Sequence[str], *, make: bool = False) -> Iterator[int]:
        """Open a directory and yield its descriptor; Missing where it is not there.

        With ``make`` every missing directory is made, durably. Never where a symlink is in the way.
        """
        with closing(self.open(names, make=make)) as descriptor:
            yield descriptor

    @contextmanager
    def file(self, names: Sequence[str]) -> Iterator[int]:
        """Open a regular file for reading; Missing where there is none."""
        what = "/".join(names)
        try:
            with self.folder(names[:-1]) as folder, faults(what):
                descriptor = os.open(names[-1], _FILE, dir_fd=folder)
        except Missing:
            self.check()
            raise
        with closing(descriptor):
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                msg = f"{what}: is no regular file"
                raise Missing(msg)
            yield descriptor

    def open(self, names: Sequence[str], *, make: bool = False) -> int:
        """Open a directory and return its descriptor, for ``closing``; as ``folder``."""
        current = self._root()
        for depth, name in enumerate(names, 1):
            with closing(current) as above, faults("/".join(names), writes=make):
                current = _step(above, name, make=make)
                if make:
                    self._keep(above, tuple(names[:depth]), current)
        return current

    def _keep(self, above: int, names: tuple[str, ...], opened: int) -> None:
        """Make a directory's name durable, once: whoever made it may not have come to that."""
        if names in self._durable:
            return
        try:
            os.fsync(above)
        except OSError:
            os.close(opened)
            raise
        if len(self._durable) >= MOST_DURABLE:
            self._durable.clear()
        self._durable.add(names)

    def _root(self) -> int:
        with faults(self.path):
            try:
                return os.open(self.path, _DIRECTORY)
            except NotADirectoryError:
                msg = f"{self.path} is no directory"
                raise Never(msg, hint="name a directory in the URL") from None
            except FileNotFoundError:
                if self._prepared:
                    raise self._vanished() from None
                if not Path(self.path).parent.is_dir():
                    raise self._no_parent() from None
                raise

    def check(self) -> None:
        """Raise Again where the volume was there and is not any more."""
        if self._prepared:
            with self.workroom():
                pass

    def _vanished(self) -> Again:
        msg = f"{'/'.join((self.path, *WORKROOM))} is not there any more"
        return Again(msg, hint="look whether the volume is still mounted", ambiguous=False)

    def _no_parent(self) -> Never:
        parent = Path(self.path).parent
        msg = f"{parent} does not exist, so {self.path} is not made"
        return Never(msg, hint=f"mount the volume, or make {parent}")


@contextmanager
def closing(descriptor: int) -> Iterator[int]:
    """Yield an open descriptor and close it in the end."""
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _step(folder: int, name: str, *, make: bool) -> int:
    """Open a directory inside an open one, made first where it is missing and ``make``."""
    try:
        return os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
    except FileNotFoundError:
        if not make:
            raise
    except NotADirectoryError:
        # A symlink answers so too, and is no more a missing object than a way to follow.
        if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name) from None
        raise
    try:
        os.mkdir(name, dir_fd=folder)
        os.fsync(folder)
    except FileExistsError:
        pass
    except FileNotFoundError:
        raise OSError(errno.EAGAIN, _REMOVED, name) from None
    try:
        return os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
    except FileNotFoundError:
        raise OSError(errno.EAGAIN, _REMOVED, name) from None


def _sync(path: str) -> None:
    descriptor = os.open(path, _DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
