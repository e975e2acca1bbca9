"""The short way back: an object's bytes on connections of our own, past most of the SDK.

The SDK takes 1.5 ms of CPU time around each answer, and as much again for each 16 MiB of its body
(measured). As with bodies that leave (``express``), its own requests come first and show where the
bucket is and how they are signed; whatever is no plain answer is asked for again by the SDK.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

from ckptsyncd.stores.lines import Answer, Line, Lines, Place
from ckptsyncd.stores.s3.express import Route, as_sdk, as_told, is_for_the_sdk, route_of
from ckptsyncd.stores.s3.signing import EMPTY, signed
from ckptsyncd.stores.short import ShortWay

#: The SDK's parameters of a request that is asked this way.
ASKED = frozenset({"Key", "Range"})
VERB = "GetObject"


class Inbound:
    """Asks for objects on kept-alive connections, once it was shown the way."""

    def __init__(self, credentials: Callable[[], Any], lines: Callable[[Place], Lines]) -> None:
        """Know no route yet; ``lines`` makes the connections to a place."""
        self._credentials = credentials
        self._make_lines = lines
        self._lock = threading.Lock()
        self._asked = threading.local()
        self._way = ShortWay()
        self._known: tuple[Route, Lines] | None = None

    def expect(self, full_key: str) -> None:
        """Hear which object this thread asks the SDK for, before it does."""
        self._asked.full_key = full_key

    def show(self, request: Any, **_: object) -> None:
        """Take the route from a request as the SDK is about to send it."""
        said = request.headers.get("Authorization", "")
        authorization = said.decode() if isinstance(said, bytes) else said
        route = route_of(request.url, authorization, self._asked.full_key)
        with self._lock:
            known = self._known
            if route is None:
                self._known = None
            elif known is None or known[0].place != route.place:
                self._known = (route, self._make_lines(route.place))
            else:
                self._known = (route, known[1])
        if known is not None and (self._known is None or self._known[1] is not known[1]):
            known[1].close()

    def fetch(self, parameters: Mapping[str, Any]) -> dict[str, Any] | None:
        """Ask for an object and return the good answer as the SDK's; ``None`` leaves it to the SDK.

        Raises what the SDK would raise.
        """
        known = self._known
        if known is None or not parameters.keys() <= ASKED:
            return None
        route, lines = known
        try:
            found = self._way.ask(lines, lambda: self._head(route, parameters))
        except OSError as error:
            raise as_sdk(error, route) from error
        if found is None:
            return None
        line, answer = found
        if line is not None:
            body = Arriving(line, lines, answer, route)
            size, version = answer.headers["content-length"], answer.headers.get("etag", "")
            return {"ContentLength": int(size), "ETag": version, "Body": body}
        if is_for_the_sdk(answer) or answer.status < 400:  # noqa: PLR2004 - of no length it told
            return None
        raise as_told(answer, VERB)

    def close(self) -> None:
        """Close every idle connection; the route stays known."""
        if self._known is not None:
            self._known[1].close()

    def _head(self, route: Route, parameters: Mapping[str, Any]) -> bytes:
        path = f"{route.base}/{quote(parameters['Key'], safe='/~')}"
        wanted = {"host": route.place.netloc}
        if "Range" in parameters:
            wanted["range"] = parameters["Range"]
        by = self._credentials()
        headers = signed(path, wanted, by, route.region, time.time(), method="GET", payload=EMPTY)
        rows = [f"{name}: {value}" for name, value in headers.items()]
        first = f"GET {path} HTTP/1.1"
        return "\r\n".join((first, *rows, "User-Agent: ckptsyncd", "", "")).encode()


class Arriving:
    """The body of an answer, read once; the connection is used again once all of it was read."""

    def __init__(self, line: Line, lines: Lines, answer: Answer, route: Route) -> None:
        """Take over a line on which the answer's body is to come."""
        self._line = line
        self._lines = lines
        self._answer = answer
        self._route = route
        self._left = int(answer.headers["content-length"])
        self._is_done = False

    def read(self, most_bytes: int) -> bytes:
        """Return the next bytes, empty at the end; raises what the SDK would of a broken line."""
        if not self._left:
            self._done()
            return b""
        try:
            block = self._line.receive(min(most_bytes, self._left))
        except OSError as error:
            raise as_sdk(error, self._route) from error
        self._left -= len(block)
        return block

    def close(self) -> None:
        """Let the connection go; what was not read of the body goes with it."""
        self._done()

    def _done(self) -> None:
        if self._is_done:
            return
        self._is_done = True
        if self._left:
            self._line.close()
        else:
            self._lines.give_back(self._line, self._answer)
