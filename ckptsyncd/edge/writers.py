"""Who has a file open for writing: the lease says whether, ``/proc`` says who.

``/proc`` can only prove a writer, never that there is none: other containers, other users'
processes and closed-but-mapped files are not seen there.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from ckptsyncd.core.facts import Writer
from ckptsyncd.edge import lease
from ckptsyncd.edge.clock import ticks
from ckptsyncd.edge.filesystems import without_events

#: Descriptors looked at in one search at most (guessed: some 50 ms on a host with many processes).
MOST_DESCRIPTORS = 20_000

_PROC = "/proc"

Identity = tuple[int, int]


class Writers:
    """Tells of open files whether somebody can still write them.

    ``longest_hold_seconds`` is the longest that a lease of ours was held so far.
    """

    def __init__(self) -> None:
        """Know nobody yet."""
        self.longest_hold_seconds = 0.0
        self._hidden: dict[int, bool] = {}
        self._visible: dict[Identity, int] = {}
        self._fresh_until = float("-inf")

    def of(self, fd: int) -> tuple[Writer, str]:
        """Return whether the regular file behind a read-only descriptor has a writer, and who.

        ``unknown`` where neither a lease nor ``/proc`` can tell. The name is best effort.
        """
        status = os.fstat(fd)
        writer: Writer = "unknown"
        if not self._hides_writers(fd, status.st_dev):
            found = lease.probe(fd)
            self.longest_hold_seconds = max(self.longest_hold_seconds, found.held_seconds)
            writer = found.writer
        if writer == "none":
            return writer, ""
        pid = self._seen_writing((status.st_dev, status.st_ino))
        return (writer, "") if pid is None else ("open", f"pid {pid} ({_command(pid)})")

    def _hides_writers(self, fd: int, device: int) -> bool:
        """Return whether writers on other machines are possible; asked once for each device."""
        if device not in self._hidden:
            self._hidden[device] = bool(without_events(fd))
        return self._hidden[device]

    def _seen_writing(self, identity: Identity) -> int | None:
        """Return a process that is seen to have a file open for writing.

        A search of the whole machine serves for as long again as it took, but only to tell that
        nobody was seen: the many files of one checkpoint are asked for in one go, and whoever opens
        one meanwhile is seen by an event. Who was seen may have closed it meanwhile.
        """
        begun = ticks()
        if begun > self._fresh_until or identity in self._visible:
            self._visible = dict(_open_for_writing())
            ended = ticks()
            self._fresh_until = ended + (ended - begun)
        return self._visible.get(identity)


def _open_for_writing() -> Iterator[tuple[Identity, int]]:
    """Yield device and inode of what is open for writing, and by whom, as far as is to be seen."""
    for pid, link in islice(_descriptors(), MOST_DESCRIPTORS):
        with contextlib.suppress(OSError):  # closed meanwhile, or not ours to see
            # The link's own mode says it; only what is open for writing is asked for on its disk.
            if not os.lstat(link).st_mode & stat.S_IWUSR:
                continue
            status = os.stat(link)  # noqa: PTH116 - a path object costs more
            if stat.S_ISREG(status.st_mode):
                yield (status.st_dev, status.st_ino), pid


def _descriptors() -> Iterator[tuple[int, str]]:
    """Yield every process and the links of its descriptors, whose mode says how they are open."""
    for pid in filter(str.isdecimal, os.listdir(_PROC)):  # noqa: PTH208
        folder = f"{_PROC}/{pid}/fd"
        with contextlib.suppress(OSError):  # it ended, or is not ours to see
            yield from ((int(pid), f"{folder}/{number}") for number in os.listdir(folder))  # noqa: PTH208


def _command(pid: int) -> str:
    try:
        return Path(f"{_PROC}/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:  # ended meanwhile
        return "ended"
