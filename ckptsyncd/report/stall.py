"""Whether uploads stand still: something finished is not safe, and for too long nothing moved."""

from __future__ import annotations

from typing import Literal

from ckptsyncd.core.facts import Instant
from ckptsyncd.core.snapshot import Snapshot

Turned = Literal["", "stall", "stall_ended"]


class Stall:
    """Tells each stall once, and its end once. ``look`` belongs to the thread that turns."""

    def __init__(self, seconds: float) -> None:
        """Call it a stall after so many seconds without a piece or a commit."""
        self._seconds = seconds
        self._stood: object = None
        self._since = float("inf")
        self._told = False

    def look(self, now: Instant, snapshot: Snapshot) -> Turned:
        """Return what began or ended with this snapshot, mostly nothing."""
        waits = any(view.at_risk for view in snapshot.checkpoints)
        moved = (snapshot.bytes_sent, snapshot.pieces_stored, snapshot.recovery_points)
        if not waits or moved != self._stood or self._since == float("inf"):
            self._stood, self._since = moved, now.boot if waits else float("inf")
            told, self._told = self._told, False
            return "stall_ended" if told else ""
        if self._told or now.boot - self._since < self._seconds:
            return ""
        self._told = True
        return "stall"
