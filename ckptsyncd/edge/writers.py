"""Who has a file open for writing: the lease says whether, ``/proc`` says who.

``/proc`` can only prove a writer, never that there is none: other containers, other users'
processes and closed-but-mapped files are not seen there.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path

from ckptsyncd.core.facts import Writer
from ckptsyncd.edge import lease
from ckptsyncd.edge.filesystems import without_events

#: Descriptors looked at in one search at most (guessed: some 50 ms on a host with many processes).
MOST_DESCRIPTORS = 20_000

#: Writers remembered and asked first: one trainer writes many files.
_SUSPECTS = 64

_PROC = Path("/proc")


class Writers:
    """Tells of open files whether somebody can still write them.

    ``longest_hold_seconds`` is the longest that a lease of ours was held so far.
    """

    def __init__(self) -> None:
        """Know nobody yet."""
        self.longest_hold_seconds = 0.0
        self._hidden: dict[int, bool] = {}
        self._suspects: OrderedDict[int, None] = OrderedDict()

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
        name = self._name(status.st_dev, status.st_ino)
        return ("open" if name else writer), name

    def _hides_writers(self, fd: int, device: int) -> bool:
        """Return whether writers on other machines are possible; asked once for each device."""
        if device not in self._hidden:
            self._hidden[device] = bool(without_events(fd))
        return self._hidden[device]

    def _name(self, device: int, inode: int) -> str:
        left = MOST_DESCRIPTORS
        for pid in _unique(reversed(self._suspects), _processes()):
            descriptors = _descriptors(pid)
            left -= len(descriptors)
            if any(_writes(pid, number, device, inode) for number in descriptors):
                self._suspect(pid)
                return f"pid {pid} ({_command(pid)})"
            if left < 0:
                break
        return ""

    def _suspect(self, pid: int) -> None:
        self._suspects[pid] = None
        self._suspects.move_to_end(pid)
        if len(self._suspects) > _SUSPECTS:
            self._suspects.popitem(last=False)


def _unique(first: Iterator[int], then: Iterator[int]) -> Iterator[int]:
    seen = list(first)
    yield from seen
    yield from (pid for pid in then if pid not in seen)


def _processes() -> Iterator[int]:
    return (int(entry.name) for entry in _PROC.iterdir() if entry.name.isdecimal())


def _descriptors(pid: int) -> list[str]:
    """Return the descriptors of a process; none where it ended or is not ours to see."""
    try:
        return [entry.name for entry in (_PROC / str(pid) / "fd").iterdir()]
    except OSError:
        return []


def _writes(pid: int, number: str, device: int, inode: int) -> bool:
    try:
        status = (_PROC / str(pid) / "fd" / number).stat()
        if (status.st_dev, status.st_ino) != (device, inode):
            return False
        info = (_PROC / str(pid) / "fdinfo" / number).read_text(encoding="utf-8")
    except OSError:  # closed meanwhile, or not ours to see
        return False
    flags = next((line for line in info.splitlines() if line.startswith("flags:")), "flags: 0")
    return int(flags.split()[1], 8) & os.O_ACCMODE != os.O_RDONLY


def _command(pid: int) -> str:
    try:
        return (_PROC / str(pid) / "comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:  # ended meanwhile
        return "ended"
