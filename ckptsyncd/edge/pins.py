"""Keep the files of a checkpoint readable whatever the trainer does to their names, and unchanged.

A link does not protect against writing in place; so what is pinned is compared with its listing
when it is pinned, when it is opened, and at the second look. Symlinks and directories need no pin:
their listing says everything.

A link moves its file's ctime, when it is made and when it is removed. So both are done in the order
of ctimes: who lists the files later is told by it which of them was written last.
"""

from __future__ import annotations

import contextlib
import errno
import os
from bisect import bisect_left
from collections.abc import Callable, Iterator

from ckptsyncd.core.facts import FileFact, Listing, Shape
from ckptsyncd.edge.beneath import fact_below, open_below
from ckptsyncd.edge.seen import age, difference, fact_of
from ckptsyncd.edge.shelf import Shelf
from ckptsyncd.edge.writers import Writers

#: Checks an open file's format: descriptor, path, size -> shape, whether it has an end mark, fault.
Check = Callable[[int, str, int], tuple[Shape, bool, str]]

Hold = Callable[[str, int, FileFact], FileFact]


class Pins:
    """The pins of one watch root. One thread pins; several may open pinned files meanwhile.

    Every method says by OSError, in plain words, what is not as it should be.
    """

    def __init__(self, root: str, shelf: Shelf, writers: Writers, check: Check) -> None:
        """Pin nothing yet."""
        self._root = root
        self._shelf = shelf
        self._writers = writers
        self._check = check

    def pin(self, pin_id: str, listing: Listing) -> Listing:
        """Pin every file and return the listing as the pins have it; all of them or none.

        Pinning the same again changes nothing. Raises where a file vanished, differs from the
        listing, or can be neither linked nor held open.
        """
        return self._all(pin_id, listing, self._hold if self._is_kept(pin_id) else self._keep)

    def copy(self, pin_id: str, listing: Listing) -> Listing:
        """Pin a copy of every file and return the listing that they are copies of; all or none.

        Nobody may have a file open and nothing may change from before the first copy until after
        the last one; where the kernel cannot tell, only a file whose format has an end mark and
        is whole is taken. Nor may the disk become too full by it.
        """
        doubtful = self._quiet(listing)
        self._shelf.make_room(listing.bytes)
        held = self._all(pin_id, listing, self._hold_copy)
        try:
            doubtful |= self._quiet(listing)
            for index, fact in enumerate(listing.files):
                if fact.kind == "file":
                    self._check_copy(pin_id, index, fact, doubtful=fact.path in doubtful)
        except OSError:
            self._shelf.drop(pin_id)
            raise
        return held

    def look_again(self, pin_id: str, listing: Listing) -> None:
        """Raise where a pinned file is not what the listing says, or can still be written."""
        for index, fact in enumerate(listing.files):
            if fact.kind == "file":
                with self._pinned(pin_id, index, fact) as (fd, copied):
                    if not copied:
                        self._unwritten(fd, fact)

    def open(self, pin_id: str, listing: Listing, path: str) -> int:
        """Return a descriptor of a pinned file, for the caller to close.

        ENOENT where it is not pinned (any more), ESTALE where it is not what the listing says.
        """
        files = listing.files
        index = bisect_left(files, path, key=lambda fact: fact.path)
        if index == len(files) or files[index].path != path:
            raise OSError(errno.ENOENT, f"{path} is not in the listing")
        with _named(files[index]):
            fd, copied = self._shelf.opened(pin_id, index)
        try:
            _fact(fd, files[index], copied=copied)
        except BaseException:
            os.close(fd)
            raise
        return fd

    def _all(self, pin_id: str, listing: Listing, hold: Hold) -> Listing:
        held = list(listing.files)
        try:
            for index, fact in sorted(enumerate(held), key=lambda pair: age(pair[1])):
                is_file = fact.kind == "file"
                held[index] = hold(pin_id, index, fact) if is_file else self._unpinned(fact)
        except OSError:
            self._shelf.drop(pin_id)
            raise
        return Listing(tuple(held))

    def _hold(self, pin_id: str, index: int, fact: FileFact) -> FileFact:
        with contextlib.suppress(OSError), self._pinned(pin_id, index, fact) as (fd, copied):
            return _fact(fd, fact, copied=copied)  # pinned before
        return self._keep(pin_id, index, fact)

    def _is_kept(self, pin_id: str) -> bool:
        return not self._shelf.is_empty(pin_id)

    def _keep(self, pin_id: str, index: int, fact: FileFact) -> FileFact:
        with _named(fact):
            self._shelf.keep(pin_id, index, fact.path)
        with self._pinned(pin_id, index, fact) as (fd, copied):
            return _fact(fd, fact, copied=copied)

    def _hold_copy(self, pin_id: str, index: int, fact: FileFact) -> FileFact:
        with self._source(fact) as fd:
            self._shelf.keep_copy(pin_id, index, fd, fact)
        return fact

    def _unpinned(self, fact: FileFact) -> FileFact:
        with _named(fact):
            now = fact_below(self._root, fact.path)
        _equal(fact, now)
        return now

    def _quiet(self, listing: Listing) -> set[str]:
        """Return the files of which nobody knows whether they have a writer; raise if one has."""
        doubtful: set[str] = set()
        for fact in listing.files:
            if fact.kind != "file":
                self._unpinned(fact)
                continue
            with self._source(fact) as fd:
                if self._unwritten(fd, fact) == "unknown":
                    doubtful.add(fact.path)
        return doubtful

    def _unwritten(self, fd: int, fact: FileFact) -> str:
        writer, name = self._writers.of(fd)
        if writer == "open":
            who = f" by {name}" if name else ""
            raise OSError(errno.ETXTBSY, f"{fact.path} is held open for writing{who}")
        return writer

    def _check_copy(self, pin_id: str, index: int, fact: FileFact, *, doubtful: bool) -> None:
        with self._pinned(pin_id, index, fact) as (fd, _):
            shape, has_end_mark, fault = self._check(fd, fact.path, fact.size)
        if shape == "broken":
            raise OSError(errno.ESTALE, f"{fact.path}: {fault}")
        if doubtful and not (shape == "whole" and has_end_mark):
            raise OSError(errno.ETXTBSY, f"nobody can tell whether {fact.path} is being written")

    @contextlib.contextmanager
    def _pinned(self, pin_id: str, index: int, fact: FileFact) -> Iterator[tuple[int, bool]]:
        with _named(fact):
            fd, copied = self._shelf.opened(pin_id, index)
        try:
            _fact(fd, fact, copied=copied)
            yield fd, copied
        finally:
            os.close(fd)

    @contextlib.contextmanager
    def _source(self, fact: FileFact) -> Iterator[int]:
        with _named(fact):
            fd = open_below(self._root, fact.path)
        try:
            _fact(fd, fact)
            yield fd
        finally:
            os.close(fd)


def _fact(fd: int, fact: FileFact, *, copied: bool = False) -> FileFact:
    """Return what an open file is now; raise where that is not what the fact says."""
    now = fact_of(fact.path, os.fstat(fd))
    if now is None:
        raise OSError(errno.ESTALE, f"{fact.path} is no file any more")
    _equal(fact, now, copied=copied)
    # The same a second time for each of a hundred thousand files is 24 MB.
    return fact if copied or now == fact else now


def _equal(old: FileFact, new: FileFact, *, copied: bool = False) -> None:
    if text := difference(old, new, copied=copied):
        raise OSError(errno.ESTALE, text)


@contextlib.contextmanager
def _named(fact: FileFact) -> Iterator[None]:
    """Name the file in what the system says about it."""
    try:
        yield
    except OSError as error:
        vanished = isinstance(error, FileNotFoundError) and error.filename is not None
        text = "vanished" if vanished else (error.strerror or str(error))
        raise OSError(error.errno, f"{fact.path}: {text}") from error
