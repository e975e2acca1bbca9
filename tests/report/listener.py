"""An address of the user's: takes requests on a loopback port and answers with a status."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from queue import SimpleQueue
from typing import Any


class Listener(HTTPServer):
    """``taken`` holds the documents, ``calls`` how each request began."""

    def __init__(self) -> None:
        """Listen on a loopback port of its own."""
        super().__init__(("127.0.0.1", 0), Taker)
        self.status = 204
        self.taken: SimpleQueue[dict[str, Any]] = SimpleQueue()
        self.calls: SimpleQueue[str] = SimpleQueue()
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self) -> str:
        """Where to send."""
        return f"http://127.0.0.1:{self.server_address[1]}/hook"


class Taker(BaseHTTPRequestHandler):
    """One request."""

    server: Listener

    def do_POST(self) -> None:
        """Take a document."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.taken.put(json.loads(body))
        self._answer()

    def do_GET(self) -> None:
        """Take a bare call."""
        self._answer()

    def _answer(self) -> None:
        self.server.calls.put(f"{self.command} {self.path}")
        self.send_response(self.server.status)
        self.send_header("Location", "http://127.0.0.1:9/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *_: object) -> None:  # noqa: A002
        """Say nothing."""


@contextmanager
def listening() -> Iterator[Listener]:
    """Run somebody who listens."""
    one = Listener()
    try:
        yield one
    finally:
        one.shutdown()
        one.server_close()
