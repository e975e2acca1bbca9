"""The newest snapshot, kept in the ledger: what ``status`` tells when the daemon is dead."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace

from ckptsyncd.core.facts import Instant
from ckptsyncd.core.moves import DaemonMoved, Move, Moved
from ckptsyncd.core.orders import LedgerOrder, Remember
from ckptsyncd.core.snapshot import Snapshot
from ckptsyncd.report.status_json import DaemonView, to_json

#: Where the row lies. Only ``status`` reads it; the mind has tables of its own.
TABLE = "status"
KEY = "snapshot"
#: Without a move it is written at most this often (guessed: an SSD does not notice).
_SECONDS = 5.0
#: With moves too it is not written more often than this (guessed).
_SHORTEST_SECONDS = 0.5
#: Where it says what the last one says, only its time is older (guessed: writing one of a hundred
#: checkpoints takes 4 ms, which was more than half of what a daemon at rest costs).
_SAME_SECONDS = 60.0


class LastSnapshot:
    """A tap that keeps the newest snapshot by ``apply``, as the ledger's method of that name.

    A ledger that cannot be written is complained about by the loop; here it only means that the
    last row stands.
    """

    def __init__(self, apply: Callable[[Sequence[LedgerOrder]], None], daemon: DaemonView) -> None:
        """Write rows by ``apply``, from the thread that takes the turns."""
        self._apply = apply
        self._daemon = daemon
        self._kept: Snapshot | None = None
        self._kept_at = float("-inf")
        self._moved = False

    def turn(self, moves: Sequence[Move], now: Instant, snapshot: Snapshot) -> None:
        """Write the row if something moved, or if the last one is old and different."""
        self._moved = self._moved or any(isinstance(move, Moved | DaemonMoved) for move in moves)
        due = self._kept_at + (_SHORTEST_SECONDS if self._moved else _SECONDS)
        if now.boot < due or snapshot is self._kept:
            return
        if now.boot >= self._kept_at + _SAME_SECONDS or not _says_the_same(self._kept, snapshot):
            self.keep(now, snapshot)

    def keep(self, now: Instant, snapshot: Snapshot) -> None:
        """Write the row now (the last thing that a daemon does)."""
        text = json.dumps(to_json(snapshot, self._daemon, now.wall), separators=(",", ":"))
        self._kept, self._kept_at, self._moved = snapshot, now.boot, False
        try:
            self._apply([Remember(TABLE, KEY, text)])
        except OSError:
            self._kept = None


def _says_the_same(before: Snapshot | None, now: Snapshot) -> bool:
    """Return whether only time has passed, and sweeps that found nothing."""
    if before is None:
        return False
    return replace(before, taken_at=now.taken_at, rescans=now.rescans) == now
