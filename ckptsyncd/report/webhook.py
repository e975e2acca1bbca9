"""A small JSON document to an address of the user's, on a notice and on the report of a drain.

A tap. What is to be sent waits in a short queue for one thread, so that an address that does not
answer costs nothing but its own message.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import urllib3
from urllib3.exceptions import HTTPError

from ckptsyncd.core.facts import Instant
from ckptsyncd.core.moves import DaemonMoved, Move, Said
from ckptsyncd.core.snapshot import Snapshot
from ckptsyncd.report.status_json import DaemonView, to_json

#: So many documents wait at most, the newest (a drain has a handful).
MOST_WAITING = 16
CONNECT_SECONDS = 2.0
READ_SECONDS = 5.0
_WORTH = ("notice", "drain_plan", "would_fit_notice", "last_drain", "recovery_points", "daemon")
_OK_BELOW = 300

Json = dict[str, Any]


class Webhook:
    """Sends documents to one address from ``turn`` on; ``close`` gives the last one a moment.

    ``failed`` is called from another thread with the reason where one could not be delivered;
    never with the address, which may hold a secret.
    """

    def __init__(self, url: str, daemon: DaemonView, failed: Callable[[str], object]) -> None:
        """Remember the address; the thread starts with the first document."""
        self._url = url
        self._daemon = daemon
        self._failed = failed
        self._waiting: deque[Json] = deque(maxlen=MOST_WAITING)
        self._changed = threading.Condition()
        self._busy = False
        self._thread: threading.Thread | None = None

    def turn(self, moves: Sequence[Move], now: Instant, snapshot: Snapshot) -> None:
        """Have sent what this turn is worth."""
        for move in moves:
            event = _event(move)
            if event and (event != "notice" or snapshot.notice is not None):
                self._put(_document(event, snapshot, self._daemon, now.wall))

    def close(self, seconds: float) -> bool:
        """Wait so long for what is to be sent; return whether all of it was."""
        with self._changed:
            return self._changed.wait_for(lambda: not (self._waiting or self._busy), seconds)

    def _put(self, document: Json) -> None:
        with self._changed:
            self._waiting.append(document)
            self._changed.notify_all()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="webhook", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        timeout = urllib3.Timeout(connect=CONNECT_SECONDS, read=READ_SECONDS)
        pool = urllib3.PoolManager(timeout=timeout, retries=False)
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting)
                document = self._waiting.popleft()
                self._busy = True
            reason = _sent(pool, self._url, document)
            if reason:
                self._failed(f"the {document['event']} was not delivered: {reason}")
            with self._changed:
                self._busy = False
                self._changed.notify_all()


def _event(move: Move) -> str:
    if isinstance(move, DaemonMoved):
        begins = move.new == "draining" and move.old not in ("draining", "drained")
        return "notice" if begins else ""
    return "drain" if isinstance(move, Said) and move.event == "drain.reported" else ""


def _document(event: str, snapshot: Snapshot, daemon: DaemonView, now: float) -> Json:
    told = to_json(snapshot, daemon, now)
    return {"version": told["version"], "event": event, **{key: told[key] for key in _WORTH}}


def _sent(pool: urllib3.PoolManager, url: str, document: Json) -> str:
    """Send one document and return why it was not taken, or nothing."""
    body = json.dumps(document, separators=(",", ":")).encode()
    headers = {"Content-Type": "application/json", "User-Agent": "ckptsyncd"}
    try:
        answer = pool.request(
            "POST", url, body=body, headers=headers, redirect=False, preload_content=False
        )
        answer.drain_conn()
        answer.release_conn()
    except (HTTPError, OSError) as error:
        return type(error).__name__
    return "" if answer.status < _OK_BELOW else f"HTTP {answer.status}"
