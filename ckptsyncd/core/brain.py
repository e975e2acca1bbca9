"""The mind: one message in, orders out. No I/O, no clock, no thread, no randomness of its own.

The brain holds what is under way and what rests after a failure; everything else is read off the
levels that the eyes, the editions and the series keep. Each turn it takes in one message, collects
what could be done now (``wishes``), and hands out at most as many orders as there are free hands,
so that a drain can reorder everything that has not started.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from ckptsyncd.core.draining.drain import Drain
from ckptsyncd.core.draining.ending import Circumstances, Ending
from ckptsyncd.core.draining.planner import Planner
from ckptsyncd.core.facts import Instant
from ckptsyncd.core.foreman import Foreman, note_state
from ckptsyncd.core.messages import (
    Answer,
    Failed,
    Message,
    MirrorEnded,
    Noticed,
    PinsWeighed,
    Probed,
    Pruned,
    PruneEnded,
    Reconfigured,
    RecordPut,
    RecordRead,
    Report,
    SourceHeard,
    StopRequested,
    TrainerSeen,
    TrainerTold,
    Unpinned,
    UploadBegun,
    Withdrawn,
)
from ckptsyncd.core.orders import (
    Begin,
    Errand,
    HandOrder,
    Order,
    SetPace,
    Stop,
)
from ckptsyncd.core.records.memory import Recalled, forget_handled, handled_notices
from ckptsyncd.core.rules.policy import Policy
from ckptsyncd.core.seeing.eyes import Eyes
from ckptsyncd.core.seeing.layouts import BUILT_IN, Layout
from ckptsyncd.core.sending import answers
from ckptsyncd.core.sending.beside import Beside
from ckptsyncd.core.sending.case import Case
from ckptsyncd.core.sending.crowding import Crowding
from ckptsyncd.core.sending.editions import Editions
from ckptsyncd.core.sending.measuring import measure
from ckptsyncd.core.sending.outstanding import Out, Outstanding, original, sent_bytes
from ckptsyncd.core.sending.rate import LARGE_BYTES, Rate
from ckptsyncd.core.sending.runs import Runs
from ckptsyncd.core.sending.together.fit import unfit
from ckptsyncd.core.sending.trouble import Trouble
from ckptsyncd.core.sightings import CompanionSeen, PointerSeen, Removed, Settled
from ckptsyncd.core.tidying.tidy import Tidy
from ckptsyncd.core.turn import Notebook, Turn
from ckptsyncd.core.wishes import Who, Wishes


@dataclass(slots=True)
class Brain:
    """``handle(message, now)`` is one turn; ``next_alarm()`` is when the next is due at the latest.

    ``random`` gives uniform numbers in [0, 1). ``recalled`` is what the ledger knew; ``lineages``
    what the last restore into this watch root says of its series. ``has_trainer``: a trainer is
    known to run, our own or one that the settings name. ``held_pins`` are a former daemon's.
    """

    policy: Policy
    who: Who
    random: Callable[[], float]
    recalled: Recalled = field(default_factory=Recalled)
    lineages: dict[str, int] = field(default_factory=dict)
    exclude: tuple[str, ...] = ()
    layouts: tuple[Layout, ...] = ()
    has_trainer: bool = False
    held_pins: tuple[str, ...] = ()
    eyes: Eyes = field(init=False)
    editions: Editions = field(init=False)
    runs: Runs = field(init=False)
    ending: Ending = field(init=False)
    beside: Beside = field(init=False)
    tidy: Tidy = field(init=False)
    wishes: Wishes = field(init=False)
    rate: Rate = field(default_factory=Rate)
    trouble: Trouble = field(default_factory=Trouble)
    outstanding: Outstanding = field(init=False)
    planner: Planner = field(init=False)
    drain: Drain = field(init=False)
    foreman: Foreman = field(init=False)
    crowding: Crowding = field(init=False)
    pace: int | None = None
    last_event_at: float = 0.0
    pieces_stored: int = 0

    def __post_init__(self) -> None:
        """Set up the parts of the mind."""
        policy, who = self.policy, self.who
        self.eyes = Eyes(policy, (*self.layouts, *BUILT_IN), self.exclude)
        self.eyes.trust(*(row.settled for row in self.recalled.editions.values()))
        self.editions = Editions(policy, who.nonce, self.recalled)
        self.editions.leftovers.recall(self.recalled.garbage)
        me = (who.host, who.nonce)
        self.runs = Runs.remembered(policy, me, self.recalled, self.lineages)
        handled, others = handled_notices(self.recalled.daemon, who.boot_id)
        self.ending = Ending(policy, handled, who.boot_id)
        self.ending.rows += [forget_handled(notice_id) for notice_id in others]
        self.beside = Beside(policy)
        self.tidy = Tidy(policy, self.eyes, self.editions, self.runs)
        self.outstanding = Outstanding(policy, self.random)
        self.planner = Planner(self.ending, self.editions, self.runs, self.rate, self.outstanding)
        self.drain = Drain(
            me, self.eyes, self.ending, self.editions, self.runs, self.rate, self.planner
        )
        self.wishes = Wishes(
            policy=policy,
            who=who,
            eyes=self.eyes,
            editions=self.editions,
            runs=self.runs,
            beside=self.beside,
            ending=self.ending,
            drain=self.drain,
            tidy=self.tidy,
            is_free=self.outstanding.is_free,
        )
        self.crowding = Crowding(self.editions, self.wishes.rank_of)
        self.foreman = Foreman(
            self.wishes, self.outstanding, self.planner, self.eyes, self.editions
        )

    @property
    def under_way(self) -> dict[Errand, Out]:
        """Every order that is out."""
        return self.outstanding.out

    # One turn -----------------------------------------------------------------------------------

    def handle(self, message: Message, now: Instant, *, more: bool = False) -> Turn:
        """Take in one message and return what is to be done about everything.

        With ``more`` another one follows at once: what is to be done comes with the last of them.
        """
        notes = Notebook()
        if self.held_pins:
            self.editions.revive(self.held_pins, now, notes)
            self.held_pins = ()
        self._hear(message, now, notes)
        if more:
            return Turn(tuple(notes.ledger), tuple(notes.moves))
        self._see(now, notes)
        self.ending.settle(now.boot, self._circumstances(now), notes)
        told = self.drain.begin(now)
        self.eyes.hurry(on=self.ending.is_hasty)
        # Less patience may have settled something at once: only then is a drain perhaps over.
        self._see(now, notes)
        seen = self._circumstances(now)
        self.ending.settle(now.boot, seen, notes)
        told += self._follow_drain(seen, now, notes)
        # What the plan called back is at risk again: only now is it known whether this is the end.
        seen = self._circumstances(now)
        code = 2 if self.ending.refused else self.ending.exit_code(now.boot, seen)
        told += [] if code is None else self.drain.stop(now, seen, notes)
        told += self.tidy.consider(now.boot, seen, self.ending)
        orders: list[Order] = [
            *self.foreman.scanner_orders(now),
            *self.foreman.hand_orders(now, notes, hasty=self.ending.is_hasty),
        ]
        orders = [*self._pace(), *told, *orders]
        if code is not None:
            orders.append(Stop(code))
        return Turn((*notes.ledger, *orders), tuple(notes.moves))

    def _follow_drain(self, seen: Circumstances, now: Instant, notes: Notebook) -> list[Order]:
        """Remake the plan, and return what trainer, sources and disk are told of a drain."""
        orders = self.drain.follow(now, seen, notes)
        if self.ending.end_drill():
            self.ending.settle(now.boot, seen, notes)
            orders += self.drain.follow(now, seen, notes)
        self.planner.consider(now.boot, self.wishes.known_limits, notes)
        return orders

    def _pace(self) -> Iterator[Order]:
        pace = None if self.ending.is_hasty else self.policy.bandwidth
        if pace != self.pace:
            if pace is None:
                self.rate.forget()
            self.pace = pace
            yield SetPace(pace)

    def next_alarm(self, now: float) -> float:
        """Return when the next turn is due by the mere passing of time (boot seconds)."""
        times = [self.ending.next_alarm(self.last_event_at, now), self.drain.next_alarm(now)]
        times.append(self.tidy.next_alarm(now))
        times += [wait.until for wait in self.outstanding.resting.values()]
        times.append(self.outstanding.throttle.until)
        parked = (edition.parked_until for edition in self.editions.open.values())
        times += [time for time in (*parked, self.eyes.next_alarm()) if time is not None]
        times += [edition.joint.due for edition in self.editions.open.values()]
        if self.wishes.is_ready:
            times.append(self.runs.due(now, hasty=self.ending.is_hasty))
        # What was due at ``now`` was considered in the turn at ``now``: if no hand was free for
        # it, an answer brings the next turn.
        return min((time for time in times if time > now), default=float("inf"))

    def _circumstances(self, now: Instant) -> Circumstances:
        opened = self.editions.open.values()
        stopping = self.ending.stop_at is not None
        return Circumstances(
            ready=self.wishes.is_ready and self.eyes.scanned_once,
            at_risk=bool(opened or self.foreman.silence.disk.text) or not self.runs.is_settled(),
            in_progress=any(edition.state != "parked" for edition in opened)
            or not self.runs.is_settled(),
            writing=self.has_trainer
            or (stopping and self.eyes.is_writing(now.boot - self.policy.linger_seconds)),
            will_settle=(stopping or self.ending.is_hasty)
            and any(view.until is not None for view in self.eyes.views()),
            fenced=self.runs.fenced,
            last_event_at=self.last_event_at,
            awaiting=self.drain.is_awaiting(now.boot),
            hopeless=not self.wishes.is_ready and self.trouble.is_hopeless,
        )

    # Messages -----------------------------------------------------------------------------------

    def _hear(self, message: Message, now: Instant, notes: Notebook) -> None:
        self.eyes.hear(message, now.boot)
        if isinstance(message, Failed):
            self._failed(message, now, notes)
        elif isinstance(message, Unpinned) and message.error:
            self._failed(Failed(message.errand, "local", message.error), now, notes)
        elif isinstance(message, Answer | Report):
            self._answered(message, now, notes)
        elif isinstance(message, Pruned):
            self.editions.pruned(message.checkpoint, message.edition, notes)
            self.runs.forgot(message.checkpoint)
        elif isinstance(message, PruneEnded | MirrorEnded):
            self.tidy.ended(message, now, notes)
        elif isinstance(message, Reconfigured):
            self._adopt(message.policy)
        elif isinstance(message, PinsWeighed):
            self.crowding.hear(message, notes)
        else:
            self._told(message, notes)

    def _told(self, message: Message, notes: Notebook) -> None:
        """Take in what is said about the end: notices, stops, the trainer."""
        if isinstance(message, Noticed):
            self.ending.notice(message.notice)
        elif isinstance(message, Withdrawn):
            self.ending.withdraw(message.notice_id)
        elif isinstance(message, SourceHeard):
            self.ending.heard(message.source, message.blind)
        elif isinstance(message, StopRequested):
            self.ending.stop(message.deadline_boot)
        elif isinstance(message, TrainerTold):
            self.drain.told_trainer(message.text, notes)
        elif isinstance(message, TrainerSeen):
            self.has_trainer = message.is_alive

    def _adopt(self, policy: Policy) -> None:
        """Follow other rules from now on, every part of the mind."""
        self.policy = self.editions.policy = self.runs.policy = policy
        self.ending.policy = self.beside.policy = policy
        self.wishes.policy = self.outstanding.policy = policy
        self.eyes.adopt(policy)
        self.tidy.adopt(policy)

    def _answered(self, message: Answer | Report, now: Instant, notes: Notebook) -> None:
        out = self.outstanding.ended(message)
        if out is None:
            if isinstance(message, UploadBegun):
                self.editions.leftovers.abandon(message.begun, notes)
            self.runs.came_late(message.errand)
            return
        message, order = original(message), out.order
        errand = message.errand
        has_rested = self.outstanding.rested(errand)
        # Other orders may succeed while one keeps failing: only its own success ends the trouble.
        if isinstance(order, HandOrder) and (has_rested or not self.outstanding.resting):
            self.trouble.ended(notes)
        self.pieces_stored += measure(message, out, now.boot, self.rate, self.outstanding)
        edition = self.editions.open.get((errand.checkpoint, errand.save_id))
        if edition is not None:
            case = Case(self.editions, edition, order, self.wishes.scene(edition, now), notes)
            answers.hear(case, message)
            note_state(self.editions, errand, notes)
        else:
            self._answered_beside(message, order, now, notes)

    def _answered_beside(
        self, message: Answer | Report, order: Order, now: Instant, notes: Notebook
    ) -> None:
        if self.tidy.hear(message, now, notes):
            return
        if isinstance(message, Probed):
            self.wishes.limits = message.limits
            self.trouble.clock_ahead = message.clock_ahead_seconds or 0.0
            self.ending.refused = unfit(self.policy, message.limits)
            self.editions.leftovers.store_can(message.limits, notes)
        elif (
            answers.hear_beside(self.editions, message, order, notes)
            or self.beside.hear(message, self.runs)
            or self.drain.sent(message.errand)
        ):
            return
        elif isinstance(message, RecordRead | RecordPut) and not message.errand.save_id:
            self.runs.hear(message, getattr(order, "data", b""), now, notes)

    def _failed(self, message: Failed, now: Instant, notes: Notebook) -> None:
        begin = self.outstanding.begin_of(message.errand)
        out = self.outstanding.ended(message)
        if out is None:
            if begin is not None and message.ambiguous:
                self.editions.leftovers.look_for_stray(begin.key, notes)
            self.runs.came_late(message.errand)
            return
        message, order = original(message), out.order
        errand = message.errand
        rest = self.outstanding.rest(message, out, now.boot, hasty=self.ending.is_hasty)
        if sent_bytes(order) >= LARGE_BYTES:
            self.rate.failed(out.since, rest.until)
        if message.kind not in ("changed", "local", "lost", "gone"):
            self.trouble.failed(message, now.wall, notes)
        edition = self.editions.open.get((errand.checkpoint, errand.save_id))
        if edition is not None and errand.purpose != "unpin":
            case = Case(self.editions, edition, order, self.wishes.scene(edition, now), notes)
            answers.failed(case, message, now.boot)
        elif isinstance(order, Begin):
            self.editions.leftovers.not_begun(order.key, notes, perhaps=message.ambiguous)
        elif errand.purpose == "abandon" and message.kind in ("gone", "missing", "never"):
            self.editions.leftovers.abandoned(errand, notes)
        elif errand.purpose == "companion" and message.kind in ("local", "changed", "never"):
            self.beside.give_up(errand)
        elif errand.purpose in ("take epoch", "move latest", "take start"):
            self.runs.failed(message)

    # What the eyes saw --------------------------------------------------------------------------

    def _see(self, now: Instant, notes: Notebook) -> None:
        self._take_sightings(now, notes)
        self._tell_eyes(now, notes)

    def _take_sightings(self, now: Instant, notes: Notebook) -> None:
        for sighting in self.eyes.sightings(now.boot):
            self.last_event_at = now.boot
            if isinstance(sighting, Settled):
                self._settled(sighting, now, notes)
            elif isinstance(sighting, PointerSeen):
                self.beside.pointer(sighting)
            elif isinstance(sighting, CompanionSeen):
                self.beside.companion(sighting)
            elif isinstance(sighting, Removed):
                self.editions.removed(sighting.checkpoint, notes)
                self.runs.forgot(sighting.checkpoint)

    def _settled(self, settled: Settled, now: Instant, notes: Notebook) -> None:
        begun_before = settled.listing.save_id() in self.recalled.editions
        if self.runs.fenced and not begun_before:
            # What settles after a newer daemon took over is the newer daemon's business.
            return
        self.runs.of(settled.series)
        self.editions.take(settled, now, notes)

    def _tell_eyes(self, now: Instant, notes: Notebook) -> None:
        editions = self.editions
        for checkpoint in editions.void:
            self.eyes.void(checkpoint, now.boot)
        for checkpoint, reason in editions.refused:
            self.eyes.refuse(checkpoint, reason, now.boot)
        for manifest, listing in editions.committed:
            self.eyes.committed(manifest.checkpoint, listing)
            self.runs.saw_commit(manifest, notes, now.boot)
            self.tidy.committed(now.boot)
        for reason in editions.overtaken:
            self.runs.fence(reason, notes)
        editions.void, editions.refused, editions.committed = [], [], []
        editions.overtaken = []
        if editions.catalog.is_known and self.eyes.scanned_once:
            self._forget_absent(notes)
        if editions.catalog.is_known and self.eyes.scanned_once and self.recalled.editions:
            awaited = {view.checkpoint for view in self.eyes.views()}
            editions.drop_recalled(awaited, notes)

    def _forget_absent(self, notes: Notebook) -> None:
        """Forget what is safe and not on this disk any more: nobody will ask for it here."""
        for checkpoint in [name for name in self.editions.safe if not self.eyes.knows(name)]:
            self.editions.removed(checkpoint, notes)
            self.runs.forgot(checkpoint)
            self.eyes.forget(checkpoint)
