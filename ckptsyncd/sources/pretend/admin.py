"""A second port from which other processes move time, announce events and inject faults."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

from ckptsyncd.sources.pretend.server import LOOPBACK, PretendedMetadata

#: Who can be told what: the parts of the service whose public methods may be called.
PARTS = ("scene", "faults", "aws", "gcp", "azure", "alibaba", "tencent", "server")


class Admin:
    """Takes ``{"who": "aws", "do": "interrupt", "with": {"seconds": 120}}`` by POST."""

    def __init__(self, service: PretendedMetadata, port: int = 0) -> None:
        """Listen on a loopback port of its own."""
        self._server = Desk(service, port)
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self) -> str:
        """Where to send orders."""
        return f"http://{LOOPBACK}:{self._server.server_address[1]}"

    def close(self) -> None:
        """Take no more orders."""
        self._server.shutdown()
        self._server.server_close()


class Desk(HTTPServer):
    """The admin's listening socket."""

    def __init__(self, service: PretendedMetadata, port: int) -> None:
        """Bind and listen."""
        self.service = service
        super().__init__((LOOPBACK, port), Clerk)


class Clerk(BaseHTTPRequestHandler):
    """Takes one order at a time."""

    server: Desk

    def do_POST(self) -> None:
        """Call a public method of a part, or set one of its fields."""
        try:
            order = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
            answer: object = self._done(order["who"], order["do"], order.get("with", {}))
            status, body = 200, json.dumps({"answer": answer}, default=str)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            status, body = 400, json.dumps({"error": repr(error)})
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def _done(self, who: str, what: str, arguments: dict[str, object]) -> object:
        if who not in PARTS or what.startswith("_"):
            msg = f"{who} takes no order {what}"
            raise ValueError(msg)
        service = self.server.service
        part: object = service if who == "server" else getattr(service, who)
        found = getattr(part, what)
        if callable(found):
            return found(**arguments)
        setattr(part, what, arguments["value"])
        return None

    def log_message(self, format: str, *_: object) -> None:  # noqa: A002
        """Say nothing."""
