"""The short way of bodies on Google's store: requests as the SDK's session makes them.

They have the session's own headers and its credentials' token. Where that token has to be renewed,
and where the store does not like it, the session sends them: it renews.
"""

from __future__ import annotations

from io import BytesIO
from typing import Any
from urllib.parse import urlencode, urlsplit

from google.auth.credentials import AnonymousCredentials
from google.auth.transport.requests import AuthorizedSession
from requests.exceptions import ConnectionError as BrokenError
from requests.models import Response

from ckptsyncd.stores.lines import Answer, Lines, Sent, head_of
from ckptsyncd.stores.short import ShortWay

UNAUTHORIZED = 401

Pairs = dict[str, str]


class Express:
    """Sends bodies to the place that ``lines`` connect to, as ``session`` would."""

    def __init__(self, session: AuthorizedSession, lines: Lines, way: ShortWay) -> None:
        """Know the session's headers; nothing is connected yet."""
        self._credentials: Any = session.credentials
        self._renews = not isinstance(session.credentials, AnonymousCredentials)
        self._always = {str(name): str(value) for name, value in session.headers.items()}
        self._lines = lines
        self._way = way

    def send(
        self,
        method: str,
        url: str,
        sent: Sent,
        *,
        params: Pairs | None = None,
        headers: Pairs | None = None,
    ) -> Response | None:
        """Send a body and return the answer, good or bad; ``None`` leaves it to the session.

        Raises what the session would raise, and what the body raised.
        """
        place = self._lines.place
        parts = urlsplit(url)
        if (parts.scheme == "https", parts.netloc) != (place.is_tls, place.netloc):
            return None
        if not self._credentials.valid:
            return None
        query = parts.query or urlencode(params or {})
        target = f"{parts.path}?{query}" if query else parts.path
        shown = {"Host": place.netloc, **self._always, **(headers or {})}
        self._credentials.apply(shown)
        try:
            answer = self._way.exchange(
                self._lines, lambda: head_of(method, target, shown, len(sent)), sent
            )
        except OSError as error:
            if sent.fault is None:
                raise BrokenError(error) from error
            raise
        if answer is None or (answer.status == UNAUTHORIZED and self._renews):
            return None
        return _as_response(answer)

    def close(self) -> None:
        """Close every idle connection."""
        self._lines.close()


def _as_response(answer: Answer) -> Response:
    """Return an answer as the session would."""
    made = Response()
    made.status_code = answer.status
    made.headers.update(answer.headers)
    made.encoding = "utf-8"
    made.raw = BytesIO(answer.body)
    return made
