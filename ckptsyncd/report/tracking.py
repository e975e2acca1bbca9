"""A tracker behind a courier: whoever turns never waits for a disk or a service that plots."""

from __future__ import annotations

from typing import Protocol

from ckptsyncd.report.courier import Courier
from ckptsyncd.report.grumble import Grumble
from ckptsyncd.report.readings import Reading

#: So many readings wait at most, the newest (a tracker that hangs misses what is older).
MOST_WAITING = 256


class Tracker(Protocol):
    """Whoever plots readings."""

    def write(self, reading: Reading) -> None:
        """Take one reading; raises OSError where it cannot."""
        ...


class Tracked:
    """Hands readings to one tracker, from a thread of its own, and grumbles where it fails."""

    def __init__(self, name: str, tracker: Tracker, grumble: Grumble) -> None:
        """Hand over nothing yet."""
        self._tracker = tracker
        self._grumble = grumble
        self._courier: Courier[Reading] = Courier(name, self._carry, MOST_WAITING)
        self.put = self._courier.put
        self.close = self._courier.close

    def _carry(self, reading: Reading) -> None:
        try:
            self._tracker.write(reading)
        except OSError as error:
            self._grumble.heard(str(error))
        else:
            self._grumble.heard("")
