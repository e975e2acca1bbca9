"""How long to wait before an order is tried again; the random number is an argument."""

from __future__ import annotations

from dataclasses import dataclass

from ckptsyncd.core.rules.policy import Policy


@dataclass(frozen=True, slots=True)
class Wait:
    """An order that failed: how often, until when (boot seconds) it rests, and why."""

    attempts: int
    until: float
    text: str


def wait_seconds(
    attempts: int, policy: Policy, random: float, *, asked: float | None, draining: bool
) -> float:
    """Return the pause after the ``attempts``-th failure in a row (1 is the first).

    Exponential with full jitter, ``random`` being uniform in [0, 1): failures of many clients
    spread instead of meeting again. What the store asked for is honoured up to the cap.
    """
    cap = policy.retry_drain_seconds if draining else policy.retry_last_seconds
    if asked is not None:
        return min(max(asked, 0.0), cap)
    widest = min(cap, policy.retry_first_seconds * 2.0 ** min(attempts - 1, 30))
    return widest * random


def after_failure(before: Wait | None, now: float, pause: float, text: str) -> Wait:
    """Return the rest that follows one more failure."""
    attempts = 1 if before is None else before.attempts + 1
    return Wait(attempts, now + pause, text)
