"""The only readers of clocks and of the boot id.

Deadlines run on CLOCK_BOOTTIME: it counts through suspend and never jumps, as the wall clock may.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Protocol

from ckptsyncd.core.facts import Instant

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Clock(Protocol):
    """Whatever tells the time."""

    def now(self) -> Instant:
        """Return one reading of both clocks."""
        ...


class BootClock:
    """The machine's own clocks."""

    def now(self) -> Instant:
        """Return one reading of both clocks, taken within a microsecond of each other."""
        return Instant(boot=time.clock_gettime(time.CLOCK_BOOTTIME), wall=time.time())


class FakeClock:
    """A clock that moves only when told; for simulations, drills and tests.

    The first reading is 1,000 s after a boot, in June 2025: no value is mistaken for a duration.
    """

    def __init__(self, boot: float = 1_000.0, wall: float = 1_750_000_000.0) -> None:
        """Stand at these readings."""
        self._now = Instant(boot, wall)

    def now(self) -> Instant:
        """Return the reading at which the clock stands."""
        return self._now

    def advance(self, seconds: float) -> Instant:
        """Move both clocks on and return the new reading."""
        self._now = Instant(self._now.boot + seconds, self._now.wall + seconds)
        return self._now

    def jump_wall(self, seconds: float) -> Instant:
        """Set the wall clock forward (or back), as an operator or NTP does."""
        self._now = Instant(self._now.boot, self._now.wall + seconds)
        return self._now


def boot_id() -> str:
    """Return the name of this boot: boot readings of another one mean nothing here."""
    return _BOOT_ID.read_text(encoding="utf-8").strip()


def monotonic() -> float:
    """Return seconds on the clock that the service manager reckons by."""
    return time.monotonic()


def ticks() -> float:
    """Return seconds on a clock that is only good for measuring short durations."""
    return time.perf_counter()
