"""One request to an address of the user's: no redirects, no retries, no answer that is read.

The address may hold a secret, so what is said of a failure never names it.
"""

from __future__ import annotations

import json
from typing import Any

import urllib3
from urllib3.exceptions import HTTPError

CONNECT_SECONDS = 2.0
READ_SECONDS = 5.0
_OK_BELOW = 300


class Post:
    """Sends to one address, from one thread."""

    def __init__(self, url: str) -> None:
        """Connect to nobody yet."""
        timeout = urllib3.Timeout(connect=CONNECT_SECONDS, read=READ_SECONDS)
        self._pool = urllib3.PoolManager(timeout=timeout, retries=False)
        self._url = url

    def ping(self) -> str:
        """Send a bare GET; return why it was not answered with a yes, or nothing."""
        return self._sent("GET", None, {})

    def document(self, document: dict[str, Any]) -> str:
        """Send a JSON document; return why it was not taken, or nothing."""
        body = json.dumps(document, separators=(",", ":")).encode()
        return self._sent("POST", body, {"Content-Type": "application/json"})

    def _sent(self, method: str, body: bytes | None, headers: dict[str, str]) -> str:
        headers = {"User-Agent": "ckptsyncd", **headers}
        try:
            answer = self._pool.request(
                method, self._url, body=body, headers=headers, redirect=False, preload_content=False
            )
            answer.drain_conn()
            answer.release_conn()
        except (HTTPError, OSError) as error:
            return type(error).__name__
        return "" if answer.status < _OK_BELOW else f"HTTP {answer.status}"
