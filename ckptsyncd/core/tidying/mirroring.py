"""When the second destination is brought up to date: after every commit, last of all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ckptsyncd.core.messages import MirrorEnded
from ckptsyncd.core.orders import HoldMirror, Mirror
from ckptsyncd.core.rules.policy import Policy
from ckptsyncd.core.tidying.pruning import PATIENCE_SECONDS, Leisure
from ckptsyncd.core.turn import Notebook

#: After a failure, and after one that had to give way, it is begun again after so long (guessed).
AGAIN_SECONDS = 60.0
#: What somebody else committed to the first destination is looked for this often (guessed).
LATER_SECONDS = 3600.0


@dataclass(slots=True)
class Mirroring:
    """One run at a time. ``due`` is boot seconds; ``behind`` is ``None`` where nobody knows."""

    policy: Policy
    due: float = float("-inf")
    number: int = 0
    is_running: bool = False
    is_held: bool = False
    is_late: bool = False
    has_news: bool = False
    copied: int = 0
    behind: int | None = None
    failing: str = ""

    @property
    def is_wanted(self) -> bool:
        """Whether there is a second destination; of several machines the first one serves it."""
        return self.policy.has_also and self.policy.node == 0

    def committed(self, now: float) -> None:
        """Note that the first destination holds something new."""
        self.has_news, self.behind = True, None
        if not self.failing:
            self.due = min(self.due, now)

    def orders(self, now: float, leisure: Leisure) -> Iterator[Mirror | HoldMirror]:
        """Yield the order to begin, or to give way."""
        if self.is_running:
            may = leisure.may and (not leisure.is_busy or self.is_late)
            if not may and not self.is_held:
                self.is_held = True
                yield HoldMirror()
            return
        self.is_late = now >= self.due + PATIENCE_SECONDS
        may = leisure.may and (not leisure.is_busy or self.is_late)
        if self.is_wanted and may and now >= self.due:
            self.is_running, self.is_held, self.has_news = True, False, False
            self.number += 1
            yield Mirror(self.number)

    def ended(self, message: MirrorEnded, now: float, notes: Notebook) -> None:
        """Take in what came over, and choose when to look again."""
        if message.number != self.number or not self.is_running:
            return
        self.is_running = False
        self.copied += message.copied
        is_over = not (message.interrupted or message.error)
        self.behind = message.behind if is_over and not self.has_news else None
        if not is_over:
            self.due = now + AGAIN_SECONDS
        else:
            self.due = now if self.has_news else now + LATER_SECONDS
        if message.error and message.error != self.failing:
            notes.said("also.failed", ("text", message.error))
        if message.copied:
            notes.said("also.copied", ("checkpoints", message.copied), ("bytes", message.bytes))
        self.failing = message.error

    def next_alarm(self, now: float) -> float:
        """Return when the next turn is due; other messages bring the turns before that."""
        if self.is_running or not self.is_wanted:
            return float("inf")
        late = self.due + PATIENCE_SECONDS
        return next((moment for moment in (self.due, late) if moment > now), float("inf"))
