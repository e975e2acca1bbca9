"""The short way for bodies: requests like an SDK's, on connections of our own beside it.

What an SDK does around a body costs 1 to 2 ms of CPU time for each request, this 0.3 ms (measured).
It is taken only where it can be exactly what the SDK would send; each store says where that is,
and leaves everything else to its SDK.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from ckptsyncd.stores.lines import Answer, Line, Lines, Sent

#: Answers that an SDK understands better: it follows them, or shows who we are anew.
ELSEWHERE = frozenset({301, 302, 303, 307, 308})
#: These say that bodies are not wanted now; whatever else is wrong is wrong with one request.
UNWILLING = ELSEWHERE | {401, 403, 429}
#: After such an answer, or one that did not come, so many requests go the SDK's way: it may wait
#: for the server's go-ahead before it sends a large body (guessed).
REST_REQUESTS = 8


class ShortWay:
    """Sends bodies, and lets the SDK do it for a while where a server is unwilling."""

    def __init__(self, unwilling: frozenset[int] = UNWILLING) -> None:
        """Begin at once; ``unwilling`` are the statuses that say that bodies are not wanted."""
        self._unwilling = unwilling
        self._lock = threading.Lock()
        self._rest = 0

    @property
    def is_resting(self) -> bool:
        """Whether the next body goes the SDK's way."""
        return self._rest > 0

    def exchange(self, lines: Lines, head: Callable[[], bytes], sent: Sent) -> Answer | None:
        """Send a body behind its head and return the answer; ``None`` leaves it to the SDK.

        Raises OSError where the connection broke (the way rests then) or the body failed.
        """
        found = self._line(lines, head)
        if found is None:
            return None
        line, said = found
        try:
            answer = line.exchange(said, sent)
        except OSError:
            if sent.fault is None:
                self._trip()
            raise
        lines.give_back(line, answer)
        self._heed(answer)
        return answer

    def ask(self, lines: Lines, head: Callable[[], bytes]) -> tuple[Line | None, Answer] | None:
        """Send a request without a body; return the answer, and the line that its body comes on.

        There is none where all of the answer is here. ``None`` leaves the request to the SDK.
        Raises OSError where the connection broke; the way rests then.
        """
        found = self._line(lines, head)
        if found is None:
            return None
        line, said = found
        try:
            answer, is_open = line.ask(said)
        except OSError:
            self._trip()
            raise
        if is_open:
            return line, answer
        lines.give_back(line, answer)
        self._heed(answer)
        return None, answer

    def _line(self, lines: Lines, head: Callable[[], bytes]) -> tuple[Line, bytes] | None:
        """Return a line and the head to send on it, unless the way rests or leads nowhere."""
        with self._lock:
            if self._rest:
                self._rest -= 1
                return None
        said = head()
        line = lines.take()
        return None if line is None else (line, said)

    def _heed(self, answer: Answer) -> None:
        if answer.status in self._unwilling or answer.status >= 500:  # noqa: PLR2004
            self._trip()

    def _trip(self) -> None:
        with self._lock:
            self._rest = REST_REQUESTS
