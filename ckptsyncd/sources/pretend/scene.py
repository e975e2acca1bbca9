"""What all pretended services share: one clock that can stand still, one lock, and who waits."""

from __future__ import annotations

import threading
from collections.abc import Callable
from email.utils import formatdate

#: In June 2025: no value is mistaken for a duration.
START_WALL = 1_750_000_000.0
#: No test waits longer than this for a request to arrive.
PATIENCE_SECONDS = 10.0


class Scene:
    """A clock and a condition; everything that the services remember changes under ``changed``."""

    def __init__(self, base: Callable[[], float] | None = None) -> None:
        """Let time stand still at ``START_WALL``, or run as ``base`` does."""
        self.changed = threading.Condition()
        self.is_closing = False
        self._base = base
        self._offset = 0.0 if base else START_WALL
        self._held = 0
        self._releases = 0

    def now(self) -> float:
        """Return the pretended time, seconds since the epoch."""
        return self._offset + (self._base() if self._base else 0.0)

    def date(self, skew_seconds: float = 0.0) -> str:
        """Return the pretended time as a Date header has it."""
        return formatdate(self.now() + skew_seconds, usegmt=True)

    def advance(self, seconds: float) -> None:
        """Let time pass at once; hanging requests whose time is over return."""
        with self.changed:
            self._offset += seconds
            self.changed.notify_all()

    def hold(self, ready: Callable[[], bool], seconds: float) -> None:
        """Keep a request waiting until ``ready``, for so long, or until ``release``."""
        with self.changed:
            end, releases = self.now() + seconds, self._releases
            self._held += 1
            self.changed.notify_all()
            while not (ready() or self.now() >= end or self._is_over(releases)):
                self.changed.wait(max(end - self.now(), 0.0) if self._base else None)
            self._held -= 1
            self.changed.notify_all()

    def _is_over(self, releases: int) -> bool:
        return self.is_closing or self._releases != releases

    def await_held(self, count: int = 1) -> None:
        """Return once so many requests hang; AssertionError if they do not come."""
        with self.changed:
            found = self.changed.wait_for(lambda: self._held >= count, PATIENCE_SECONDS)
        if not found:
            msg = f"{self._held} of {count} requests hang"
            raise AssertionError(msg)

    def release(self) -> None:
        """Let every hanging request return."""
        with self.changed:
            self._releases += 1
            self.changed.notify_all()

    def close(self) -> None:
        """Let every hanging request return, also later ones."""
        with self.changed:
            self.is_closing = True
            self.changed.notify_all()
