"""Trying again: which failures are worth it, how often, and a wait that can be interrupted."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import random
from time import monotonic
from typing import TypeVar

from ckptsyncd.core.rules.policy import Policy
from ckptsyncd.core.sending.retry import wait_seconds
from ckptsyncd.core.words import duration_words
from ckptsyncd.errors import Again

Answer = TypeVar("Answer")

#: Failures in a row without one byte of progress before a command gives up (guessed: with the
#: pauses of ``Policy`` about a minute and a half on average, and the store's own time-outs).
MOST_ATTEMPTS = 8


#: A person is told of failures at most this often: many threads may have them (guessed).
_TELL_SECONDS = 5.0


class Grumble:
    """Tells a person now and then that the store fails and is asked again; for any thread."""

    def __init__(self, say: Callable[[str], object], clock: Callable[[], float]) -> None:
        """Tell by ``say``."""
        self._say = say
        self._clock = clock
        self._lock = threading.Lock()
        self._next = float("-inf")

    def __call__(self, seconds: float, why: str) -> None:
        """Hear of a rest, and why."""
        now = self._clock()
        with self._lock:
            if now < self._next:
                return
            self._next = now + _TELL_SECONDS
        why = why or "the store does not give what it was asked for"
        self._say(f"{why}; it is asked again in {duration_words(seconds)}")


def _silently(_seconds: float, _why: str) -> None:
    """Tell nobody."""


@dataclass(frozen=True, slots=True)
class Pace:
    """The clock (monotonic seconds), the dice, and the event that ends every wait.

    ``told`` hears of every rest after a failure.
    """

    stop: threading.Event = field(default_factory=threading.Event)
    clock: Callable[[], float] = monotonic
    draw: Callable[[], float] = random
    told: Callable[[float, str], None] = _silently

    def pause(self, seconds: float, why: str = "") -> None:
        """Rest after a failure, at most until ``stop`` is set."""
        if seconds > 0:
            self.told(seconds, why)
        self.wait(seconds)

    def wait(self, seconds: float) -> None:
        """Wait, at most until ``stop`` is set."""
        if seconds > 0:
            self.stop.wait(seconds)

    def telling(self, say: Callable[[str], object]) -> Pace:
        """Return the same pace that tells a person of failures."""
        return replace(self, told=Grumble(say, self.clock))


def pause_after(error: Again, attempts: int, draw: float) -> float | None:
    """Return how long to rest after so many failures in a row, ``None`` where it is enough."""
    if attempts >= MOST_ATTEMPTS:
        return None
    return wait_seconds(attempts, Policy(), draw, asked=error.wait_seconds, draining=False)


def not_given(error: Again) -> str:
    """Say what is wrong with bytes that a store never gives although it answers otherwise."""
    return f"the store answers, and does not give all of it: {error}"


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
            why = str(error)
        pace.pause(pause, why)
