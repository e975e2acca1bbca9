"""The daemon's own state: notices, drains, and when the program may end.

A notice is drained once per id; the shortest binding deadline wins. After a drain the daemon stays
and uploads on until it is killed; 60 s past the deadline and still alive it goes back to running.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ckptsyncd.core.facts import Notice
from ckptsyncd.core.lifecycle import DaemonState, checked_daemon_move
from ckptsyncd.core.moves import DaemonMoved
from ckptsyncd.core.orders import LedgerOrder
from ckptsyncd.core.records import memory
from ckptsyncd.core.rules.policy import Policy
from ckptsyncd.core.turn import Notebook
from ckptsyncd.errors import CkptsyncdError

#: So long after its deadline a notice is over although the machine still runs (guessed: no cloud
#: documents more than 30 s between the announced time and the power-off).
OUTLIVED_SECONDS = 60.0

#: The source of a pretended notice: it is drained for, ends by itself, and ends nothing.
DRILL = "drill"


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What the end depends on: anything finished but unsafe, anything still being written.

    ``awaiting``: the trainer was told of the notice, and its last checkpoint may still come.
    """

    ready: bool
    at_risk: bool
    in_progress: bool
    writing: bool
    will_settle: bool
    fenced: str
    last_event_at: float
    hopeless: bool = False
    awaiting: bool = False


