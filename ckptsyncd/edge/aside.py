"""Do something beside the loop, and wait for it only so long: a disk that hangs raises no error.

A thread in a system call that never returns cannot be ended, nor can it hear a signal. So whoever
must go on lets somebody else wait.
"""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue

from ckptsyncd.edge.clock import monotonic


class Late(TimeoutError):
    """What was asked for goes on; its end comes later. ``seconds``: for how long it has."""

    def __init__(self, seconds: float) -> None:
        """Say so."""
        text = f"the disk has not answered for {seconds:.0f} s"
        super().__init__(errno.ETIMEDOUT, text)
        self.seconds = seconds


class Aside:
    """A thread that does one thing after the other, for one caller. It never holds up the exit."""

    def __init__(self, name: str) -> None:
        """Name the thread, which begins with the first thing to do."""
        self._name = name
        self._wanted: SimpleQueue[Callable[[], object]] = SimpleQueue()
        self._ended: SimpleQueue[BaseException | None] = SimpleQueue()
        self._begun_at: float | None = None
        self._is_there = False

    def begin(self, action: Callable[[], object]) -> None:
        """Begin it; where something else is under way that raises Late, or what that raised."""
        self.wait(0.0)
        if not self._is_there:
            threading.Thread(target=self._run, name=self._name, daemon=True).start()
            self._is_there = True
        self._begun_at = monotonic()
        self._wanted.put(action)

    def wait(self, seconds: float) -> None:
        """Wait for the end of what is under way, if anything is; raises what that raised, or Late.

        Its error is raised once.
        """
        if self._begun_at is None:
            return
        try:
            error = self._ended.get(timeout=seconds)
        except Empty:
            raise Late(monotonic() - self._begun_at) from None
        self._begun_at = None
        if error is not None:
            raise error

    def _run(self) -> None:
        while True:
            self._ended.put(_outcome(self._wanted.get()))


def _outcome(action: Callable[[], object]) -> BaseException | None:
    try:
        action()
    except BaseException as error:  # noqa: BLE001 - whoever waits is to have it
        return error
    return None
