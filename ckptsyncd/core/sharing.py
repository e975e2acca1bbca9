"""A mind that shares its disk with others: it thinks only while the lease is its own.

While another daemon uploads, this one hears and does nothing but ask for the lease. Whenever the
lease comes or goes, the program is to begin anew with what ledger, disk and store say by then: what
was thought before is about a world in which somebody else has acted.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ckptsyncd.core.brain import Brain
from ckptsyncd.core.facts import Instant
from ckptsyncd.core.messages import (
    Message,
    Noticed,
    Polled,
    RootLost,
    SourceHeard,
    StopRequested,
    TrainerSeen,
    Withdrawn,
)
from ckptsyncd.core.moves import Said
from ckptsyncd.core.orders import BeginAnew, Order, Stop
from ckptsyncd.core.sending.together.lease import Lease
from ckptsyncd.core.turn import Turn

#: What whoever begins anew has to be told again.
LASTING = (Noticed, Withdrawn, SourceHeard, Polled, RootLost, TrainerSeen, StopRequested)
#: So many of these are kept (guessed).
MOST_KEPT = 200


@dataclass(slots=True)
class Turns:
    """What outlives a mind: the lease, whether it was ours in the last turn, and what lasts."""

    lease: Lease | None = None
    was_ours: bool = False
    kept: list[Message] = field(default_factory=list)

    def keep(self, message: Message) -> None:
        """Keep what a later mind has to know."""
        if isinstance(message, LASTING):
            others = [kept for kept in self.kept if kept != message]
            self.kept = [*others[1 - MOST_KEPT :], message]


@dataclass(slots=True)
class SharingBrain(Brain):
    """A brain for a watch root that other daemons see too."""

    turns: Turns = field(kw_only=True)

    def __post_init__(self) -> None:
        """Set up the parts of the mind, and the lease if this is the first mind here."""
        # As written out: slots make a new class, and ``super`` without arguments means the old one.
        Brain.__post_init__(self)
        if self.turns.lease is None:
            self.turns.lease = Lease(self.who.host, self.who.nonce, self.policy.lease_seconds)

    @property
    def lease(self) -> Lease:
        """The lease, which outlives this mind."""
        assert self.turns.lease is not None  # noqa: S101 - made with the first mind
        return self.turns.lease

    def handle(self, message: Message, now: Instant, *, more: bool = False) -> Turn:
        """Take in one message: as any brain while the lease is ours, else only about the lease."""
        turns, lease = self.turns, self.lease
        turns.keep(message)
        is_about_lease = lease.hear(message, now)
        asked = tuple(lease.orders(now))
        is_ours = lease.is_ours(now.boot)
        if is_ours != turns.was_ours:
            turns.was_ours = is_ours
            said = Said("lease.taken" if is_ours else "lease.lost", (("holder", lease.holder()),))
            return Turn((*asked, BeginAnew(tuple(turns.kept))), (said,))
        if not is_ours:
            return Turn((*asked, *self._idle(message)), ())
        if is_about_lease:
            return Turn(asked, ())
        turn = Brain.handle(self, message, now, more=more)
        return Turn((*turn.orders, *asked), turn.moves)

    def _idle(self, message: Message) -> tuple[Order, ...]:
        holder = self.lease.holder()
        self.ending.state = "running"
        who = f"{holder} uploads what lies here" if holder else "nobody is known to upload yet"
        self.ending.reason = f"idle: {who}"
        return (Stop(0),) if isinstance(message, StopRequested) else ()

    def next_alarm(self, now: float) -> float:
        """Return when the next turn is due at the latest."""
        alarm = self.lease.next_alarm(now)
        if not self.turns.was_ours:
            return alarm
        return min(alarm, Brain.next_alarm(self, now))
