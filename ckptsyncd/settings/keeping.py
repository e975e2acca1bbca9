"""What the settings say about keeping checkpoints, as the rules that the mind knows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ckptsyncd.core.rules.retention import Retention
from ckptsyncd.settings.amounts import Duration

if TYPE_CHECKING:
    from ckptsyncd.settings.table import Settings

#: How one stretch of ``keep_every`` is written: a number of steps, or a time.
EVERY = r"[1-9][0-9]{0,11}|[0-9]+(\.[0-9]+)?(s|m|min|h|d)"
_STEPS = re.compile(r"[0-9]+")
_TIME = Duration(1.0, 3660 * 86400.0)


def retention_of(settings: Settings) -> Retention:
    """Return what is to be kept; ValueError where ``keep_every`` says one thing twice."""
    steps, seconds = stretches(settings.keep_every)
    return Retention(
        keep_last=settings.keep_last,
        every_steps=steps,
        every_seconds=seconds,
        newer_seconds=settings.newer_than,
        pinned=settings.pinned,
        min_keep=settings.min_keep,
    )


def stretches(texts: Sequence[str]) -> tuple[int | None, float | None]:
    """Return the steps and the seconds of which one checkpoint each is kept; ValueError."""
    steps = [int(text) for text in texts if _STEPS.fullmatch(text)]
    times = [_TIME.parse(text) for text in texts if not _STEPS.fullmatch(text)]
    if len(steps) > 1 or len(times) > 1 or 0 in steps:
        msg = "it takes one number of steps and one time, both above 0"
        raise ValueError(msg)
    return (steps[0] if steps else None), (times[0] if times else None)
