"""The wiring of what a notice sets in motion: sources, the trainer, the report of the drain."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from ckptsyncd.core.draining.deadlines import notice_seconds
from ckptsyncd.core.draining.notices import Source
from ckptsyncd.core.messages import Message
from ckptsyncd.core.orders import Acknowledge, KeepReport, RecallTrainer, TellTrainer
from ckptsyncd.core.rules.policy import Policy
from ckptsyncd.edge import report_file
from ckptsyncd.edge.aside import Aside
from ckptsyncd.edge.attendance import Attendance
from ckptsyncd.edge.clock import Clock
from ckptsyncd.edge.notices import Notices
from ckptsyncd.edge.telling import Teller, Ways
from ckptsyncd.edge.trainer import Trainer
from ckptsyncd.report.logs import Logs
from ckptsyncd.settings import Settings
from ckptsyncd.sources.detect import Surroundings, detected, small_file
from ckptsyncd.sources.open import Wanted, opened

#: So long is waited for the disk that keeps the report of a drain (guessed: a slow disk's flush).
REPORT_SECONDS = 1.0


def wanted_of(settings: Settings) -> Wanted:
    """Return what the settings say about notices."""
    return Wanted(
        providers=settings.sources,
        metadata_url=settings.metadata_url,
        without=frozenset(settings.without_sources),
        notice_file=settings.notice_file,
        command=settings.notice_command,
        command_interval_seconds=settings.notice_command_interval,
        command_most_seconds=settings.notice_command_timeout,
        default_seconds=settings.notice_default_seconds,
        hard_stop_wall=settings.hard_stop_at,
        lead_seconds=settings.notice_lead_seconds,
        aws_v1_fallback=settings.aws_v1_fallback,
        aws_legacy=settings.aws_legacy,
        aws_hook_seconds=settings.aws_hook_seconds,
        gcp_preemption_seconds=settings.gcp_preemption_seconds,
        gcp_terminate_seconds=settings.gcp_terminate_seconds,
        azure_acknowledges=settings.azure_acknowledges,
    )


def sources_of(settings: Settings, environment: Mapping[str, str]) -> tuple[Source, ...]:
    """Return the notice sources of this machine; UsageError where the settings are wrong."""
    return opened(wanted_of(settings), surroundings(environment), environment)


def surroundings(environment: Mapping[str, str]) -> Surroundings:
    """Return where this process runs, by what lies on this machine."""
    return detected(environment, small_file)


def ways_of(settings: Settings) -> Ways:
    """Return how the trainer is told of a notice."""
    return Ways(
        signal=settings.tell_signal,
        pid=settings.tell_pid,
        pid_file=settings.tell_pid_file,
        process=settings.tell_process,
        command=settings.tell_command,
        file=settings.tell_file,
    )


def policy_of(settings: Settings, environment: Mapping[str, str], *, has_child: bool) -> Policy:
    """Return the mind's rules: the settings', and what follows from where this process runs."""
    here = surroundings(environment)
    configured = settings.notice_seconds
    if configured is None and here.provider == "gcp":
        configured = settings.gcp_preemption_seconds or None
    return replace(
        settings.policy(),
        notice_seconds=notice_seconds(here.provider, here.layers, configured),
        tells_trainer=ways_of(settings).tell_anybody(has_child=has_child),
    )


@dataclass(slots=True)
class Notified:
    """What a notice sets in motion in one program. ``trainer`` is our own child, once it runs."""

    settings: Settings
    environment: Mapping[str, str]
    post: Callable[[Message], None]
    clock: Clock
    logs: Logs
    trainer: Trainer | None = None
    notices: Notices | None = None
    teller: Teller = field(init=False)
    attendance: Attendance | None = None
    #: Writes the report: the end must not wait for a disk that hangs.
    aside: Aside = field(default_factory=lambda: Aside("report"))

    def __post_init__(self) -> None:
        """Prepare everything; nobody is listened to yet."""
        ways = ways_of(self.settings)
        self.teller = Teller(ways, self.post, self.environment, self._tell_child)

    def doers(self) -> Mapping[type, Callable[[Any], object]]:
        """Return who carries out the mind's orders about a drain."""
        return {
            TellTrainer: self.teller.tell,
            RecallTrainer: self.teller.recall,
            Acknowledge: self._acknowledge,
            KeepReport: self._keep,
        }

    def listen(self) -> None:
        """Begin to poll the notice sources of this machine; UsageError where one cannot be."""
        sources = sources_of(self.settings, self.environment)
        self.notices = Notices(sources, self.post, self.clock, random.SystemRandom().random)
        self.notices.start()
        ways = ways_of(self.settings)
        if ways.names_somebody:
            self.attendance = Attendance(ways, self.post)
            self.attendance.start()

    def wake(self) -> None:
        """Poll every source now: time has passed without us."""
        if self.notices is not None:
            self.notices.wake()

    def close(self) -> None:
        """Listen no more."""
        if self.notices is not None:
            self.notices.stop()
        if self.attendance is not None:
            self.attendance.stop()

    def _tell_child(self, number: int) -> bool:
        return self.trainer is not None and self.trainer.tell(number)

    def _acknowledge(self, order: Acknowledge) -> None:
        if self.notices is not None:
            self.notices.drained(order.source, order.notice_id)

    def _keep(self, order: KeepReport) -> None:
        keep = partial(report_file.keep, Path(self.settings.state_dir), order.data)
        try:
            self.aside.begin(keep)
            self.aside.wait(REPORT_SECONDS)
        except OSError as error:
            text = f"the report of the drain cannot be kept: {error}"
            self.logs.say("warning", "drain.unkept", self.clock.now(), text=text)
