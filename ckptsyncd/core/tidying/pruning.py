"""When old checkpoints may go from the store: last of all, never in haste, and only if asked for.

What goes is decided by ``core.rules.retention`` from what the store holds; here is decided whether
and when somebody looks. The work itself is many small requests one after the other, so it is done
beside the hands, and gives way before its next removal where something urgent comes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ckptsyncd.core.messages import PruneEnded
from ckptsyncd.core.orders import HoldPrune, Prune
from ckptsyncd.core.rules.policy import Policy
from ckptsyncd.core.turn import Notebook

#: Uploads that never end do not keep old checkpoints for ever: after so long it is begun beside
#: them (guessed). A drain is never shared.
PATIENCE_SECONDS = 3600.0
#: One that had to give way is begun again after so long (guessed).
AGAIN_SECONDS = 60.0
#: What dead writers left is looked for this often (guessed: they are dead for a week before).
REAP_SECONDS = 86400.0


@dataclass(frozen=True, slots=True)
class Leisure:
    """Whether anything may be done that can wait (``may``), and whether something else waits."""

    may: bool
    is_busy: bool


@dataclass(slots=True)
class Pruning:
    """One prune at a time. Times are boot seconds.

    ``asked_at``: since when a commit asks for it. ``later``: when it is due without one.
    ``pruned`` and ``removed`` add up what all of this process did.
    """

    policy: Policy
    asked_at: float | None = None
    later: float = float("-inf")
    not_before: float = float("-inf")
    number: int = 0
    is_running: bool = False
    is_held: bool = False
    is_late: bool = False
    failing: str = ""
    ended_wall: float | None = None
    pruned: int = 0
    removed: int = 0

    @property
    def is_wanted(self) -> bool:
        """Whether the user's rules ask for it at all; of several machines the first one does it."""
        policy = self.policy
        return policy.node == 0 and (policy.retention.is_said or policy.reap)

    @property
    def due(self) -> float:
        """When it is worth the next look."""
        asked = self.later if self.asked_at is None else min(self.asked_at, self.later)
        return max(asked, self.not_before)

    def committed(self, now: float) -> None:
        """Note that there is a newer commit: older ones may go now."""
        if self.asked_at is None and self.policy.retention.is_said:
            self.asked_at = now

    def orders(self, now: float, leisure: Leisure) -> Iterator[Prune | HoldPrune]:
        """Yield the order to begin, or to give way."""
        if self.is_running:
            may = leisure.may and (not leisure.is_busy or self.is_late)
            if not may and not self.is_held:
                self.is_held = True
                yield HoldPrune()
            return
        self.is_late = now >= self.due + PATIENCE_SECONDS
        may = leisure.may and (not leisure.is_busy or self.is_late)
        if self.is_wanted and may and now >= self.due:
            self.is_running, self.is_held, self.asked_at = True, False, None
            self.number += 1
            rules = self.policy
            yield Prune(
                self.number,
                rules.retention,
                rules.prune_grace,
                rules.prune_rate,
                reaps=rules.reap,
            )

    def ended(self, message: PruneEnded, now: float, wall: float, notes: Notebook) -> None:
        """Take in what was done, and choose when it is worth the next look."""
        if message.number != self.number or not self.is_running:
            return
        self.is_running = False
        self.pruned += message.pruned
        self.removed += message.objects + message.uploads
        self._plan(message, now)
        if not (message.interrupted or message.error):
            self.ended_wall = wall
        _tell(message, self.failing, notes)
        self.failing = message.error

    def _plan(self, message: PruneEnded, now: float) -> None:
        interval = self.policy.prune_interval
        if message.interrupted:
            self.later, interval = now, min(interval, AGAIN_SECONDS)
        elif message.error:
            self.later = now
        else:
            grace = self.policy.prune_grace if message.waiting else REAP_SECONDS
            # At the first a new machine has not taken its epoch yet: nobody is known to be dead.
            reaps = interval if self.number == 1 and self.policy.reap else REAP_SECONDS
            self.later = now + min(grace, reaps)
        self.not_before = now + interval

    def next_alarm(self, now: float) -> float:
        """Return when the next turn is due; other messages bring the turns before that."""
        if self.is_running or not self.is_wanted:
            return float("inf")
        late = self.due + PATIENCE_SECONDS
        return next((moment for moment in (self.due, late) if moment > now), float("inf"))


def _tell(message: PruneEnded, failing: str, notes: Notebook) -> None:
    if message.error and message.error != failing:
        notes.said("prune.failed", ("text", message.error))
    if message.pruned or message.objects or message.uploads:
        notes.said(
            "prune.done",
            ("checkpoints", message.pruned),
            ("objects", message.objects),
            ("uploads", message.uploads),
        )
