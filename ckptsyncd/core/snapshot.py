"""The only thing that outsiders may read: one frozen value that says how everything stands.

``status``, metrics, the socket and the systemd line are all functions of it.
"""

from __future__ import annotations

from dataclasses import dataclass

from ckptsyncd.core.draining.drain_report import DrainReport
from ckptsyncd.core.draining.drain_view import DrainPlanView, WouldFit
from ckptsyncd.core.facts import Notice
from ckptsyncd.core.lifecycle import DaemonState, State
from ckptsyncd.core.sending.together.joint import INCOMPLETE


@dataclass(frozen=True, slots=True)
class CheckpointView:
    """One edition as a user sees it. ``retry_at`` is wall time, ``None`` where nothing is due.

    ``saved_at`` is the newest mtime of its listing (wall time), ``None`` where that is not known:
    who waits for a rewritten name compares it with what lies on the disk. ``is_ahead``: it is
    finished, not safe, and newer than the recovery point of its series.
    """

    checkpoint: str
    series: str
    edition: int
    state: State
    reason: str
    step: int | None
    layout: str
    evidence: str
    bytes: int
    bytes_stored: int
    files: int
    retry_at: float | None
    at_risk: bool
    saved_at: float | None = None
    is_ahead: bool = False


def is_incomplete(view: CheckpointView) -> bool:
    """Return whether other machines' parts of it were waited for longer than is usual."""
    return view.reason.startswith(INCOMPLETE)


@dataclass(frozen=True, slots=True)
class RecoveryPoint:
    """The newest safe checkpoint of a series; ``committed_at`` is wall time."""

    series: str
    checkpoint: str
    edition: int
    step: int | None
    committed_at: float
    bytes: int


@dataclass(frozen=True, slots=True)
class SourceView:
    """A notice source and, if it is blind, why."""

    source: str
    blind: str


@dataclass(frozen=True, slots=True)
class TidyView:
    """What was removed since the start, and the last verification; times are wall time.

    ``verified_at`` is ``None`` where none is known. ``prune_failing`` says why nothing goes.
    ``also_behind``: what the second destination lacks, ``None`` where nobody knows.
    """

    pruned: int = 0
    objects_removed: int = 0
    pruned_at: float | None = None
    prune_failing: str = ""
    local_bytes_removed: int = 0
    also_copied: int = 0
    also_behind: int | None = None
    also_failing: str = ""
    verified_at: float | None = None
    verified_level: str = ""
    verified_whole: int = 0
    verified_broken: int = 0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """How everything stands at one moment (``taken_at``, wall time).

    ``failing_since`` and ``failing_kind`` (``refused``: credentials or policy, ``silent``: no
    answer) belong to ``store_failing``. ``disk_failing``: the watch root's disk does not answer, so
    that nobody knows what was saved. ``slowed_to``: so many hands work while the store asks for
    fewer requests, as it did in ``throttled`` answers. ``stands``: the loop has not turned for too
    long; the mind cannot know that, who answers for it does.
    """

    taken_at: float
    state: DaemonState
    reason: str
    recovery_points: tuple[RecoveryPoint, ...]
    checkpoints: tuple[CheckpointView, ...]
    unsynced_bytes: int
    unsynced_since: float | None
    rate_bytes_per_second: float
    notice: Notice | None
    notice_deadline_at: float | None
    warnings: tuple[str, ...]
    last_error: str
    last_error_count: int
    sources: tuple[SourceView, ...]
    polled: tuple[str, ...]
    overflows: int
    rescans: int
    pins: int
    pieces_stored: int
    retries: int
    bytes_sent: int
    store_failing: str
    failing_since: float | None = None
    failing_kind: str = ""
    disk_failing: str = ""
    stands: str = ""
    throttled: int = 0
    slowed_to: int | None = None
    orphans: int = 0
    drain_plan: DrainPlanView | None = None
    would_fit_notice: WouldFit | None = None
    last_drain: DrainReport | None = None
    tidying: TidyView = TidyView()


@dataclass(frozen=True, slots=True)
class StoreCalls:
    """How often a store was called by one verb with one outcome since the program started.

    ``outcome`` is ``done`` or the kind of the StoreError. ``bytes`` are those of calls that were
    done, ``seconds`` those of all of them.
    """

    verb: str
    outcome: str
    count: int
    bytes: int
    seconds: float
