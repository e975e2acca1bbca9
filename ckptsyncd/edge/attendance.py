"""Whether a trainer runs that the settings name: asked again and again, told when it changes."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from ckptsyncd.core.messages import TrainerSeen
from ckptsyncd.edge.telling import Ways, named, pid_in

#: Asked this often (guessed: a stop waits that much longer at most).
ASK_SECONDS = 1.0


class Attendance:
    """Posts whether any process runs that ``ways`` name: at the start, and on every change."""

    def __init__(self, ways: Ways, post: Callable[[TrainerSeen], object]) -> None:
        """Do not start yet."""
        self._ways = ways
        self._post = post
        self._told: bool | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="attendance", daemon=True)

    def start(self) -> None:
        """Ask once, and go on asking: what is true at the start is told before this returns."""
        self.turn()
        self._thread.start()

    def stop(self) -> None:
        """Ask no more."""
        self._stopping.set()

    def turn(self) -> None:
        """Ask once, and tell if it is news."""
        is_alive = any(map(runs, self._processes()))
        if is_alive != self._told:
            self._told = is_alive
            self._post(TrainerSeen(is_alive))

    def _processes(self) -> Iterator[int]:
        ways = self._ways
        if ways.pid is not None:
            yield ways.pid
        if ways.pid_file:
            with contextlib.suppress(OSError):  # not written yet, or removed by who ended
                pid = pid_in(Path(ways.pid_file))
                yield from () if pid is None else (pid,)
        if ways.process:
            yield from named(ways.process)

    def _run(self) -> None:
        while not self._stopping.wait(ASK_SECONDS):
            self.turn()


def runs(pid: int) -> bool:
    """Return whether a process of this number exists and has not ended (a zombie has)."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] not in ("Z", "X")
