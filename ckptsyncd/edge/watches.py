"""Which directories are watched: the map between the kernel's watch numbers and paths.

A directory is watched first and listed after, so that whatever is made in it is either found in
the list or reported. Watching the same directory again gives the same number, so covering a tree
again is harmless, and repairs the map after renames and lost events.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

from ckptsyncd.edge.filesystems import without_events
from ckptsyncd.edge.seen import absolute
from ckptsyncd.edge.walk import OURS, VANISHED, is_fsck

#: More subtrees than this are not polled one by one; then everything is (guessed).
MOST_POLLED = 16

_SYSCTL = Path("/proc/sys/fs/inotify")


class Kernel(Protocol):
    """What is needed of an inotify instance."""

    def add_watch(self, path: str, mask: int) -> int:
        """Watch a directory and return the number of the watch."""
        ...

    def rm_watch(self, wd: int) -> None:
        """End a watch."""
        ...


class Watches:
    """The watched directories of one root, and the subtrees that can only be polled."""

    def __init__(
        self, root: str, kernel: Kernel, mask: int, polled: Callable[[str, str], None]
    ) -> None:
        """Watch nothing yet. ``polled`` is told each subtree that cannot be watched, and why."""
        self._root = root
        self._kernel = kernel
        self._mask = mask
        self._tell = polled
        self._paths: dict[int, str] = {}
        self._numbers: dict[str, int] = {}
        self._hidden: dict[int, str] = {}
        self.polled: dict[str, str] = {}

    def __len__(self) -> int:
        """Return how many directories are watched."""
        return len(self._paths)

    def path_of(self, number: int) -> str | None:
        """Return the path that a watch is for, ``None`` where the watch was ended."""
        return self._paths.get(number)

    def cover(self, path: str) -> None:
        """Watch a directory and all below it; what vanishes meanwhile is left out."""
        for _ in self._covered(path):
            pass

    def renew(self) -> None:
        """Watch the whole tree again and end the watches of what is no longer part of it."""
        part = set(self._covered(""))
        for path in [path for path in self._numbers if path not in part]:
            self._end(self._numbers[path])

    def drop(self, path: str) -> None:
        """End the watches of a directory and all below it."""
        for other, number in list(self._numbers.items()):
            if _is_within(other, path):
                self._end(number)
        for other in [other for other in self.polled if _is_within(other, path)]:
            del self.polled[other]

    def forget(self, number: int) -> None:
        """Take note that the kernel has ended a watch."""
        path = self._paths.pop(number, None)
        if path is not None and self._numbers.get(path) == number:
            del self._numbers[path]

    def _covered(self, path: str) -> Iterator[str]:
        waiting = [path]
        while waiting:
            directory = waiting.pop()
            try:
                if self._watched(directory):
                    yield directory
                    waiting += self._below(directory)
            except VANISHED:
                continue
            except OSError as error:
                if not is_fsck(directory, error):
                    self.poll(directory, _reason(error))

    def _watched(self, path: str) -> bool:
        if any(_is_within(path, polled) for polled in self.polled):
            return False
        place = absolute(self._root, path)
        device = os.lstat(place).st_dev
        if device not in self._hidden:
            self._hidden[device] = without_events(place)
        if self._hidden[device]:
            self.poll(path, f"{self._hidden[device]} does not report what other machines write")
            return False
        self._keep(self._kernel.add_watch(place, self._mask), path)
        return True

    def _below(self, path: str) -> list[str]:
        with os.scandir(absolute(self._root, path)) as entries:
            return [
                f"{path}/{entry.name}" if path else entry.name
                for entry in entries
                if entry.name != OURS and entry.is_dir(follow_symlinks=False)
            ]

    def _keep(self, number: int, path: str) -> None:
        """Note where a watched directory lies now; what lay there before is another one."""
        stale = self._numbers.get(path)
        if stale is not None and stale != number:
            self._end(stale)
        self.forget(number)
        self._paths[number] = path
        self._numbers[path] = number

    def _end(self, number: int) -> None:
        self.forget(number)
        try:
            self._kernel.rm_watch(number)
        except OSError as error:
            if error.errno != errno.EINVAL:  # ended by the kernel, and its event is still waiting
                raise

    def poll(self, path: str, reason: str) -> None:
        """Take note that a subtree can only be polled, and tell it."""
        if len(self.polled) >= MOST_POLLED:
            path = ""
        if path not in self.polled:
            self.polled[path] = reason
            self._tell(path, reason)


def _is_within(path: str, directory: str) -> bool:
    return not directory or path == directory or path.startswith(directory + "/")


def _reason(error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.ENOMEM):
        return f"no inotify watches left; raise fs.inotify.max_user_watches{limit('watches')}"
    return f"cannot be watched: {error.strerror or error}"


def limit(name: str) -> str:
    """Return the present value of an inotify limit in brackets, or nothing where it is hidden."""
    try:
        value = (_SYSCTL / f"max_user_{name}").read_text(encoding="utf-8").strip()
    except OSError:
        return ""
    return f" (now {value})"
