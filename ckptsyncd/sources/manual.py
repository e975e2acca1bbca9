"""Sources for what no metadata service tells: a file, a command, and an end known in advance."""

from __future__ import annotations

import errno
import os
import select
import signal
import stat
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ckptsyncd.core.draining.deadlines import Allowance
from ckptsyncd.core.draining.notices import Announcement, Poll
from ckptsyncd.core.facts import Instant
from ckptsyncd.core.words import printable
from ckptsyncd.sources.bodies import digest
from ckptsyncd.sources.wire import MOST_BYTES, unknown
from ckptsyncd.sources.written import Reading, announced, written

#: A command's exit status for "nothing", as ``test`` and ``grep`` have it.
NOTHING = 1
_GONE = frozenset({errno.ENOENT, errno.ENOTDIR})


class NoticeFile:
    """A file that whoever may write it puts there as a notice, and removes to withdraw it."""

    name = "notice-file"
    interval_seconds = 1.0

    def __init__(self, path: str, reading: Reading) -> None:
        """Look at ``path``; what may stand in it is written in ``written``."""
        self._path = path
        self._reading = reading

    def poll(self, now: Instant) -> Poll:
        """Look once. A number of seconds counts from the file's mtime, also after a restart."""
        try:
            body, mtime_ns = _read(self._path)
        except OSError as error:
            if error.errno in _GONE:
                return Poll("none")
            return unknown(f"{self._path} cannot be read ({error.strerror or error})")
        name = f"{self.name}:{digest(body)}@{mtime_ns}"
        text = f"the notice file {printable(self._path)} is there"
        found = announced(name, written(body), mtime_ns / 1e9, text, self._reading)
        # Whoever wrote the file did so by this machine's clock.
        return Poll("notice", (found,), server_wall=now.wall)


def _read(path: str) -> tuple[bytes, int]:
    """Return a regular file's first bytes and its mtime; OSError for anything else."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        return os.read(descriptor, MOST_BYTES), facts.st_mtime_ns
    finally:
        os.close(descriptor)


@dataclass(frozen=True, slots=True)
class Ran:
    """How a command ended: its status (negative: the signal), ``None`` if it was stopped by us."""

    status: int | None
    output: bytes


class Command:
    """A user's command: status 0 is a notice, 1 is none, anything else is unknown."""

    name = "command"

    def __init__(
        self,
        arguments: Sequence[str],
        reading: Reading,
        *,
        interval_seconds: float = 5.0,
        most_seconds: float = 10.0,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Run ``arguments`` without a shell, for at most ``most_seconds`` each time.

        Its standard output, up to 64 KiB, may say until when (see ``written``); seconds count from
        when it was run.
        """
        self.interval_seconds = interval_seconds
        self._arguments = tuple(arguments)
        self._reading = reading
        self._most_seconds = most_seconds
        self._monotonic = monotonic

    def poll(self, now: Instant) -> Poll:
        """Run it once."""
        program = printable(self._arguments[0])
        end = self._monotonic() + self._most_seconds
        try:
            ran = _ran(self._arguments, end, self._monotonic)
        except OSError as error:
            return unknown(f"{program} cannot be run ({error.strerror or error})")
        if ran.status is None:
            return unknown(f"{program} took longer than {self._most_seconds:g} s")
        if ran.status == NOTHING:
            return Poll("none")
        if ran.status != 0:
            return unknown(f"{program} ended with status {ran.status}")
        said = written(ran.output)
        # Seconds that count down from run to run are one notice, not many.
        name = f"{self.name}:{'' if said.at_wall is None else f'{said.at_wall:.0f}'}"
        found = announced(name, said, now.wall, f"{program} says so", self._reading)
        return Poll("notice", (found,), server_wall=now.wall)


def _ran(arguments: Sequence[str], end: float, monotonic: Callable[[], float]) -> Ran:
    """Run a command in a group of its own, which is killed where it has not ended by ``end``."""
    with subprocess.Popen(
        arguments,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        try:
            output = _output(process, end, monotonic)
            return Ran(process.wait(max(end - monotonic(), 0.0)), output)
        except subprocess.TimeoutExpired:
            return Ran(None, b"")
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


def _output(process: subprocess.Popen[bytes], end: float, monotonic: Callable[[], float]) -> bytes:
    """Return what it writes until it closes its output, has said enough, or its time is over."""
    pipe = process.stdout
    if pipe is None:
        return b""
    # Not select(): this program may hold thousands of descriptors.
    ready = select.poll()
    ready.register(pipe, select.POLLIN)
    output = b""
    while len(output) < MOST_BYTES and (left := end - monotonic()) > 0:
        if not ready.poll(left * 1000.0):
            break
        block = os.read(pipe.fileno(), MOST_BYTES - len(output))
        if not block:
            break
        output += block
    pipe.close()
    return output


class HardStop:
    """An end that is known in advance: a reservation's, a job's, a maintenance window's."""

    interval_seconds = 5.0

    def __init__(self, at_wall: float, *, lead_seconds: float, name: str = "hard-stop") -> None:
        """Announce ``at_wall`` (seconds since the epoch); it binds ``lead_seconds`` before."""
        self.name = name
        text = "the end of this machine's time that was given in advance"
        self._announcement = Announcement(
            f"{name}:{at_wall:.0f}", "scheduled", text, at_wall, Allowance(0.0), lead_seconds
        )

    def poll(self, now: Instant) -> Poll:
        """Return the end; it is long past where it is more than ten minutes ago."""
        return Poll("notice", (self._announcement,), server_wall=now.wall)
