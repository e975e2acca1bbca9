"""Say where to look: a thread that turns inotify events into ``Touched`` and its like.

An event is a hint and not a fact, so only what leads to a look is asked for. Left out are MODIFY
(a file that is open for writing is seen to be so, and its close is reported) and ATTRIB (our own
hard links cause it).

A directory's rename is not followed: its watches end at the old name and are made anew at the new
one, and the new one is to be looked at as a whole. So nothing depends on both halves of a rename
arriving together.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import stat
import struct
import threading
from collections.abc import Callable
from pathlib import Path

from inotify_simple import Event, INotify, flags

from ckptsyncd.core.messages import Overflowed, Polled, RootLost, Touched
from ckptsyncd.edge.seen import absolute
from ckptsyncd.edge.walk import OURS
from ckptsyncd.edge.watches import Watches, limit
from ckptsyncd.errors import UsageError

Hint = Touched | Overflowed | Polled | RootLost

MASK = (
    flags.CREATE
    | flags.CLOSE_WRITE
    | flags.MOVED_FROM
    | flags.MOVED_TO
    | flags.DELETE
    | flags.DELETE_SELF
    | flags.MOVE_SELF
    | flags.ONLYDIR
    | flags.DONT_FOLLOW
)

#: How often is looked whether the root is still the one that is watched: a mount over it or a
#: rename above it sends no event (guessed).
CHECK_SECONDS = 2.0
#: The same while there is no root (guessed).
WAIT_SECONDS = 0.25
_ENDED = flags.IGNORED | flags.DELETE_SELF | flags.MOVE_SELF | flags.UNMOUNT


class Watcher:
    """Watches one root, which may not exist yet, may vanish, and may come back.

    Posts ``Touched("", tree=True)`` when all watches are in place, at the start and whenever the
    root came back; ``Polled("", reason)`` where there is nothing to watch with.
    """

    def __init__(self, root: Path, post: Callable[[Hint], object], *, poll: bool = False) -> None:
        """Take one inotify instance, or none where ``poll`` is set or none is to be had.

        Raises UsageError where the root's parent does not exist, or the root is no directory.
        """
        self._root = os.path.realpath(root)
        _usable(self._root)
        self._post = post
        self._reason = "polling was asked for" if poll else ""
        self._inotify = None if poll else self._instance()
        self._watches = Watches(self._root, self._inotify or _Nothing(), MASK, self._polled)
        self._identity: tuple[int, int] | None = None
        self._present: bool | None = None
        self._unwatched = False
        self._overflowed = False
        self._left: list[str] = []
        self._last: Touched | None = None
        self._ended, self._end = os.pipe()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watcher", daemon=True)

    @property
    def watches(self) -> int:
        """How many directories are watched."""
        return len(self._watches)

    @property
    def polled(self) -> tuple[str, ...]:
        """The subtrees that are polled; ``""`` is everything."""
        return tuple(self._watches.polled)

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    def stop(self, wait_seconds: float = 0.5) -> None:
        """End the thread at once; what a hung file system holds up is left to the system."""
        if self._stopping.is_set():
            return
        self._stopping.set()
        os.write(self._end, b".")
        if self._thread.ident is not None:
            self._thread.join(wait_seconds)
        if not self._thread.is_alive():
            self._close()

    def turn(self, most_seconds: float = CHECK_SECONDS) -> None:
        """Look after the root, wait for events so long at most, and post what they hint at."""
        self._seek_root()
        events = self._events(most_seconds if self._present else min(most_seconds, WAIT_SECONDS))
        self._last = None
        left, self._left = self._left, []
        for event in events:
            self._heed(event)
        if events and events[-1].mask & flags.MOVED_FROM:
            self._left += left  # nothing may come between the halves of a rename
        else:
            for path in left:
                self._heed_exchange(path)
        if self._overflowed:
            self._overflowed = False
            self._watches.renew()
            self._post(Overflowed())

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._turn_or_go_blind()

    def _turn_or_go_blind(self) -> None:
        try:
            self.turn()
        except OSError as error:
            self._go_blind(error)

    def _go_blind(self, error: OSError) -> None:
        """Go on without inotify: everything is polled, and the root is still looked after."""
        if self._inotify is not None:
            with contextlib.suppress(OSError):  # it is broken already
                self._inotify.close()
        self._inotify = None
        self._reason = f"inotify failed: {error.strerror or error}"
        self._watches = Watches(self._root, _Nothing(), MASK, self._polled)
        self._watches.poll("", self._reason)

    def _close(self) -> None:
        if self._inotify is not None:
            self._inotify.close()
        os.close(self._ended)
        os.close(self._end)

    def _instance(self) -> INotify | None:
        try:
            return INotify()
        except OSError as error:
            self._reason = f"inotify cannot be used: {error.strerror}"
            if error.errno in (errno.EMFILE, errno.ENFILE):
                self._reason = (
                    "no inotify instances left; raise fs.inotify.max_user_instances"
                    f"{limit('instances')} or ulimit -n"
                )
            return None

    def _events(self, timeout_seconds: float) -> list[Event]:
        poller = select.poll()
        poller.register(self._ended, select.POLLIN)
        if self._inotify is not None:
            poller.register(self._inotify.fileno(), select.POLLIN)
        poller.poll(timeout_seconds * 1000)
        try:
            return [] if self._inotify is None else list(self._inotify.read(timeout=0))
        except struct.error as error:
            raise OSError(errno.EBADMSG, os.strerror(errno.EBADMSG)) from error

    def _seek_root(self) -> None:
        identity = _identity(self._root)
        present = identity is not None
        same = identity == self._identity and not self._unwatched
        if same and present == self._present:
            return
        if self._present or not (present or self._present is False):
            self._post(RootLost(present=False))
        was_missed = self._present is not None
        self._identity, self._present, self._unwatched = identity, present, False
        self._watches.drop("")
        if present:
            self._cover_root()
            if was_missed:
                self._post(RootLost(present=True))
            self._post(Touched("", tree=True))

    def _cover_root(self) -> None:
        if self._inotify is None:
            self._watches.poll("", self._reason)
            return
        self._watches.cover("")
        # Gone again already: the next turn sees to it.
        self._unwatched = not (len(self._watches) or self._watches.polled)

    def _heed(self, event: Event) -> None:
        if event.mask & flags.Q_OVERFLOW:
            self._overflowed = True
            return
        path = self._watches.path_of(event.wd)
        if path is None:
            return  # of a watch that was ended
        if event.mask & _ENDED:
            self._heed_end(event, path)
        elif not _is_name(event.name):
            self._overflowed = True  # something happened, and nobody knows where
        elif event.name != OURS:
            self._heed_name(event, f"{path}/{event.name}" if path else event.name)

    def _heed_end(self, event: Event, path: str) -> None:
        if event.mask & flags.IGNORED:
            self._watches.forget(event.wd)
        if not path:
            self._unwatched = True  # a new root may even get the old one's inode number
        elif event.mask & flags.UNMOUNT:
            self._touched(Touched(path, tree=True))

    def _heed_name(self, event: Event, path: str) -> None:
        gone = bool(event.mask & (flags.DELETE | flags.MOVED_FROM))
        arrived = bool(event.mask & flags.MOVED_TO)
        is_directory = bool(event.mask & flags.ISDIR)
        if is_directory and gone:
            self._watches.drop(path)
        elif is_directory:
            self._watches.cover(path)
        self._touched(Touched(path, arrived, gone, tree=is_directory and not gone))
        if event.mask & flags.MOVED_FROM:
            self._left.append(path)

    def _heed_exchange(self, path: str) -> None:
        """Look whether another directory took the place of what was renamed away a turn ago.

        Of two names that are exchanged, the last event says of one of them that it went. Nothing
        tells how it came there, so it did not arrive whole; nor when, so of a file nothing is said:
        the order in which files of a checkpoint are heard of tells which one was written last.
        """
        with contextlib.suppress(OSError):  # gone it is
            if stat.S_ISDIR(os.lstat(absolute(self._root, path)).st_mode):
                self._watches.cover(path)
                self._touched(Touched(path, tree=True))

    def _touched(self, hint: Touched) -> None:
        """Post a hint, but not the same twice in a row in one batch.

        Only in a row: what came last among several files tells whether a marker is the newest.
        """
        if hint != self._last:
            self._last = hint
            self._post(hint)

    def _polled(self, path: str, reason: str) -> None:
        self._post(Polled(path, reason))


class _Nothing:
    """Stands in for an inotify instance where there is none; nothing asks it."""

    def add_watch(self, path: str, mask: int) -> int:
        raise OSError(errno.ENOSYS, f"cannot watch with mask {mask}", path)

    def rm_watch(self, wd: int) -> None:
        raise OSError(errno.EINVAL, "no such watch", wd)


def _is_name(name: str) -> bool:
    """Return whether an event names an entry of its directory, and leads nowhere else."""
    return name not in ("", ".", "..") and "/" not in name


def _identity(root: str) -> tuple[int, int] | None:
    """Return device and inode of the root, ``None`` where it is no directory (now)."""
    try:
        status = Path(root).stat()
    except OSError:  # gone, or hidden from us: the same for whoever waits for it
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISDIR(status.st_mode) else None


def _usable(root: str) -> None:
    parent = Path(root).parent
    if not parent.is_dir():
        msg = f"{parent} does not exist, so {root} cannot be waited for"
        raise UsageError(msg, hint=f"create {parent}, or check the path for a typing error")
    if os.path.lexists(root) and not Path(root).is_dir():
        msg = f"{root} is not a directory"
        raise UsageError(msg, hint="name the directory that the trainer writes into")
