"""How fast, how far and whether at all a removal may go: it is the least urgent thing there is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ckptsyncd.errors import Postponed
from ckptsyncd.recover.patience import Pace, patiently


@dataclass(slots=True)
class Gait:
    """Does one thing after the other, at most ``per_second`` of them.

    ``may`` is asked before each: where it says no, Postponed ends the work. With ``dry`` nothing
    is done, and everything counted. ``done`` counts both.
    """

    pace: Pace
    per_second: float
    dry: bool = False
    may: Callable[[], bool] = field(default=lambda: True)
    done: int = 0

    def act(self, do: Callable[[], object]) -> None:
        """Do one thing, asking the store again while it says so; raises its last error."""
        if not self.may() or self.pace.stop.is_set():
            msg = "something more urgent has come"
            raise Postponed(msg)
        self.done += 1
        if self.dry:
            return
        patiently(do, self.pace)
        self.pace.wait(1.0 / self.per_second)
