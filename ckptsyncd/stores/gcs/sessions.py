"""A large object sent in order through a resumable session, which outlives the process.

The session's address is its key: it needs no credentials, so it is a secret. A session ends by
itself a week after it was begun.
"""

from __future__ import annotations

import re
import threading
from typing import Any

from ckptsyncd.core.facts import Begun, Piece
from ckptsyncd.core.ports import Body
from ckptsyncd.errors import Again, Gone, Missing, Never
from ckptsyncd.stores.gcs.objects import CONTENT_TYPE, Label, Objects
from ckptsyncd.stores.gcs.wire import Wire
from ckptsyncd.stores.passing import Passing
from ckptsyncd.stores.verdicts import Asked

#: What a session keeps is a multiple of this, except for the end of the object.
CHUNK_BYTES = 256 * 1024

_RANGE = re.compile(r"(?:bytes=)?0-(\d+)")

WANTS_MORE = 308


class Sessions:
    """Begun uploads that are one ordered stream; each ends as an object under a name of its own."""

    def __init__(self, wire: Wire, objects: Objects) -> None:
        """Work over ``wire``."""
        self._wire = wire
        self._objects = objects
        self._known: dict[str, int] = {}
        self._lock = threading.Lock()

    def begin(self, name: str, label: Label, size: int) -> str:
        """Begin a session for ``size`` bytes and return its secret address."""
        asked = Asked("begin", name, is_write=True, absent=Never)
        resource: dict[str, Any] = {
            "name": name,
            "contentType": CONTENT_TYPE,
            "metadata": label.as_metadata(),
            **self._objects.classed(),
        }
        answer = self._wire.ask(
            asked,
            "POST",
            self._wire.object_url(name, upload=True),
            params={"uploadType": "resumable", "name": name, **self._objects.encrypted()},
            headers={"X-Upload-Content-Type": CONTENT_TYPE, "X-Upload-Content-Length": str(size)},
            json=resource,
        )
        address = answer.headers.get("Location")
        if not address:
            msg = f"begin {name}: the answer names no session"
            raise Again(msg)
        self._remember(address, 0)
        return address

    def put(self, address: str, begun: Begun, piece: Piece, body: Body) -> Passing:
        """Send what the session lacks of a piece; return the sums of the whole piece.

        What the session was told before is not sent again; whether it was the same is seen when
        the whole object is compared. Gone where the session ends before the piece begins.
        """
        end = piece.offset + piece.length
        at = self._offset(address, begun) if piece.length else end
        if at < piece.offset:
            msg = f"{begun.key}: the session has {at} bytes, the piece begins at {piece.offset}"
            raise Gone(msg)
        if at >= end:
            return Passing(body).summed()
        passing = Passing(body, at - piece.offset)
        asked = Asked("put piece", begun.key, is_write=True, absent=Gone)
        self._forget(address)
        headers = {"Content-Range": f"bytes {at}-{end - 1}/{begun.size}"}
        answer = self._wire.ask(asked, "PUT", address, sent=passing, headers=headers)
        reached = self._reached(answer, begun.size)
        self._remember(address, reached)
        if reached < end:
            msg = f"{begun.key}: the session took {reached - at} of {end - at} bytes"
            raise Again(msg)
        return passing

    def cancel(self, address: str) -> None:
        """End a session and drop its bytes; success where it is not known any more.

        A server that cannot (501: an emulator) lets it end by itself.
        """
        self._forget(address)
        try:
            self._wire.ask(Asked("cancel", "session", absent=Gone), "DELETE", address)
        except (Gone, Never, Missing):
            return

    def _offset(self, address: str, begun: Begun) -> int:
        """Return how many bytes the session has: as its last answer said, or by asking it."""
        with self._lock:
            known = self._known.get(address)
        if known is not None:
            return known
        asked = Asked("ask session", begun.key, absent=Gone)
        headers = {"Content-Range": f"bytes */{begun.size}"}
        answer = self._wire.ask(asked, "PUT", address, headers=headers)
        reached = self._reached(answer, begun.size)
        self._remember(address, reached)
        return reached

    def _reached(self, answer: Any, size: int) -> int:
        """Return how far an answer says that the session is; Gone where it ended wrongly."""
        if answer.status_code != WANTS_MORE:
            if int(answer.json().get("size", 0)) == size:
                return size
            msg = "the session ended before all of the object was sent"
            raise Gone(msg)
        told = _RANGE.fullmatch(answer.headers.get("Range", ""))
        reached = int(told[1]) + 1 if told else 0
        return reached if reached == size else reached - reached % CHUNK_BYTES

    def _remember(self, address: str, reached: int) -> None:
        with self._lock:
            self._known[address] = reached

    def _forget(self, address: str) -> None:
        with self._lock:
            self._known.pop(address, None)
