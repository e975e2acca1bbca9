"""The eyes: what happens on disk becomes checkpoints that are whole, and what lies beside them.

Events are hints. Each marks paths and times; what is really there is found by listing (``Scan``)
and by looking at one checkpoint closely (``Look``), and ``settle`` judges what a look found. The
eyes never settle anything on an event alone, and never on a look that something was heard after.

``gaze`` is what they remember, ``hearing`` what events and listings do to it, ``looking`` what
looks do.
"""

from __future__ import annotations

from collections.abc import Iterator

from ckptsyncd.core.facts import Listing
from ckptsyncd.core.messages import (
    CommitRequested,
    Failed,
    Looked,
    Message,
    Overflowed,
    Polled,
    RootLost,
    Scanned,
    Touched,
)
from ckptsyncd.core.orders import Errand, Look, Scan
from ckptsyncd.core.rules.policy import Policy
from ckptsyncd.core.seeing import hearing, looking
from ckptsyncd.core.seeing.gaze import Gaze
from ckptsyncd.core.seeing.layouts import BUILT_IN, Layout
from ckptsyncd.core.seeing.shapes import kind_of
from ckptsyncd.core.seeing.units import Unit
from ckptsyncd.core.seeing.view import Patience
from ckptsyncd.core.sightings import Settled, Sighting, UnitView

_NEVER = float("inf")
#: Watches are in place sooner than this, but where there are many thousands (a thousand took half a
#: second): then what lies there is listed twice, and the first time serves no later than before.
WATCHES_SECONDS = 2.0


