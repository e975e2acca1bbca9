"""A drain from its notice to its end: the trainer's last word, acknowledgement, the report.

What is sent, and in which order, is the planner's business.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ckptsyncd.core.draining.drain_report import DrainReport, LeftBehind, Outcome
from ckptsyncd.core.draining.ending import DRILL, Circumstances, Ending
from ckptsyncd.core.draining.loads import Load
from ckptsyncd.core.draining.planner import Planner
from ckptsyncd.core.facts import Instant, Notice
from ckptsyncd.core.orders import (
    Acknowledge,
    Errand,
    KeepReport,
    Order,
    PutSmall,
    RecallTrainer,
    TellTrainer,
)
from ckptsyncd.core.records import names
from ckptsyncd.core.seeing.eyes import Eyes
from ckptsyncd.core.sending.edition import Edition
from ckptsyncd.core.sending.editions import Editions
from ckptsyncd.core.sending.rate import Rate
from ckptsyncd.core.sending.runs import Runs
from ckptsyncd.core.turn import Notebook

#: The report is sent so long before the stop, at the latest in the middle of the time (guessed:
#: some requests).
REPORT_SECONDS = 1.0


@dataclass(slots=True)
class Drain:
    """The drain that is under way, if any; ``last`` is the newest report of this or the last one.

    ``who`` is host and nonce of this process. ``unsent`` is the report that the store is to get.
    """

    who: tuple[str, str]
    eyes: Eyes
    ending: Ending
    editions: Editions
    runs: Runs
    rate: Rate
    planner: Planner
    began: Instant | None = None
    notice: Notice | None = None
    deadline: float | None = None
    sent_before: int = 0
    safe_before: dict[str, int] = field(default_factory=dict)
    told: Instant | None = None
    trainer: str = ""
    is_drained: bool = False
    late_for: float | None = None
    acknowledged: set[str] = field(default_factory=set)
    last: DrainReport | None = None
    unsent: tuple[PutSmall, ...] = ()
    reports: int = 0

    # What the state is made of ------------------------------------------------------------------

    def is_awaiting(self, now: float) -> bool:
        """Return whether the trainer's last checkpoint may still come in time to be saved."""
        return self.told is not None and not self._has_come() and now < self.wait_until(now)

    def wait_until(self, now: float) -> float:
        """Return until when (boot seconds) it is waited for: as long as the plan allows at most."""
        if self.told is None:
            return now
        policy = self.ending.policy
        patience = self.told.boot + policy.trainer_seconds
        if self.eyes.is_writing(now - policy.linger_seconds):
            patience = float("inf")
        speed = self.planner.speed(now)
        usual = Load(bytes=self._usual_bytes(), requests=1, steps=1).seconds(speed)
        return min(patience, self._last_moment() - usual)

    def _last_moment(self) -> float:
        deadline = float("inf") if self.deadline is None else self.deadline
        return deadline - self.ending.policy.stop_margin_seconds

    def _usual_bytes(self) -> int:
        """Return how large the next checkpoint probably is: as large as the newest one."""
        found = [(row.manifest.saved_at, row.manifest.bytes) for row in self.editions.safe.values()]
        found += [(e.saved_at, e.bytes) for e in self.editions.open.values()]
        return max(found, default=(0.0, 0))[1]

    def _has_come(self) -> bool:
        """Return whether a checkpoint settled that was saved after the trainer was told."""
        assert self.told is not None  # noqa: S101 - only asked then
        told = self.told.wall
        if any(edition.saved_at >= told for edition in self.editions.open.values()):
            return True
        return any(row.manifest.saved_at >= told for row in self.editions.safe.values())

    # The course of it ---------------------------------------------------------------------------

    def begin(self, now: Instant) -> list[Order]:
        """Take in that a drain begins, or goes on; return what the trainer is told.

        Before the drain may be called over: the trainer's last checkpoint belongs to it.
        """
        if not self._is_on:
            return []
        binding = self.ending.binding()
        self.notice = binding if binding is not None else self.notice
        self.deadline = self.ending.deadline()
        if self.began is None:
            self.began = now
            self.sent_before = self.rate.bytes_sent
            rows = self.editions.safe.items()
            self.safe_before = {name: row.manifest.edition for name, row in rows}
        return list(self._tell_trainer(now))

    @property
    def _is_on(self) -> bool:
        return self.ending.state in ("draining", "drained")

    def follow(self, now: Instant, seen: Circumstances, notes: Notebook) -> list[Order]:
        """Go with the daemon's state; return what is to be told to source and disk."""
        orders: list[Order] = []
        if self._is_on:
            orders += self._acknowledge()
            if seen.at_risk and (now.boot >= self._report_at() or self._is_better()):
                self.late_for = self.deadline
                orders.append(self._report("deadline", now, notes))
            if self.ending.state == "drained" and not self.is_drained:
                orders.append(self._report("drained", now, notes))
            self.is_drained = self.ending.state == "drained"
        elif self.began is not None:
            if not self.is_drained or seen.at_risk:
                orders.append(self._report(self._outcome(), now, notes))
            orders += self._end()
        return orders

    def stop(self, now: Instant, seen: Circumstances, notes: Notebook) -> list[Order]:
        """Return what is to be done when the program ends: the last report, if it says more."""
        if self.began is None or (self.is_drained and not seen.at_risk):
            return []
        return [self._report("stopped", now, notes)]

    def next_alarm(self, now: float) -> float:
        """Return when something is due by the mere passing of time (boot seconds)."""
        if self.began is None:
            return float("inf")
        times = [self.planner.next_alarm(), self._report_at()]
        if self.told is not None:
            times.append(self.wait_until(now))
        return min((time for time in times if time > now), default=float("inf"))

    def told_trainer(self, text: str, notes: Notebook) -> None:
        """Take in what became of telling the trainer."""
        self.trainer = text
        notes.said("trainer.told", ("text", text))

    def _end(self) -> Iterator[Order]:
        if self.told is not None:
            yield RecallTrainer()
        self.began = self.notice = self.told = self.late_for = self.deadline = None
        self.trainer, self.is_drained = "", False
        self.acknowledged.clear()

    def _tell_trainer(self, now: Instant) -> Iterator[Order]:
        real = self.ending.real()
        if self.told is None and real and self.ending.policy.tells_trainer:
            self.told = now
            left = None if self.deadline is None else max(self._last_moment() - now.boot, 0.0)
            yield TellTrainer(real[0].source, real[0].text, left, now.wall)
        elif self.told is not None and not real:
            self.told = None
            yield RecallTrainer()

    def _acknowledge(self) -> Iterator[Order]:
        for notice in self.ending.real() if self.ending.state == "drained" else ():
            if notice.notice_id not in self.acknowledged:
                self.acknowledged.add(notice.notice_id)
                yield Acknowledge(notice.source, notice.notice_id)

    # The report ---------------------------------------------------------------------------------

    def _report_at(self) -> float:
        """Return when what is lost is to be reported because time is up (boot seconds)."""
        if self.deadline is None or self.began is None or self.late_for == self.deadline:
            return float("inf")
        latest = (self.began.boot + self.deadline) / 2
        return max(self._last_moment() - REPORT_SECONDS, latest)

    def _is_better(self) -> bool:
        """Return whether less is lost than was reported when time was up."""
        if self.late_for is None or self.last is None:
            return False
        return len(self.last.left) > len(self._unsafe())

    def _outcome(self) -> Outcome:
        notice = self.notice
        if notice is not None and notice.source == DRILL:
            return "deadline"
        is_handled = notice is not None and notice.notice_id in self.ending.handled
        return "outlived" if is_handled else "withdrawn"

    def _report(self, outcome: Outcome, now: Instant, notes: Notebook) -> Order:
        assert self.began is not None  # noqa: S101 - the caller asked
        offset = now.wall - now.boot
        deadline, notice = self.deadline, self.notice
        is_known = deadline is not None and deadline != float("inf")
        report = DrainReport(
            source="stop" if notice is None else notice.source,
            notice_id="" if notice is None else notice.notice_id,
            text="asked to stop" if notice is None else notice.text,
            outcome=outcome,
            began_at=self.began.wall,
            ended_at=now.wall,
            deadline_at=deadline + offset if is_known and deadline is not None else None,
            points=tuple(self._points()),
            made_safe=tuple(self._made_safe()),
            left=tuple(_left(edition) for edition in self._unsafe()),
            writing=tuple(view.checkpoint for view in self.eyes.views()),
            bytes_sent=self.rate.bytes_sent - self.sent_before,
            bytes_per_second=self.planner.speed(now.boot).bytes_per_second,
            trainer=self.trainer,
            host=self.who[0],
        )
        self.last = report
        notes.said(
            "drain.reported",
            ("outcome", outcome),
            ("source", report.source),
            ("made_safe", ", ".join(report.made_safe)),
            ("lost", ", ".join(f"{left.checkpoint}@{left.edition}" for left in report.left)),
            ("bytes", report.bytes_left),
            ("seconds", round(report.ended_at - report.began_at, 1)),
        )
        if outcome in ("drained", "deadline") and (self.ending.real() or report.left):
            self._send(report)
        return KeepReport(report.encode())

    def _send(self, report: DrainReport) -> None:
        if report.source == DRILL or self.runs.fenced:
            return
        self.reports += 1
        key = names.report_key(*self.who, self.reports)
        errand = Errand("report", path=key)
        self.unsent = (PutSmall(errand, key, report.encode(), None),)

    def sent(self, errand: Errand) -> bool:
        """Take in that the store has a report; return whether it was one."""
        self.unsent = tuple(order for order in self.unsent if order.errand != errand)
        return errand.purpose == "report"

    def _points(self) -> Iterator[str]:
        for series in self.runs.known.values():
            best, latest = series.best, series.latest
            if best is not None and (latest is None or best.rank() >= latest.rank):
                yield f"{best.checkpoint}@{best.edition}"
            elif latest is not None:
                yield f"{latest.checkpoint}@{latest.edition}"

    def _made_safe(self) -> Iterator[str]:
        for name, row in self.editions.safe.items():
            if self.safe_before.get(name) != row.manifest.edition:
                yield f"{name}@{row.manifest.edition}"

    def _unsafe(self) -> list[Edition]:
        opened = [edition for edition in self.editions.open.values() if edition.is_open]
        return sorted(opened, key=self.runs.rank_of, reverse=True)


def _left(edition: Edition) -> LeftBehind:
    return LeftBehind(
        checkpoint=edition.checkpoint,
        series=edition.series,
        edition=edition.number or edition.expected,
        step=edition.settled.step,
        bytes=edition.bytes,
        bytes_stored=edition.bytes_stored,
        reason=edition.reason,
    )
