"""A dead-man switch: an address is called again and again, while all that is whole is safe.

A tap. Who listens there raises the alarm when the calls stay away, whatever the reason: work that
is not safe, a store that fails, a daemon that hangs, a machine that is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ckptsyncd.core.facts import Instant
from ckptsyncd.core.moves import Move
from ckptsyncd.core.snapshot import Snapshot
from ckptsyncd.report.courier import Courier
from ckptsyncd.report.posting import Post
from ckptsyncd.report.status_json import ALL_SAFE, exit_code

#: In these states nobody may rely on the daemon, whatever the store holds.
_SILENT = ("starting", "stopped", "fenced")


class Heartbeat:
    """Calls the address at most every ``seconds`` while everything complete is safe.

    ``told`` is called from another thread after each call: with the reason where it failed, else
    with nothing; never with the address, which may hold a secret.
    """

    def __init__(self, url: str, seconds: float, told: Callable[[str], object]) -> None:
        """Remember the address; the thread starts with the first call."""
        self._post = Post(url)
        self._seconds = seconds
        self._told = told
        self._beat_at = float("-inf")
        self._courier: Courier[None] = Courier("heartbeat", self._carry, 1)
        self.close = self._courier.close

    def turn(self, moves: Sequence[Move], now: Instant, snapshot: Snapshot) -> None:
        """Have the address called where that is due and true."""
        del moves
        if now.boot - self._beat_at >= self._seconds and is_all_safe(snapshot):
            self._beat_at = now.boot
            self._courier.put(None)

    def _carry(self, _: None) -> None:
        self._told(self._post.ping())


def is_all_safe(snapshot: Snapshot) -> bool:
    """Return whether everything that is whole is known to be safe, and new work would be too."""
    return snapshot.state not in _SILENT and exit_code(snapshot) == ALL_SAFE
