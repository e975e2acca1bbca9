"""Everything that can wait, as one part of the mind: asked last, and quiet while time is short."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ckptsyncd.core.draining.ending import Circumstances, Ending
from ckptsyncd.core.facts import Instant
from ckptsyncd.core.messages import (
    Answer,
    Discarded,
    KeysListed,
    MirrorEnded,
    ObjectSeen,
    PruneEnded,
    RecordRead,
    Report,
)
from ckptsyncd.core.orders import Discard, HandOrder, TidyOrder
from ckptsyncd.core.rules.policy import Policy
from ckptsyncd.core.seeing.eyes import Eyes
from ckptsyncd.core.sending.editions import Editions
from ckptsyncd.core.sending.runs import Runs
from ckptsyncd.core.snapshot import TidyView
from ckptsyncd.core.tidying import recheck, space
from ckptsyncd.core.tidying.gone import Minders, gone
from ckptsyncd.core.tidying.mirroring import Mirroring
from ckptsyncd.core.tidying.pruning import Leisure, Pruning
from ckptsyncd.core.tidying.recheck import Recheck
from ckptsyncd.core.tidying.space import Space
from ckptsyncd.core.turn import Notebook


@dataclass(slots=True)
class Tidy:
    """Pruning, the second thought about what is safe, and room on the disk."""

    policy: Policy
    eyes: Eyes
    editions: Editions
    runs: Runs
    may: bool = False
    pruning: Pruning = field(init=False)
    mirroring: Mirroring = field(init=False)
    recheck: Recheck = field(init=False)
    space: Space = field(init=False)

    def __post_init__(self) -> None:
        """Set up the parts."""
        self.pruning, self.mirroring = Pruning(self.policy), Mirroring(self.policy)
        self.recheck = Recheck(self.policy, self.editions, self.runs)
        self.space = Space(self.policy, self.eyes, self.editions, self.runs)

    def adopt(self, policy: Policy) -> None:
        """Follow other rules from now on."""
        self.policy = self.pruning.policy = self.recheck.policy = self.space.policy = policy
        self.mirroring.policy = policy
        self.space.kept.clear()

    def consider(self, now: float, seen: Circumstances, ending: Ending) -> Iterator[TidyOrder]:
        """Take in how urgent everything else is, and yield what that means for the rest."""
        is_urgent = ending.is_hasty or ending.stop_at is not None
        self.may = seen.ready and not (is_urgent or seen.fenced)
        leisure = Leisure(self.may, seen.in_progress)
        yield from self.mirroring.orders(now, leisure)
        yield from self.pruning.orders(now, leisure)

    def chores(self, now: float) -> Iterator[HandOrder]:
        """Yield what idle hands could ask the store."""
        if self.may:
            yield from self.recheck.orders(now)
            yield from self.space.orders()

    def removals(self) -> Iterator[Discard]:
        """Yield the local copies that are to go."""
        if self.may:
            yield from self.space.removals()

    def hear(self, message: Answer | Report, now: Instant, notes: Notebook) -> bool:
        """Take in the answer to one of its own orders; return whether it was one."""
        purpose = message.errand.purpose
        if isinstance(message, KeysListed) and message.errand == recheck.LIST:
            self.recheck.listed(message, now.boot)
        elif isinstance(message, RecordRead) and purpose in recheck.READS:
            if (lost := self.recheck.read(message, now.boot)) is not None:
                gone(Minders(self.eyes, self.editions, self.runs), *lost, now.boot, notes)
        elif isinstance(message, RecordRead) and purpose == space.CONFIRM:
            self.space.read(message, notes)
        elif isinstance(message, ObjectSeen) and purpose == space.CONFIRM_FILE:
            self.space.seen(message, notes)
        elif isinstance(message, Discarded):
            self.space.discarded(message, notes)
        else:
            return False
        return True

    def committed(self, now: float) -> None:
        """Note that there is a newer commit."""
        self.pruning.committed(now)
        self.mirroring.committed(now)

    def ended(self, message: PruneEnded | MirrorEnded, now: Instant, notes: Notebook) -> None:
        """Take in that what was done beside the hands has ended."""
        if isinstance(message, PruneEnded):
            self.pruning.ended(message, now.boot, now.wall, notes)
        else:
            self.mirroring.ended(message, now.boot, notes)

    def view(self) -> TidyView:
        """Return what outsiders may know of it."""
        pruning, verified = self.pruning, self.recheck.verification
        return TidyView(
            pruned=pruning.pruned,
            objects_removed=pruning.removed,
            pruned_at=pruning.ended_wall,
            prune_failing=pruning.failing,
            local_bytes_removed=self.space.freed_bytes,
            also_copied=self.mirroring.copied,
            also_behind=self.mirroring.behind if self.mirroring.is_wanted else None,
            also_failing=self.mirroring.failing,
            verified_at=None if verified is None else verified.verified_at,
            verified_level="" if verified is None else verified.level,
            verified_whole=0 if verified is None else verified.whole,
            verified_broken=0 if verified is None else verified.broken,
        )

    def next_alarm(self, now: float) -> float:
        """Return when the next turn is due."""
        parts = (self.pruning, self.mirroring)
        return min(self.recheck.next_alarm(), *(part.next_alarm(now) for part in parts))
