"""A restore as the service manager hears of it: it asks for more time while bytes arrive."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

from ckptsyncd.cli.bars import progress_line
from ckptsyncd.recover.request import Progress, Step
from ckptsyncd.report.systemd import Systemd

#: It is told at most this often (guessed: its own limits are minutes).
_TELL_SECONDS = 5.0
#: How much longer it is to wait after each sign of life: longer than any wait for a store that
#: does not answer (60 s) and than the check of one large file (guessed).
MORE_SECONDS = 300.0


class Arriving:
    """Passes everything on, and tells the service manager how far it is.

    A unit with ``Type=notify`` is not started before the daemon watches; a restore of many
    gigabytes takes longer than its start may, and only one that stands still is to be ended.
    """

    def __init__(
        self, inner: Progress, systemd: Systemd, clock: Callable[[], float] = monotonic
    ) -> None:
        """Ask for time from now on."""
        self._inner = inner
        self._systemd = systemd
        self._clock = clock
        self._total = self._there = 0
        self._began_at = self._told_at = clock()
        self._systemd.extend_timeout(MORE_SECONDS)

    def said(self, text: str) -> None:
        """Pass a line on."""
        self._inner.said(text)

    def began(self, files: int, total_bytes: int, there_bytes: int) -> None:
        """Begin to count."""
        self._total, self._there, self._began_at = total_bytes, there_bytes, self._clock()
        self._inner.began(files, total_bytes, there_bytes)
        self._tell(self._clock())

    def moved(self, arrived_bytes: int) -> None:
        """Count, and tell now and then. Threads that come at once may tell twice."""
        self._there += arrived_bytes
        self._inner.moved(arrived_bytes)
        now = self._clock()
        if now - self._told_at >= _TELL_SECONDS:
            self._tell(now)

    def reached(self, step: Step) -> None:
        """Pass a step on."""
        self._inner.reached(step)
        self._tell(self._clock())

    def _tell(self, now: float) -> None:
        self._told_at = now
        self._systemd.extend_timeout(MORE_SECONDS)
        rate = self._there / max(now - self._began_at, 1e-9)
        self._systemd.status(f"restoring: {progress_line(self._there, self._total, rate)}")
