"""What waits for the loop, in its order; hints that say the same are heard once.

A program that renames without rest, or another user who wants to do harm, makes more events than
the mind can hear one by one, and what the scanner and the hands report waits behind them.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue

from ckptsyncd.core.messages import Message, Overflowed, Touched

#: With more hints than these waiting, one listing is cheaper than to hear them all. The kernel's
#: own queue has the same length (fs.inotify.max_queued_events).
MOST_HINTS = 16_384
#: So many messages are taken at once at most, so that a flood cannot keep the loop from turning.
MOST_AT_ONCE = 4 * MOST_HINTS


@dataclass(slots=True)
class Backlog:
    """The loop's end of the inbox. Only for the thread that turns; anybody may fill the inbox.

    A hint that is heard again with nothing but hints in between counts where it was heard last:
    what came last tells whether a marker is the newest. Reports are never overtaken.
    """

    inbox: SimpleQueue[Message]
    _waiting: deque[list[Message]] = field(default_factory=deque)
    _hints: dict[Touched, list[Message]] = field(default_factory=dict)
    _count: int = 0

    def next(self, wait_seconds: float) -> Message:
        """Return the next message; raises queue.Empty where none comes in time."""
        self._take_waiting()
        while True:
            while self._waiting:
                if entry := self._waiting.popleft():
                    return self._out(entry)
            self._add(self.inbox.get(timeout=wait_seconds))

    def _take_waiting(self) -> None:
        with suppress(Empty):
            for _ in range(MOST_AT_ONCE):
                self._add(self.inbox.get_nowait())

    def _out(self, entry: list[Message]) -> Message:
        message = entry[0]
        if isinstance(message, Touched):
            self._count -= 1
            if self._hints.get(message) is entry:
                del self._hints[message]
        return message

    def _add(self, message: Message) -> None:
        entry = [message]
        if isinstance(message, Touched):
            if before := self._hints.get(message):
                before.clear()
                self._count -= 1
            self._hints[message] = entry
            self._count += 1
        else:
            self._hints.clear()
        self._waiting.append(entry)
        if self._count > MOST_HINTS:
            self._forget_hints()

    def _forget_hints(self) -> None:
        """Let one listing stand for all hints, where the last of them stood."""
        kept = (entry for entry in self._waiting if entry and not isinstance(entry[0], Touched))
        self._waiting = deque([*kept, [Overflowed()]])
        self._hints.clear()
        self._count = 0
