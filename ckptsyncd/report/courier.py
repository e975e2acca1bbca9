"""One thread that carries things out of the program, so that nobody waits for whoever takes them.

What is to be carried waits in a short queue; where that is full the oldest is dropped.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Courier(Generic[T]):
    """Calls ``carry`` with each thing in turn, in a thread that starts with the first one.

    ``put`` returns at once. ``carry`` raises nothing; how long it takes is its own affair.
    """

    def __init__(self, name: str, carry: Callable[[T], object], most: int) -> None:
        """Let at most so many things wait."""
        self._name = name
        self._carry = carry
        self._waiting: deque[T] = deque(maxlen=most)
        self._changed = threading.Condition()
        self._busy = False
        self._thread: threading.Thread | None = None

    def put(self, thing: T) -> None:
        """Have it carried."""
        with self._changed:
            self._waiting.append(thing)
            self._changed.notify_all()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()

    def close(self, seconds: float) -> bool:
        """Wait so long for what is under way; return whether all of it was carried."""
        with self._changed:
            return self._changed.wait_for(lambda: not (self._waiting or self._busy), seconds)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting)
                thing = self._waiting.popleft()
                self._busy = True
            try:
                self._carry(thing)
            finally:
                with self._changed:
                    self._busy = False
                    self._changed.notify_all()
