"""Who has a file open for writing: the lease says whether, ``/proc`` says who.

``/proc`` can only prove a writer, never that there is none: other containers, other users'
processes and closed-but-mapped files are not seen there.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections import defaultdict
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

#: Processes and the links to their descriptors that are open for writing, by the file's number.
Visible = dict[int, list[tuple[int, str]]]


class Writers:
    """Tells of open files whether somebody can still write them.

    ``longest_hold_seconds`` is the longest that a lease of ours was held so far.
    """

    def __init__(self) -> None:
        """Know nobody yet."""
        self.longest_hold_seconds = 0.0
        self._hidden: dict[int, bool] = {}
        self._visible: Visible = {}
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
        pid = self._seen_writing(fd, status)
        return (writer, "") if pid is None else ("open", f"pid {pid} ({_command(pid)})")

    def _hides_writers(self, fd: int, device: int) -> bool:
        """Return whether writers on other machines are possible; asked once for each device."""
        if device not in self._hidden:
            self._hidden[device] = bool(without_events(fd))
        return self._hidden[device]

    def _seen_writing(self, fd: int, status: os.stat_result) -> int | None:
        """Return a process that is seen to have a file open for writing.

        A search of the whole machine serves for as long again as it took, but only to tell that
        nobody was seen: the many files of one checkpoint are asked for in one go, and whoever opens
        one meanwhile is seen by an event. Who was seen may have closed it meanwhile.
        """
        number = _number(f"{_PROC}/self", str(fd))
        begun = ticks()
        if begun > self._fresh_until or number in self._visible:
            self._visible = _open_for_writing()
            ended = ticks()
            self._fresh_until = ended + (ended - begun)
        seen = self._visible.get(number, [])
        return next((pid for pid, link in seen if _leads_to(link, status)), None)


def _open_for_writing() -> Visible:
    """Return what is open for writing, and by whom, as far as is to be seen.

    No disk is asked: one of them may hang, and looks at our own would wait for it.
    """
    found: Visible = defaultdict(list)
    for process, descriptor in islice(_descriptors(), MOST_DESCRIPTORS):
        link = f"{process}/fd/{descriptor}"
        with contextlib.suppress(OSError):  # closed meanwhile, or not ours to see
            if os.lstat(link).st_mode & stat.S_IWUSR:  # the link's own mode says how it is open
                found[_number(process, descriptor)].append((int(Path(process).name), link))
    return dict(found)


def _descriptors() -> Iterator[tuple[str, str]]:
    """Yield every process's directory and the number of each of its descriptors."""
    for pid in filter(str.isdecimal, os.listdir(_PROC)):  # noqa: PTH208
        process = f"{_PROC}/{pid}"
        with contextlib.suppress(OSError):  # it ended, or is not ours to see
            yield from ((process, number) for number in os.listdir(f"{process}/fd"))  # noqa: PTH208


def _number(process: str, descriptor: str) -> int:
    """Return the kernel's own number of an open file: the same for whoever has the file open.

    Kernels before 5.14 do not tell it; there the file's disk is asked. Two files of different disks
    may share a number. Source: proc_pid_fdinfo(5).
    """
    with open(f"{process}/fdinfo/{descriptor}", "rb", buffering=0) as info:  # noqa: PTH123
        _, told, number = info.read().partition(b"\nino:")
    if told:
        return int(number.split(maxsplit=1)[0])
    return Path(f"{process}/fd/{descriptor}").stat().st_ino


def _leads_to(link: str, status: os.stat_result) -> bool:
    """Tell whether a descriptor's link leads to a file."""
    with contextlib.suppress(OSError):  # closed meanwhile
        return os.path.samestat(os.stat(link), status)  # noqa: PTH116 - a path object costs more
    return False


def _command(pid: int) -> str:
    try:
        return Path(f"{_PROC}/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:  # ended meanwhile
        return "ended"
