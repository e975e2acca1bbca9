"""What the settings say about keeping checkpoints, as the rules that the mind knows."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ckptsyncd.core.rules.retention import Retention
from ckptsyncd.settings.amounts import Duration

#: How one stretch of ``keep_every`` is written: a number of steps, or a time.
EVERY = r"[1-9][0-9]{0,11}|[0-9]+(\.[0-9]+)?(s|m|min|h|d)"
_STEPS = re.compile(r"[0-9]+")
_TIME = Duration(1.0, 3660 * 86400.0)


def retention_of(
    keep_last: int | None,
    keep_every: Sequence[str],
    newer_than: float | None,
    pinned: tuple[str, ...],
    min_keep: int,
) -> Retention:
    """Return what is to be kept; ValueError where ``keep_every`` says one thing twice."""
    steps, seconds = stretches(keep_every)
    return Retention(
        keep_last=keep_last,
        every_steps=steps,
        every_seconds=seconds,
        newer_seconds=newer_than,
        pinned=pinned,
        min_keep=min_keep,
    )


def stretches(texts: Sequence[str]) -> tuple[int | None, float | None]:
    """Return the steps and the seconds of which one checkpoint each is kept; ValueError."""
    steps = [int(text) for text in texts if _STEPS.fullmatch(text)]
    times = [_TIME.parse(text) for text in texts if not _STEPS.fullmatch(text)]
    if len(steps) > 1 or len(times) > 1 or 0 in steps:
        msg = "it takes one number of steps and one time, both above 0"
        raise ValueError(msg)
    return (steps[0] if steps else None), (times[0] if times else None)
