"""How fast bytes reach the store, measured for a few seconds, and how many fit a notice."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from secrets import token_bytes, token_hex

from ckptsyncd.check.finding import Finding, failed, ok, warn
from ckptsyncd.check.store import PROBE
from ckptsyncd.core.ports import Body, Store
from ckptsyncd.core.words import duration_words, size_words
from ckptsyncd.errors import StoreError

#: Of one object: large enough that a request is mostly bytes (guessed), small enough to be whole.
OBJECT_BYTES = 8 * 1024 * 1024
#: No more is sent, however fast the link is (guessed: what a preflight may cost).
MOST_BYTES = 2 * 1024**3


@dataclass(slots=True)
class _Sum:
    """What several threads have sent so far; ``error`` ends all of them, and so does ``stop``."""

    bytes: int = 0
    error: StoreError | None = None
    stop: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, count: int) -> None:
        with self.lock:
            self.bytes += count

    def is_enough(self) -> bool:
        return self.stop or self.error is not None or self.bytes >= MOST_BYTES


@dataclass(frozen=True, slots=True)
class Measured:
    """So many bytes were stored in so many seconds; ``error`` is what ended it early."""

    bytes: int
    seconds: float
    error: StoreError | None = None

    @property
    def bytes_per_second(self) -> float:
        """The rate."""
        return self.bytes / self.seconds if self.seconds > 0 else 0.0


def measure(
    opened: Store,
    hands: int,
    seconds: float,
    clock: Callable[[], float],
    body_of: Callable[[bytes], Body],
) -> Measured:
    """Store random bytes with so many threads for so long, remove them, and return what went.

    Every thread writes over one object of its own, so little room is needed. The objects are
    removed also where somebody interrupts.
    """
    total, began = _Sum(), clock()
    data = token_bytes(OBJECT_BYTES)
    keys = [f"{PROBE}rate-{token_hex(8)}" for _ in range(hands)]

    def labour(key: str) -> None:
        while clock() - began < seconds and not total.is_enough():
            try:
                opened.put_whole(key, body_of(data), token_hex(8), create_only=False)
            except StoreError as error:
                total.error = error
                return
            total.add(len(data))

    threads = [threading.Thread(target=labour, args=(key,), daemon=True) for key in keys]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
        return Measured(total.bytes, clock() - began, total.error)
    finally:
        total.stop = True
        for thread in threads:
            thread.join()
        for key in keys:
            with suppress(StoreError):  # the trial of 'delete' tells whether that is allowed
                opened.delete(key)


def rate(
    measured: Measured, notice_seconds: float, notice: str, largest_bytes: int
) -> list[Finding]:
    """Judge what a notice leaves time for; ``notice`` says which one it is."""
    if measured.error is not None:
        return [failed("upload rate", measured.error)]
    speed = measured.bytes_per_second
    text = f"{size_words(speed)}/s over {duration_words(measured.seconds)}"
    return [ok("upload rate", text), fits(speed, notice_seconds, notice, largest_bytes)]


def fits(speed: float, notice_seconds: float, notice: str, largest_bytes: int) -> Finding:
    """Judge whether the largest checkpoint can be uploaded within a notice."""
    room = speed * notice_seconds
    text = f"{size_words(room)} within {notice} ({duration_words(notice_seconds)})"
    if not largest_bytes:
        return ok("fits the notice", f"{text}; there is no checkpoint yet to compare with")
    need = f"the largest checkpoint has {size_words(largest_bytes)}"
    if largest_bytes > room:
        hint = "save more often, so that only the last save is at risk, or raise hands"
        return warn("fits the notice", f"{text}; {need}", hint)
    return ok("fits the notice", f"{text}; {need}")
