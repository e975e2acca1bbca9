"""Where the lines of the log go out: a pipe that nobody reads must not hold up the daemon.

A reader that is stopped or hangs leaves a full pipe, and whoever writes into it waits for ever. So
a thread writes, and whoever has a line waits only a moment for it.
"""

from __future__ import annotations

import errno
import io
import os
import select
import threading
from collections import deque
from typing import TextIO, cast

#: So long is waited for a line to be out (guessed: a terminal over a far line).
PATIENCE_SECONDS = 0.2
#: So many lines wait at most for somebody to read them (guessed: less than a megabyte).
MOST_LINES = 1000


def outlet(file: TextIO) -> TextIO:
    """Return where to write lines that go to a file of the system, past its own buffer.

    For any threads; lines come out in their order. ``flush`` returns when they are out or a moment
    has passed, and raises what the system said of them. Where too many wait ``write`` raises
    BlockingIOError, and that line is lost.
    """
    return cast("TextIO", _Outlet(file))


class _Outlet(io.TextIOBase):
    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._turn = threading.Condition()
        self._lines: deque[bytes] = deque()
        self._is_late = self._is_there = False
        self._error: OSError | None = None

    def isatty(self) -> bool:
        return self._file.isatty()

    def write(self, text: str) -> int:
        encoding, errors = self._file.encoding or "utf-8", self._file.errors or "backslashreplace"
        with self._turn:
            if len(self._lines) >= MOST_LINES:
                raise BlockingIOError(errno.EAGAIN, "nobody reads the log")
            self._lines.append(text.encode(encoding, errors))
            self._begin()
            self._turn.notify_all()
        return len(text)

    def flush(self) -> None:
        # Once it was waited in vain: not again, until what waits is out.
        with self._turn:
            patience = 0.0 if self._is_late else PATIENCE_SECONDS
            self._is_late = not self._turn.wait_for(lambda: not self._lines, patience)
            error, self._error = self._error, None
        if error is not None:
            raise error

    def _begin(self) -> None:
        if not self._is_there:
            self._is_there = True
            threading.Thread(target=self._run, name="log", daemon=True).start()

    def _run(self) -> None:
        number = self._file.fileno()
        while True:
            with self._turn:
                self._turn.wait_for(lambda: bool(self._lines))
                line = self._lines[0]
            error = _written(number, line)
            with self._turn:
                self._error = error or self._error
                self._lines.popleft()
                self._turn.notify_all()


def _written(number: int, line: bytes) -> OSError | None:
    """Write a line to its end; return what the system said where it cannot be."""
    try:
        while line:
            line = line[_write_some(number, line) :]
    except OSError as error:
        return error
    return None


def _write_some(number: int, line: bytes) -> int:
    try:
        return os.write(number, line)
    except BlockingIOError:  # whoever gave us the pipe wants no waiting in a write
        room = select.poll()
        room.register(number, select.POLLOUT)
        room.poll()
        return 0
