"""A thread that looks how much of the disk pins hold, and tells while that is too much."""

from __future__ import annotations

import threading
from collections.abc import Callable

from ckptsyncd.core.messages import PinsWeighed
from ckptsyncd.core.sending.crowding import too_much
from ckptsyncd.edge.clock import ticks

#: It looks this often (guessed: a fast disk takes 2 GB in that time, and the floor is more).
WEIGH_SECONDS = 1.0
#: It rests at least so many times as long as a look took: five percent of one core.
REST_TIMES = 20.0


class Weigher:
    """Posts what it found while it is too much, and once more when it no longer is."""

    def __init__(
        self, weigh: Callable[[], PinsWeighed], post: Callable[[PinsWeighed], object]
    ) -> None:
        """Do not start yet. ``weigh`` may raise OSError: then there is nothing to tell."""
        self._weigh = weigh
        self._post = post
        self._was_too_much = False
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="weigher", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more; a hung file system is left to the system."""
        self._stopping.set()

    def turn(self) -> None:
        """Look once, and tell."""
        try:
            weighed = self._weigh()
        except OSError:  # no root now, and nothing in it that could be too much
            return
        is_too_much = bool(too_much(weighed))
        if is_too_much or self._was_too_much:
            self._post(weighed)
        self._was_too_much = is_too_much

    def _run(self) -> None:
        took = 0.0
        while not self._stopping.wait(max(WEIGH_SECONDS, REST_TIMES * took)):
            begun = ticks()
            self.turn()
            took = ticks() - begun
