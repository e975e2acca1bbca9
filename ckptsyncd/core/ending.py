"""The daemon's own state: notices, drains, and when the program may end.

A notice is drained once per id; the shortest binding deadline wins. After a drain the daemon stays
and uploads on until it is killed; 60 s past the deadline and still alive it goes back to running.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ckptsyncd.core.facts import Notice
from ckptsyncd.core.lifecycle import DaemonState, checked_daemon_move
from ckptsyncd.core.moves import DaemonMoved
from ckptsyncd.core.policy import Policy
from ckptsyncd.core.turn import Notebook

#: So long after its deadline a notice is over although the machine still runs (guessed: no cloud
#: documents more than 30 s between the announced time and the power-off).
OUTLIVED_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What the end depends on: anything finished but unsafe, anything still being written."""

    ready: bool
    at_risk: bool
    in_progress: bool
    writing: bool
    will_settle: bool
    fenced: str
    last_event_at: float
    hopeless: bool = False


@dataclass(slots=True)
class Ending:
    """Notices and stop requests, and the state that follows from them."""

    policy: Policy
    handled: set[str]
    state: DaemonState = "starting"
    reason: str = ""
    notices: dict[str, Notice] = field(default_factory=dict)
    blind: dict[str, str] = field(default_factory=dict)
    stop_at: float | None = None
    one_pass: bool = False
    exit_when_drained: bool = False

    def notice(self, notice: Notice) -> None:
        """Take in a notice, new or known.

        A binding deadline of one id only shrinks; a scheduled one moves, and becomes binding.
        """
        if notice.notice_id in self.handled:
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
        self.handled.discard(notice_id)

    def heard(self, source: str, blind: str) -> None:
        """Take in that a source answered (``blind`` empty) or did not."""
        self.blind[source] = blind

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

    def deadline(self) -> float | None:
        """Return when this machine (or this process) is lost, if that is known (boot seconds)."""
        notice = self.binding()
        times = [self.stop_at, None if notice is None else notice.deadline_boot]
        return min((time for time in times if time is not None), default=None)

    @property
    def is_hasty(self) -> bool:
        """Whether waiting costs more than it saves: draining, drained, or asked to stop."""
        return self.state in ("draining", "drained") or (
            self.stop_at is not None and not self.one_pass
        )

    def settle(self, now: float, seen: Circumstances, notes: Notebook) -> None:
        """Move to the state that fits; a second call in a turn sees an easy drain through."""
        self._outlive(now, notes)
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
            # Nobody was told yet that the drain is over: what settles in a moment still counts.
            is_over = is_over and not seen.will_settle
        elif self.state != "drained":
            is_over = False
        return ("drained" if is_over else "draining"), reason

    def _outlive(self, now: float, notes: Notebook) -> None:
        for notice_id, notice in list(self.notices.items()):
            end = notice.deadline_boot
            if notice.severity == "binding" and end is not None and now > end + OUTLIVED_SECONDS:
                del self.notices[notice_id]
                self.handled.add(notice_id)
                notes.said("notice.outlived", ("source", notice.source), ("id", notice_id))

    def exit_code(self, now: float, seen: Circumstances) -> int | None:
        """Return the exit code if the program is to end now."""
        left = 7 if seen.fenced else 6 if seen.at_risk else 0
        if self.exit_when_drained and self.state == "drained":
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

    def _one_pass_code(self, seen: Circumstances, left: int) -> int | None:
        if seen.hopeless:
            return 5
        busy = not seen.ready or seen.in_progress or seen.will_settle
        return None if busy else left

    def next_alarm(self, seen_event_at: float) -> float:
        """Return when the state may change by the mere passing of time (boot seconds)."""
        times = [
            notice.deadline_boot + OUTLIVED_SECONDS
            for notice in self.notices.values()
            if notice.deadline_boot is not None and notice.severity == "binding"
        ]
        if self.stop_at is not None:
            times += [
                self.stop_at - self.policy.stop_margin_seconds,
                seen_event_at + self.policy.linger_seconds,
            ]
        return min(times, default=float("inf"))


def _earlier(one: float | None, other: float | None) -> bool:
    return one is not None and (other is None or one < other)