class Eyes:
    """Hears messages, wants orders carried out, and tells sightings.

    ``now`` is always boot seconds. Everything is a function of what was heard and when.
    """

    def __init__(
        self,
        policy: Policy,
        layouts: tuple[Layout, ...] = BUILT_IN,
        exclude: tuple[str, ...] = (),
    ) -> None:
        """Begin with an unknown disk; ``exclude`` are names that never count, as in a shell."""
        self._gaze = Gaze(policy, layouts, exclude)

    @property
    def scanned_once(self) -> bool:
        """Whether the first full listing of the root is in."""
        return self._gaze.scanned_once

    @property
    def overflows(self) -> int:
        """How often events were lost."""
        return self._gaze.overflows

    @property
    def rescans(self) -> int:
        """How many listings of the whole root came in."""
        return self._gaze.rescans

    def warnings(self) -> tuple[str, ...]:
        """Return what somebody should know who expects checkpoints to be seen."""
        missing = "the watch root does not exist: nothing can be uploaded until it does"
        return (missing,) if self._gaze.is_root_missing else ()

    def polled(self) -> tuple[str, ...]:
        """Return the subtrees that send no events."""
        return tuple(sorted(self._gaze.scans.polled))

    # What happened ------------------------------------------------------------------------------

    def hear(self, message: Message, now: float) -> None:
        """Take in a message; those that are not about the disk are ignored."""
        gaze = self._gaze
        self._advance(now)
        gaze.seq += 1
        if isinstance(message, Touched):
            hearing.touched(gaze, message, now)
        elif isinstance(message, Scanned):
            hearing.scanned(gaze, message, now)
        elif isinstance(message, Looked):
            self._looked(message, now)
        elif isinstance(message, Polled):
            gaze.scans.poll(message.path, now)
        elif isinstance(message, Overflowed):
            hearing.overflowed(gaze, now)
        elif isinstance(message, RootLost):
            self._root_lost(message, now)
        elif isinstance(message, CommitRequested):
            hearing.commit_requested(gaze, message.path, now)
        elif isinstance(message, Failed):
            self._failed(message, now)

    def void(self, checkpoint: str, now: float) -> None:
        """Note that a pinned edition of this name turned out changed while it was uploaded.

        It is looked at again. After ``max_wait_saves`` of these, or ``max_wait_seconds`` after
        the first, the next Settled asks for a copy.
        """
        unit = self._gaze.census.units.get(checkpoint)
        if unit is None:
            return
        unit.voids += 1
        unit.first_void_at = now if unit.first_void_at is None else unit.first_void_at
        self._unsettle(unit, "it changed while it was uploaded")
        self._gaze.look_soon(unit, now)

    def refuse(self, checkpoint: str, reason: str, now: float) -> None:
        """Note that pinning failed (vanished, changed, no room): look again, ever later."""
        unit = self._gaze.census.units.get(checkpoint)
        if unit is None:
            return
        policy = self._gaze.policy
        self._unsettle(unit, reason)
        pause = min(policy.probe_seconds * 2.0**unit.refusals, policy.parked_seconds)
        unit.refusals += 1
        if unit.asked is None:
            self._gaze.set_due(unit, now + pause, until=now + pause)

    def committed(self, checkpoint: str, listing: Listing) -> None:
        """Note that this content is safe: it is never settled again; its series looks like it."""
        self.remember(checkpoint, listing)
        unit = self._gaze.census.units.get(checkpoint)
        if unit is not None:
            unit.voids, unit.first_void_at, unit.refusals = 0, None, 0
        self._judge_again(like=kind_of(checkpoint))

    def renew(self, settled: Settled, now: float) -> None:
        """Note that what was safe is not in the store any more: the same content settles again."""
        self.forget(settled.checkpoint)
        self.trust(settled)
        unit = self._gaze.census.units.get(settled.checkpoint)
        if unit is not None:
            unit.handled = None
            self._unsettle(unit, "it is not in the store any more")
            self._gaze.look_soon(unit, now)

    def bytes_on_disk(self) -> int:
        """Return how many bytes all checkpoints hold, as far as they were seen."""
        return sum(unit.bytes for unit in self._gaze.census.units.values())

    def is_as_committed(self, checkpoint: str, listing: Listing) -> bool:
        """Return whether a checkpoint lies there unchanged, as far as was seen."""
        unit = self._gaze.census.units.get(checkpoint)
        is_whole = unit is not None and unit.state == "whole" and not unit.edition
        return unit is not None and is_whole and unit.listing() == listing

    def remember(self, checkpoint: str, listing: Listing) -> None:
        """Note that this content was handled in an earlier life: it is never settled again."""
        self._gaze.census.keep(checkpoint, listing)

    def trust(self, *known: Settled) -> None:
        """Note what had settled in an earlier life: the same content settles on that evidence.

        Our own hard links move ctimes, so the order that was seen then cannot be seen again.
        """
        for settled in known:
            if not settled.copy:
                self._gaze.trusted.setdefault(settled.checkpoint, []).append(settled)
                self._gaze.contents.keep(settled.checkpoint, settled.listing)

    def knows(self, checkpoint: str) -> bool:
        """Return whether anything of this name is on the disk, as far as was seen."""
        return checkpoint in self._gaze.census.units

    def forget(self, checkpoint: str) -> None:
        """Forget what was handled of a name that is not on the disk any more."""
        self._gaze.census.handled.pop(checkpoint, None)

    def await_watches(self, now: float) -> None:
        """List everything when the watches are in place, soon at the latest: once, not twice."""
        self._gaze.scans.wanted["", True] = now + WATCHES_SECONDS

    def hurry(self, on: bool) -> None:  # noqa: FBT001 - one switch, named at every call
        """Shorten quiet times (while draining), or give them back."""
        gaze = self._gaze
        if on == gaze.is_hasty:
            return
        gaze.is_hasty = on
        gaze.patience = Patience.under(gaze.policy, hasty=on)
        self._judge_again()

    def adopt(self, policy: Policy) -> None:
        """Judge by other rules from now on, also what waits already."""
        gaze = self._gaze
        gaze.policy = gaze.scans.policy = gaze.bystanders.policy = policy
        gaze.patience = Patience.under(policy, hasty=gaze.is_hasty)
        self._judge_again()

    # What is wanted -----------------------------------------------------------------------------

    def orders(self, now: float) -> Iterator[Scan | Look]:
        """Return what is due now and not under way, most urgent first."""
        self._advance(now)
        return self._orders(now)

    def _orders(self, now: float) -> Iterator[Scan | Look]:
        gaze = self._gaze
        listings = list(gaze.scans.due(now))
        whole = [order for order in listings if order.path == ""]
        yield from (order for order in listings if order.path)
        if not gaze.scanned_once:
            yield from whole
        for name in gaze.dues.line():
            unit = gaze.census.units[name]
            yield Look(Errand("look", checkpoint=name), unit.roots, unit.unseen())
        aside = gaze.bystanders.order()
        if aside is not None:
            yield aside
        if gaze.scanned_once:
            yield from whole

    def ordered(self, order: Scan | Look) -> None:
        """Note that an order was handed out; its answer (or Failed) frees it."""
        gaze = self._gaze
        if isinstance(order, Scan):
            gaze.scans.ordered(order, gaze.seq, gaze.now)
        elif order.errand.purpose == "look":
            unit = gaze.census.units.get(order.errand.checkpoint)
            gaze.dues.serve(order.errand.checkpoint)
            if unit is not None:
                unit.asked, unit.asked_at, unit.closely = gaze.seq, gaze.now, order.closely
        else:
            gaze.bystanders.ordered(order)

    def next_alarm(self) -> float | None:
        """Return when orders may change by the mere passing of time (boot seconds)."""
        gaze = self._gaze
        times = (
            gaze.dues.next_alarm(),
            gaze.bystanders.next_alarm(),
            gaze.scans.next_alarm(gaze.now),
        )
        return None if min(times) == _NEVER else min(times)

    # What is seen -------------------------------------------------------------------------------

    def sightings(self, now: float) -> list[Sighting]:
        """Return what was seen since the last call, in the order in which it was seen."""
        self._advance(now)
        news, self._gaze.news = self._gaze.news, []
        return news

    def views(self) -> tuple[UnitView, ...]:
        """Return the units that are being written or are parked.

        Known content that is just being deleted file by file is neither.
        """
        units = (self._gaze.census.units[name] for name in self._gaze.open)
        shown = (unit for unit in units if unit.members and not looking.is_going(unit))
        return tuple(looking.unit_view(unit) for unit in shown)

    def is_writing(self, since: float) -> bool:
        """Return whether somebody holds a file open for writing, or an event came since then.

        Where trainers say by a file that a checkpoint is whole, also whether one lacks it that was
        not there at the start. What a listing finds that is under way is not known yet.
        """
        gaze = self._gaze
        if gaze.policy.done_file:
            units = (gaze.census.units[name] for name in gaze.open)
            if any(unit.members and not unit.is_found for unit in units):
                return True
        return bool(gaze.held or gaze.scans.under_way) or gaze.heard_at >= since

    # How ----------------------------------------------------------------------------------------

    def _advance(self, now: float) -> None:
        gaze = self._gaze
        gaze.now = max(gaze.now, now)
        for name in list(gaze.dues.ripe(gaze.now)):
            looking.ripen(gaze, name)
        gaze.bystanders.advance(gaze.now)

    def _judge_again(self, like: str = "") -> None:
        """Judge anew what waits: patience changed, or there is a new sibling to compare with."""
        gaze = self._gaze
        names = [name for name in gaze.open if not like or kind_of(name) == like]
        for unit in sorted((gaze.census.units[name] for name in names), key=_changed_at):
            looking.judge_again(gaze, unit)

    def _looked(self, message: Looked, now: float) -> None:
        if message.errand.purpose == "look":
            looking.looked(self._gaze, message, now)
        elif message.errand == self._gaze.bystanders.under_way:
            hearing.looked_aside(self._gaze, message.facts)

    def _failed(self, message: Failed, now: float) -> None:
        gaze, errand = self._gaze, message.errand
        if gaze.scans.answered(errand, now, failed=True) is not None:
            return
        if errand == gaze.bystanders.under_way:
            gaze.bystanders.under_way = None
        unit = gaze.census.units.get(errand.checkpoint) if errand.purpose == "look" else None
        if unit is not None and unit.asked is not None:
            unit.asked = None
            unit.reason = f"cannot be looked at: {message.text}"
            gaze.set_due(unit, now + gaze.policy.poll_seconds, until=None)

    def _root_lost(self, message: RootLost, now: float) -> None:
        gaze = self._gaze
        gaze.is_root_missing = not message.present
        gaze.scans.want("", now)
        if message.present:
            return
        for unit in list(gaze.census.units.values()):
            gaze.drop(unit)

    def _unsettle(self, unit: Unit, reason: str) -> None:
        unit.settled = None
        unit.state, unit.reason = "writing", reason
        self._gaze.open[unit.name] = None


def _changed_at(unit: Unit) -> tuple[float, str]:
    return unit.changed_at, unit.name
