"""Burying orphans: as the first process of a container we inherit children that nobody waits for.

A trainer's helpers that outlive it become ours, and each would stay in the process table for ever.
"""

from __future__ import annotations

import os
import threading

#: Who waits for a child of its own does so at once; what is still there at the next look is
#: nobody's (guessed).
LOOK_SECONDS = 5.0


class Reaper:
    """Looks for dead children; one that was dead at the last look already is buried."""

    def __init__(self) -> None:
        """Have seen nobody yet."""
        self._seen = 0

    def look(self) -> int:
        """Bury whoever was seen dead before, and return how many that were."""
        buried = 0
        while (pid := _dead()) and pid == self._seen:
            _bury(pid)
            buried += 1
        self._seen = pid
        return buried

    def start(self) -> None:
        """Look again and again, in a thread of its own, until the process ends."""
        threading.Thread(target=self._run, name="reaper", daemon=True).start()

    def _run(self) -> None:
        pause = threading.Event()
        while not pause.wait(LOOK_SECONDS):
            self.look()


def _dead() -> int:
    """Return a child that is dead and not waited for, which stays so; 0 where there is none."""
    try:
        found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return 0
    return 0 if found is None else found.si_pid


def _bury(pid: int) -> None:
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return  # somebody waited for it after all
