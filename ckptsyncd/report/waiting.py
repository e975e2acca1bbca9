"""What a ``wait`` waits for, and whether a snapshot shows it. Pure but for one look at the disk."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ckptsyncd.core.snapshot import CheckpointView, Snapshot
from ckptsyncd.core.words import count_words
from ckptsyncd.errors import Unsynced

#: So long the daemon may take to notice a change in a directory (guessed: a poll and a second).
NOTICING_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a wait ended: a word, an exit code, and the reason for people."""

    outcome: str
    exit_code: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ForStep:
    """Until a checkpoint of this step or a later one is safe."""

    step: int

    def seen(self, snapshot: Snapshot, waited_seconds: float) -> Outcome | None:
        """Return how it ended, ``None`` where it has not."""
        del waited_seconds
        for point in snapshot.recovery_points:
            if point.step is not None and point.step >= self.step:
                return Outcome("safe", 0, f"{point.checkpoint} (step {point.step}) is safe")
        return None

    def reason(self, snapshot: Snapshot) -> str:
        """Say why it has not ended."""
        views = [view for view in snapshot.checkpoints if view.step == self.step]
        return _state_words(views[0]) if views else f"no checkpoint of step {self.step} was seen"


@dataclass(frozen=True, slots=True)
class ForCheckpoint:
    """Until what lay at this path when the wait began is safe, or never will be.

    ``saved_at`` is the newest mtime that was found there: an older content that is safe does not
    count. A directory may hold newer files that belong to no checkpoint; so for a directory it
    counts again when the daemon had time to notice.
    """

    checkpoint: str
    saved_at: float | None = None
    is_directory: bool = False

    def seen(self, snapshot: Snapshot, waited_seconds: float) -> Outcome | None:
        """Return how it ended, ``None`` where it has not."""
        view = self._newest(snapshot)
        if view is None or view.state not in ("safe", "superseded", "vanished"):
            return None
        if view.state != "safe":
            return Outcome(view.state, 6, _state_words(view))
        if self._is_older(view) and not (self.is_directory and waited_seconds >= NOTICING_SECONDS):
            return None
        return Outcome("safe", 0, f"{view.checkpoint} (edition {view.edition}) is safe")

    def reason(self, snapshot: Snapshot) -> str:
        """Say why it has not ended."""
        view = self._newest(snapshot)
        return f"{self.checkpoint} was not seen" if view is None else _state_words(view)

    def _is_older(self, view: CheckpointView) -> bool:
        if self.saved_at is None or view.saved_at is None:
            return False
        return view.saved_at < self.saved_at

    def _newest(self, snapshot: Snapshot) -> CheckpointView | None:
        views = [view for view in snapshot.checkpoints if view.checkpoint == self.checkpoint]
        return max(views, key=lambda view: view.edition, default=None)


@dataclass(frozen=True, slots=True)
class ForDrain:
    """Until the drain of this notice is over."""

    notice_id: str
    deadline_boot: float

    def seen(self, snapshot: Snapshot, waited_seconds: float) -> Outcome | None:
        """Return how it ended, ``None`` where it has not."""
        del waited_seconds
        if snapshot.state == "fenced":
            return Outcome("fenced", 7, snapshot.reason)
        notice = snapshot.notice
        if notice is None:
            return None
        sooner = notice.deadline_boot is not None and notice.deadline_boot <= self.deadline_boot
        if snapshot.state == "drained" and (notice.notice_id == self.notice_id or sooner):
            return Outcome("drained", 0, "everything that was finished is safe")
        return None

    def reason(self, snapshot: Snapshot) -> str:
        """Say why it has not ended."""
        return left_words(snapshot)


@dataclass(frozen=True, slots=True)
class ForDrill:
    """Until a drill is over, and its report is there."""

    notice_id: str

    def seen(self, snapshot: Snapshot, waited_seconds: float) -> Outcome | None:
        """Return how it ended, ``None`` where it has not."""
        del waited_seconds
        if snapshot.state == "fenced":
            return Outcome("fenced", 7, snapshot.reason)
        report, notice = snapshot.last_drain, snapshot.notice
        goes_on = notice is not None and notice.notice_id == self.notice_id
        if report is None or report.notice_id != self.notice_id or goes_on:
            return None
        if not report.left:
            return Outcome("drained", 0, "nothing would have been lost")
        return Outcome("deadline", 6, f"{report.bytes_left} bytes would have been lost")

    def reason(self, snapshot: Snapshot) -> str:
        """Say why it has not ended."""
        return left_words(snapshot)


Wanted = ForStep | ForCheckpoint | ForDrain | ForDrill


def looked_at(root: Path, checkpoint: str) -> ForCheckpoint:
    """Return the wait for what lies at a path now: with its newest mtime, as listings have it."""
    path = root / checkpoint
    times = list(_mtimes(path))
    saved_at = max(times) / 1e9 if times else None
    return ForCheckpoint(checkpoint, saved_at, path.is_dir() and not path.is_symlink())


def _mtimes(path: Path) -> Iterator[int]:
    """Yield the mtimes of a file, or of everything in a directory that is none itself."""
    try:
        fact = path.lstat()
        if not stat.S_ISDIR(fact.st_mode):
            yield fact.st_mtime_ns
            return
        with os.scandir(path) as entries:
            names = [entry.name for entry in entries]
    except OSError:
        return  # it vanishes while we look: the daemon will say so
    for name in names:
        yield from _mtimes(path / name)


def left_words(snapshot: Snapshot) -> str:
    """Say what of finished checkpoints is not safe; nothing where all is."""
    if snapshot.unsynced_bytes:
        return f"{snapshot.unsynced_bytes} bytes of finished checkpoints are not in the store"
    risky = sum(view.at_risk for view in snapshot.checkpoints)
    if risky:
        return f"{count_words(risky, 'finished checkpoint')} in the store, but not committed yet"
    return ""


def ended_words(snapshot: Snapshot, exit_code: int) -> str:
    """Say what is left when the program ends with an exit code."""
    safe = "everything that was whole is safe"
    if exit_code == Unsynced.exit_code:
        safe += ", but nothing points to the newest yet"
    return left_words(snapshot) or snapshot.disk_failing or safe


def _state_words(view: CheckpointView) -> str:
    return f"{view.checkpoint} is {view.state}" + (f": {view.reason}" if view.reason else "")
