"""How long a machine has after a notice: the table, and what to make of times that cannot be.

Every rule here fails towards draining: a time that is missing, or further away than the provider
ever gives, is replaced by the provider's usual warning counted from first sight. Only a time that
two clocks call long past is dropped. The reasons and the provider's own words are in
``docs/notices.md``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

#: A time further in the past than this, on a machine that is alive, announces nothing any more
#: (EC2 leaves the item in place where it failed to act; the number was guessed).
STALE_SECONDS = 600.0

#: Clocks that differ by no more than this agree: a Date header has whole seconds, and travels.
AGREEMENT_SECONDS = 2.0

#: ``notice``: the time is the notice's own. ``default``: it had none. ``clamped``: it had one that
#: cannot be, and the default was taken.
Basis = Literal["notice", "default", "clamped"]


@dataclass(frozen=True, slots=True)
class Allowance:
    """The warning counted from first sight where a notice has no usable time, and the longest."""

    default_seconds: float
    most_seconds: float = math.inf


AWS_SPOT = Allowance(120.0, 180.0)
#: The freeze may begin together with the notice.
AWS_HIBERNATE = Allowance(0.0, 120.0)
#: Scheduled events are dated days ahead; one whose date cannot be read is taken for a spot notice.
AWS_MAINTENANCE = Allowance(120.0)
#: EC2's cap on a lifecycle hook.
AWS_HOOK_MOST_SECONDS = 48 * 3600.0
#: 30 s between soft-off and power-off, less a margin for seeing it late.
GCP_PREEMPTED = Allowance(25.0, 150.0)
#: With ``--preemption-notice-duration=120s``.
GCP_PREEMPTED_EARLY = Allowance(120.0, 150.0)
#: GPU machines are told about an hour ahead; the default trusts only the documented minute.
GCP_TERMINATE_MOST_SECONDS = 4000.0
GCP_TERMINATE = Allowance(60.0, GCP_TERMINATE_MOST_SECONDS)
GCP_UPCOMING = Allowance(60.0)
GCP_STOPPING = Allowance(25.0)
AZURE_PREEMPT = Allowance(30.0, 300.0)
#: Dated minutes to days ahead. Real notices were shorter than the documented minimum, so one
#: without a date gets what the shortest kind gets.
AZURE_SCHEDULED = Allowance(30.0)
#: It has begun.
AZURE_STARTED = Allowance(0.0)
ALIBABA_SPOT = Allowance(300.0, 360.0)
TENCENT_SPOT = Allowance(120.0, 180.0)

#: How long a notice of each cloud usually comes before the end, where nobody said it.
NOTICE_SECONDS = {
    "aws": AWS_SPOT.default_seconds,
    "gcp": GCP_PREEMPTED.default_seconds,
    "azure": AZURE_PREEMPT.default_seconds,
    "alibaba": ALIBABA_SPOT.default_seconds,
    "tencent": TENCENT_SPOT.default_seconds,
}
#: The same elsewhere (guessed: the shortest that a large cloud gives).
NOTICE_SECONDS_ELSEWHERE = 30.0

#: Between a polite stop and SIGKILL, where nobody configured it: the default grace period of a
#: pod, Slurm's KillWait, what RunPod gave, ``docker stop``.
STOP_SECONDS = {"kubernetes": 30.0, "slurm": 30.0, "runpod": 5.0}
STOP_SECONDS_ELSEWHERE = 10.0


@dataclass(frozen=True, slots=True)
class Remaining:
    """The seconds that are left, never negative, and where they come from."""

    seconds: float
    basis: Basis


def remaining(
    at_wall: float | None, allowance: Allowance, here_wall: float, there_wall: float | None = None
) -> Remaining | None:
    """Return how long it is until ``at_wall``, or ``None`` if that is long past.

    ``here_wall`` is this machine's clock. ``there_wall`` is the clock of whoever wrote
    ``at_wall`` (its Date header), which is believed first where the two disagree; without it a
    time that looks long past may be our own clock's fault, and the default is taken.
    """
    if at_wall is None:
        return Remaining(allowance.default_seconds, "default")
    clocks = _clocks(here_wall, there_wall)
    for clock in clocks:
        if -STALE_SECONDS <= at_wall - clock <= allowance.most_seconds:
            return Remaining(max(at_wall - clock, 0.0), "notice")
    if there_wall is not None and all(at_wall - clock < -STALE_SECONDS for clock in clocks):
        return None
    return Remaining(allowance.default_seconds, "clamped")


def _clocks(here_wall: float, there_wall: float | None) -> tuple[float, ...]:
    """Return the clocks to measure with, the one to believe first in front."""
    if there_wall is None or abs(there_wall - here_wall) <= AGREEMENT_SECONDS:
        return (here_wall,)
    return (there_wall, here_wall)


def notice_seconds(
    provider: str, layers: Iterable[str], configured_seconds: float | None = None
) -> float:
    """Return how long before the end a notice usually comes on this cloud, or what runs on it.

    Where the cloud is not known it is the time from a polite stop to the kill; a configured time
    wins over all of them.
    """
    if configured_seconds is not None:
        return configured_seconds
    if provider in NOTICE_SECONDS:
        return NOTICE_SECONDS[provider]
    known = [STOP_SECONDS[layer] for layer in layers if layer in STOP_SECONDS]
    return min(known, default=NOTICE_SECONDS_ELSEWHERE)


def stop_seconds(layers: Iterable[str], configured_seconds: float | None = None) -> float:
    """Return how long after a polite stop signal the kill comes, by what runs this process.

    ``layers`` as ``sources.detect`` names them; the shortest wins, and a configured time wins over
    all of them.
    """
    if configured_seconds is not None:
        return configured_seconds
    known = [STOP_SECONDS[layer] for layer in layers if layer in STOP_SECONDS]
    return min(known, default=STOP_SECONDS_ELSEWHERE)
