"""The wiring of what is told by itself: webhook, heartbeat, trackers, and a loop that stands."""

from __future__ import annotations

import hashlib
import importlib.util
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from ckptsyncd.edge.clock import Clock
from ckptsyncd.edge.loop import Tap
from ckptsyncd.errors import UsageError
from ckptsyncd.report.grumble import Grumble
from ckptsyncd.report.heartbeat import Heartbeat
from ckptsyncd.report.latency import CommitLatency
from ckptsyncd.report.logs import Level, Logs
from ckptsyncd.report.readings import Reading, Readings
from ckptsyncd.report.standing import Standing
from ckptsyncd.report.status_json import DaemonView
from ckptsyncd.report.tensorboard import TensorBoard
from ckptsyncd.report.tracking import Tracked
from ckptsyncd.report.wandb_pipe import WandbPipe
from ckptsyncd.report.webhook import Webhook
from ckptsyncd.settings import Settings


@dataclass(slots=True)
class Outward:
    """Everybody outside who is told as the settings say; nobody, where they say nothing.

    ``taps`` are for the loop. Raises UsageError where a tracker's library is missing.
    """

    settings: Settings
    clock: Clock
    logs: Logs
    daemon: DaemonView
    latency: CommitLatency
    taps: tuple[Tap, ...] = ()
    closes: list[Callable[[float], bool]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Prepare whoever is to be told; nothing is sent yet."""
        settings = self.settings
        standing = Standing(self.clock.now, self._write)
        taps: list[Tap] = [standing.turn]
        self.closes.append(standing.close)
        if settings.webhook:
            webhook = Webhook(
                settings.webhook, self.daemon, self._undelivered, settings.stall_seconds
            )
            taps.append(webhook.turn)
            self.closes.append(webhook.close)
        if settings.heartbeat_url:
            told = Grumble("heartbeat", self._write).heard
            heartbeat = Heartbeat(settings.heartbeat_url, settings.heartbeat_seconds, told)
            taps.append(heartbeat.turn)
            self.closes.append(heartbeat.close)
        if trackers := self._trackers():
            taps.append(_readings(trackers, settings.tracker_seconds, self.latency))
            self.closes += [tracker.close for tracker in trackers]
        self.taps = tuple(taps)

    def close(self, seconds: float) -> None:
        """Give what is under way so long to leave."""
        end = self.clock.now().boot + seconds
        for close in self.closes:
            close(max(end - self.clock.now().boot, 0.0))

    def _trackers(self) -> list[Tracked]:
        settings, found = self.settings, []
        if settings.tensorboard_dir:
            board = TensorBoard(Path(settings.tensorboard_dir))
            found.append(Tracked("tensorboard", board, Grumble("tensorboard", self._write)))
        if settings.wandb_project:
            if importlib.util.find_spec("wandb") is None:
                msg = "wandb_project is set, but the package 'wandb' is not installed"
                raise UsageError(msg, hint="pip install 'ckptsyncd[wandb]'")
            directory = Path(settings.state_dir) / "wandb"
            run = run_id(self.daemon)
            pipe = WandbPipe(settings.wandb_project, run, directory, os.environ)
            found.append(Tracked("wandb", pipe, Grumble("wandb", self._write)))
        return found

    def _write(self, level: Level, event: str, fields: dict[str, str | int]) -> None:
        self.logs.say(level, event, self.clock.now(), **fields)

    def _undelivered(self, text: str) -> None:
        self._write("warning", "webhook.failed", {"text": text})


def run_id(daemon: DaemonView) -> str:
    """Return the name of the run at W&B: the same for a daemon that goes on elsewhere."""
    what = f"{daemon.store} {daemon.node}"
    return f"ckptsyncd-{hashlib.sha256(what.encode('utf-8', 'surrogateescape')).hexdigest()[:12]}"


def _readings(trackers: list[Tracked], seconds: float, latency: CommitLatency) -> Tap:
    def write(reading: Reading) -> None:
        for tracker in trackers:
            tracker.put(reading)

    return Readings(write, seconds, latency.seconds_of).turn