@dataclass(slots=True)
class Ending:
    """Notices and stop requests, and the state that follows from them.

    ``handled`` maps the ids of notices that were outlived since this machine was booted to their
    sources; ``boot_id`` names that boot. ``rows`` are to be written to the ledger.
    """

    policy: Policy
    handled: dict[str, str]
    boot_id: str = ""
    state: DaemonState = "starting"
    reason: str = ""
    notices: dict[str, Notice] = field(default_factory=dict)
    blind: dict[str, str] = field(default_factory=dict)
    stop_at: float | None = None
    one_pass: bool = False
    exit_when_drained: bool = False
    confirmed: set[str] = field(default_factory=set)
    heard_well: set[str] = field(default_factory=set)
    rows: list[LedgerOrder] = field(default_factory=list)
    #: Why the program must not go on with these settings and this store.
    refused: CkptsyncdError | None = None

    def notice(self, notice: Notice) -> None:
        """Take in a notice, new or known.

        A binding deadline of one id only shrinks; a scheduled one moves, and becomes binding.
        """
        if notice.notice_id in self.handled:
            self.confirmed.add(notice.notice_id)
            return
        known = self.notices.get(notice.notice_id)
        if (
            known is None
            or known.severity != "binding"
            or _earlier(notice.deadline_boot, known.deadline_boot)
        ):
            self.notices[notice.notice_id] = notice

    def withdraw(self, notice_id: str) -> None:
        """Take in that a source no longer sees a notice; seen again, it is a new one."""
        self.notices.pop(notice_id, None)
        self._forget(notice_id)

    def heard(self, source: str, blind: str) -> None:
        """Take in that a source answered (``blind`` empty) or did not.

        Its first answer in this life tells which notices of an earlier life are over: those that it
        did not repeat. Some sources have one name for all their notices.
        """
        self.blind[source] = blind
        if blind or source in self.heard_well:
            return
        self.heard_well.add(source)
        for notice_id in [name for name, owner in self.handled.items() if owner == source]:
            if notice_id not in self.confirmed:
                self._forget(notice_id)

    def _forget(self, notice_id: str) -> None:
        if self.handled.pop(notice_id, None) is not None:
            self.rows.append(memory.forget_handled(notice_id))

    def stop(self, deadline: float) -> None:
        """Take in a request to stop by a deadline (boot seconds)."""
        self.stop_at = deadline if self.stop_at is None else min(self.stop_at, deadline)

    def binding(self) -> Notice | None:
        """Return the binding notice with the shortest deadline."""
        found = [notice for notice in self.notices.values() if notice.severity == "binding"]
        if not found:
            return None
        return min(
            found, key=lambda n: float("inf") if n.deadline_boot is None else n.deadline_boot
        )

    def real(self) -> list[Notice]:
        """Return the binding notices that are no drill."""
        found = [notice for notice in self.notices.values() if notice.severity == "binding"]
        return [notice for notice in found if notice.source != DRILL]

    def deadline(self) -> float | None:
        """Return when this machine (or this process) is lost, if that is known (boot seconds)."""
        notice = self.binding()
        times = [self.stop_at, None if notice is None else notice.deadline_boot]
        return min((time for time in times if time is not None), default=None)

    def deadline_ahead(self, now: float) -> float:
        """Return the deadline, infinite where none is known or it has passed and we live."""
        deadline = self.deadline()
        return float("inf") if deadline is None or deadline <= now else deadline

    @property
    def is_hasty(self) -> bool:
        """Whether waiting costs more than it saves: draining, drained, or asked to stop."""
        return self.state in ("draining", "drained") or (
            self.stop_at is not None and not self.one_pass
        )

    def settle(self, now: float, seen: Circumstances, notes: Notebook) -> None:
        """Move to the state that fits; a second call in a turn sees an easy drain through."""
        self._outlive(now, notes)
        notes.ledger += self.rows
        self.rows = []
        state, reason = self._fitting(seen)
        if state != self.state or reason != self.reason:
            checked_daemon_move(self.state, state)
            if state != self.state:
                notes.moves.append(DaemonMoved(self.state, state, reason))
            self.state, self.reason = state, reason

    def _fitting(self, seen: Circumstances) -> tuple[DaemonState, str]:
        if seen.fenced:
            return "fenced", seen.fenced
        notice = self.binding()
        if notice is None and (self.stop_at is None or self.one_pass):
            return ("running", "") if seen.ready else ("starting", "")
        reason = notice.text or notice.source if notice is not None else "asked to stop"
        is_over = seen.ready and not seen.at_risk
        if self.state == "draining":
            # Nobody was told yet that the drain is over: what comes in a moment still counts.
            is_over = is_over and not (seen.will_settle or seen.awaiting)
        elif self.state != "drained":
            is_over = False
        return ("drained" if is_over else "draining"), reason

    def _outlive(self, now: float, notes: Notebook) -> None:
        for notice_id, notice in list(self.notices.items()):
            end = self._end_of(notice)
            if end is None or now < end:
                continue
            del self.notices[notice_id]
            if notice.source != DRILL:
                self.handled[notice_id] = notice.source
                self.rows.append(memory.handled_row(notice_id, notice.source, self.boot_id))
                notes.said("notice.outlived", ("source", notice.source), ("id", notice_id))

    def end_drill(self) -> bool:
        """End a drill that has nothing more to show; return whether there was one."""
        drills = [name for name, notice in self.notices.items() if notice.source == DRILL]
        if self.state != "drained" or not drills:
            return False
        for name in drills:
            del self.notices[name]
        return True

    def _end_of(self, notice: Notice) -> float | None:
        """Return when a notice is over although nobody withdrew it (boot seconds)."""
        if notice.severity != "binding" or notice.deadline_boot is None:
            return None
        if notice.source == DRILL:
            return notice.deadline_boot - self.policy.stop_margin_seconds
        return notice.deadline_boot + OUTLIVED_SECONDS

    def exit_code(self, now: float, seen: Circumstances) -> int | None:
        """Return the exit code if the program is to end now."""
        left = 7 if seen.fenced else 6 if seen.at_risk else 0
        if self.exit_when_drained and self._is_over(now):
            return left
        if self.stop_at is None:
            return None
        if now >= self.stop_at - self.policy.stop_margin_seconds:
            return left
        if self.one_pass:
            return self._one_pass_code(seen, left)
        if seen.at_risk or not seen.ready:
            return None
        quiet = now >= seen.last_event_at + self.policy.linger_seconds
        return left if quiet and not seen.writing and not seen.will_settle else None

    def _is_over(self, now: float) -> bool:
        """Return whether nothing more is to be done about a notice, for who leaves then."""
        if not self.real():
            return False
        deadline = self.deadline()
        late = deadline is not None and now >= deadline - self.policy.stop_margin_seconds
        return self.state == "drained" or (self.state == "draining" and late)

    def _one_pass_code(self, seen: Circumstances, left: int) -> int | None:
        if seen.hopeless:
            return 5
        busy = not seen.ready or seen.in_progress or seen.will_settle
        return None if busy else left

    def next_alarm(self, seen_event_at: float, now: float) -> float:
        """Return when the state may change next by the mere passing of time (boot seconds).

        What has passed was considered: it must not stand before what is still to come.
        """
        ends = (self._end_of(notice) for notice in self.notices.values())
        times = [end for end in ends if end is not None]
        deadline = self.deadline()
        if self.exit_when_drained and deadline is not None:
            times.append(deadline - self.policy.stop_margin_seconds)
        if self.stop_at is not None:
            times += [
                self.stop_at - self.policy.stop_margin_seconds,
                seen_event_at + self.policy.linger_seconds,
            ]
        return min((time for time in times if time > now), default=float("inf"))


def _earlier(one: float | None, other: float | None) -> bool:
    return one is not None and (other is None or one < other)
