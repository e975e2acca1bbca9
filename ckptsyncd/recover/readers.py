"""How many reads at a time are of use: by the same measured rule as the hands that upload."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ckptsyncd.core.sending.crew import Crew

#: So long each number of readers is measured: a piece from a near store takes 10 ms, and a few of
#: those say more about the machine's other work (guessed).
MEASURE_SECONDS = 0.2


class Readers:
    """Counts who reads at once, and says how many should; for any thread.

    It begins with few: on a fast near store more of them only get into each other's way. A far one
    is read by twice as many as long as they carry clearly more together.
    """

    def __init__(self, most: int, clock: Callable[[], float]) -> None:
        """Never say more than ``most``; ``clock`` tells monotonic seconds.

        A slow read keeps nobody waiting here, so it is no reason against more of them.
        """
        self._most = most
        self._clock = clock
        self._crew = Crew(longest_seconds=math.inf, least_seconds=MEASURE_SECONDS)
        self._lock = threading.Lock()
        self._busy = 0

    def wanted(self) -> int:
        """Return how many are to read at once now."""
        return self._crew.hands(self._most)

    @contextmanager
    def reading(self, size_bytes: int) -> Iterator[None]:
        """Count a read while it lasts, and learn of it; one that fails teaches nothing.

        What the disk takes to have it is part of it.
        """
        begun = self._clock()
        with self._lock:
            self._busy += 1
        try:
            yield
        except BaseException:
            with self._lock:
                self._busy -= 1
            raise
        with self._lock:
            self._busy -= 1
            self._crew.did(size_bytes, begun, self._clock(), most=self._most, busy=self._busy)
