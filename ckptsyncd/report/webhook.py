"""A small JSON document to an address of the user's: a notice, the report of a drain, a stall.

A tap. What is to be sent waits in a short queue for one thread, so that an address that does not
answer costs nothing but its own message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ckptsyncd.core.facts import Instant
from ckptsyncd.core.moves import DaemonMoved, Move, Said
from ckptsyncd.core.snapshot import Snapshot
from ckptsyncd.report.courier import Courier
from ckptsyncd.report.posting import Post
from ckptsyncd.report.stall import Stall
from ckptsyncd.report.status_json import DaemonView, to_json

#: So many documents wait at most, the newest (a drain has a handful).
MOST_WAITING = 16
_WORTH = (
    "notice",
    "drain_plan",
    "would_fit_notice",
    "last_drain",
    "recovery_points",
    "unsynced_bytes",
    "unsynced_age_seconds",
    "store_failing",
    "last_error",
    "daemon",
)

Json = dict[str, Any]


class Webhook:
    """Sends documents to one address from ``turn`` on; ``close`` gives the last one a moment.

    ``failed`` is called from another thread with the reason where one could not be delivered;
    never with the address, which may hold a secret.
    """

    def __init__(
        self, url: str, daemon: DaemonView, failed: Callable[[str], object], stall_seconds: float
    ) -> None:
        """Remember the address; the thread starts with the first document."""
        self._post = Post(url)
        self._daemon = daemon
        self._failed = failed
        self._stall = Stall(stall_seconds)
        self._courier: Courier[Json] = Courier("webhook", self._carry, MOST_WAITING)
        self.close = self._courier.close

    def turn(self, moves: Sequence[Move], now: Instant, snapshot: Snapshot) -> None:
        """Have sent what this turn is worth."""
        for event in self._events(moves, now, snapshot):
            self._courier.put(_document(event, snapshot, self._daemon, now.wall))

    def _events(self, moves: Sequence[Move], now: Instant, snapshot: Snapshot) -> Iterator[str]:
        for move in moves:
            event = _event(move)
            if event and (event != "notice" or snapshot.notice is not None):
                yield event
        if stalled := self._stall.look(now, snapshot):
            yield stalled

    def _carry(self, document: Json) -> None:
        if reason := self._post.document(document):
            self._failed(f"the {document['event']} was not delivered: {reason}")


def _event(move: Move) -> str:
    if isinstance(move, DaemonMoved):
        begins = move.new == "draining" and move.old not in ("draining", "drained")
        return "notice" if begins else ""
    return "drain" if isinstance(move, Said) and move.event == "drain.reported" else ""


def _document(event: str, snapshot: Snapshot, daemon: DaemonView, now: float) -> Json:
    told = to_json(snapshot, daemon, now)
    return {"version": told["version"], "event": event, **{key: told[key] for key in _WORTH}}
