"""What the program does on signals."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable

from ckptsyncd.edge.trainer import Trainer

#: Signals that a trainer of ours gets as well; SIGINT of a terminal reaches it by itself.
FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


def obey_signals(
    stop: Callable[[], object],
    trainer: Trainer | None = None,
    reload: Callable[[], object] | None = None,
) -> None:
    """Let the first SIGTERM or SIGINT ask for a stop, and the second end the process at once.

    SIGHUP reads the settings again, in a thread of its own; a trainer of ours gets it instead.
    """
    asked: list[int] = []

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
