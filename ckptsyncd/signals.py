"""What the program does on signals."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable

from ckptsyncd.edge.trainer import Trainer

#: Signals that a trainer of ours gets as well; SIGINT of a terminal reaches it by itself.
FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
_STOPS = (signal.SIGTERM, signal.SIGINT)


class Held:
    """A signal handler that only remembers which signal came; a second one ends the process."""

    def __init__(self) -> None:
        """Remember nothing yet."""
        self.numbers: list[int] = []

    def __call__(self, number: int, _: object) -> None:
        """Take a signal."""
        if self.numbers:
            os._exit(128 + number)
        self.numbers.append(number)


def hold_stops() -> None:
    """Let a SIGTERM or SIGINT wait until ``obey_signals``: the program is not put together yet.

    Until then it would end the process as if it had been killed, and as PID 1 be ignored.
    """
    held = Held()
    for number in _STOPS:
        signal.signal(number, held)


def held_stops() -> list[int]:
    """Return the signals that wait, if any do."""
    held = signal.getsignal(signal.SIGTERM)
    return held.numbers if isinstance(held, Held) else []


def obey_signals(
    stop: Callable[[], object],
    trainer: Trainer | None = None,
    reload: Callable[[], object] | None = None,
) -> None:
    """Let the first SIGTERM or SIGINT ask for a stop, and the second end the process at once.

    SIGHUP reads the settings again, in a thread of its own; a trainer of ours gets it instead.
    What ``hold_stops`` made wait counts as if it came now.
    """
    asked: list[int] = []
    waiting = held_stops()

    def ask(number: int, _: object) -> None:
        if asked:
            os._exit(128 + number)
        asked.append(number)
        stop()

    def forward(number: int, frame: object) -> None:
        if trainer is not None:
            trainer.tell(number)
        if number == signal.SIGTERM:
            ask(number, frame)

    def read_again(_: int, __: object) -> None:
        threading.Thread(target=reload, daemon=True).start()

    signal.signal(signal.SIGINT, ask)
    if reload is not None:
        signal.signal(signal.SIGHUP, read_again)
    signal.signal(signal.SIGTERM, forward)
    if trainer is not None:
        for number in FORWARDED:
            signal.signal(number, forward)
    _raise_again(waiting)


def _raise_again(numbers: list[int]) -> None:
    for number in numbers:
        signal.raise_signal(number)
