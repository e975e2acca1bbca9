"""Trying again: which failures are worth it, how often, and a wait that can be interrupted."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from random import random
from time import monotonic
from typing import TypeVar

from ckptsyncd.core.rules.policy import Policy
from ckptsyncd.core.sending.retry import wait_seconds
from ckptsyncd.errors import Again

Answer = TypeVar("Answer")

#: Failures in a row without one byte of progress before a command gives up (guessed: with the
#: pauses of ``Policy`` about a minute and a half on average, and the store's own time-outs).
MOST_ATTEMPTS = 8


@dataclass(frozen=True, slots=True)
class Pace:
    """The clock (monotonic seconds), the dice, and the event that ends every wait."""

    stop: threading.Event = field(default_factory=threading.Event)
    clock: Callable[[], float] = monotonic
    draw: Callable[[], float] = random

    def pause(self, seconds: float) -> None:
        """Wait, at most until ``stop`` is set."""
        if seconds > 0:
            self.stop.wait(seconds)


def pause_after(error: Again, attempts: int, draw: float) -> float | None:
    """Return how long to rest after so many failures in a row, ``None`` where it is enough."""
    if attempts >= MOST_ATTEMPTS:
        return None
    return wait_seconds(attempts, Policy(), draw, asked=error.wait_seconds, draining=False)


def patiently(ask: Callable[[], Answer], pace: Pace) -> Answer:
    """Return the store's answer, asking again while it says *again*; raises its last error."""
    attempts = 0
    while True:
        try:
            return ask()
        except Again as error:
            attempts += 1
            pause = pause_after(error, attempts, pace.draw())
            if pause is None or pace.stop.is_set():
                raise
        pace.pause(pause)
