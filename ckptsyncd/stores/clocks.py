"""How far this machine's clock is from a store's, by the Date of the store's answers."""

from __future__ import annotations

import time
from collections.abc import Callable
from email.utils import formatdate, parsedate_to_datetime

#: Less is not worth correcting: a Date has whole seconds, and stores allow 15 minutes.
NOTICEABLE_SECONDS = 60.0


class ServerClock:
    """The difference that the last answer showed; called from any thread."""

    def __init__(self, wall: Callable[[], float] = time.time) -> None:
        """Know nothing yet; ``wall`` reads this machine's clock."""
        self._wall = wall
        self.ahead_seconds: float | None = None

    def heard(self, date: str | None) -> None:
        """Take in the Date header of an answer that has just come."""
        server = wall_of(date)
        if server is not None:
            self.ahead_seconds = self._wall() - server

    def date(self) -> str:
        """Return what time it is there, as a header has it."""
        ahead = self.ahead_seconds or 0.0
        return formatdate(self._wall() - (ahead if self.is_off else 0.0), usegmt=True)

    @property
    def is_off(self) -> bool:
        """Whether the difference is more than delay and rounding."""
        return abs(self.ahead_seconds or 0.0) >= NOTICEABLE_SECONDS


def wall_of(date: str | None) -> float | None:
    """Return the time that a Date header tells (seconds since the epoch), ``None`` for none."""
    try:
        return parsedate_to_datetime(date or "").timestamp()
    except ValueError:
        return None
