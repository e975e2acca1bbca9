"""The pretended service on a port: connections, routes to each cloud's door, and faults."""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from ckptsyncd.sources.pretend.aws import PretendedAws
from ckptsyncd.sources.pretend.azure import PretendedAzure
from ckptsyncd.sources.pretend.exchange import Reply, Request, page
from ckptsyncd.sources.pretend.faults import Faults
from ckptsyncd.sources.pretend.gcp import PretendedGcp
from ckptsyncd.sources.pretend.others import PretendedAlibaba, PretendedOracle, PretendedTencent
from ckptsyncd.sources.pretend.scene import Scene

LOOPBACK = "127.0.0.1"
TENCENT_HOST = "metadata.tencentyun.com"
_RESET = struct.pack("ii", 1, 0)


class PretendedMetadata:
    """Every cloud's door on one port, until ``close``.

    ``connections`` counts the connections that were ever taken.
    """

    def __init__(self, scene: Scene | None = None, host: str = LOOPBACK, port: int = 0) -> None:
        """Listen on a loopback address; port 0 takes a free one."""
        self.scene = scene or Scene()
        self.faults = Faults()
        self.connections = 0
        self.aws = PretendedAws(self.scene)
        self.gcp = PretendedGcp(self.scene)
        self.azure = PretendedAzure(self.scene)
        self.alibaba = PretendedAlibaba(self.scene)
        self.tencent = PretendedTencent(self.scene)
        self.oracle = PretendedOracle()
        self._host, self._port = host, port
        self._listener: Listener | None = None
        self.listen()

    @property
    def url(self) -> str:
        """The address of EC2's, Google's and Azure's doors (and of Tencent's, by its Host)."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self._port}"

    @property
    def alibaba_url(self) -> str:
        """The address of Alibaba's door."""
        return f"{self.url}/alibaba"

    def listen(self) -> None:
        """Take connections (again, on the same port)."""
        listener = Listener(self, self._host, self._port)
        self._port = listener.server_address[1]
        self._listener = listener
        threading.Thread(target=listener.serve_forever, args=(0.01,), daemon=True).start()

    def refuse(self) -> None:
        """Refuse connections, and cut those that are open."""
        if self._listener is not None:
            self._listener.shutdown()
            self._listener.server_close()
            self.cut()
            self._listener = None

    def cut(self) -> None:
        """Close every open connection, as a service does with idle ones."""
        if self._listener is not None:
            self._listener.cut()

    def close(self) -> None:
        """Stop for good; hanging requests end."""
        self.scene.close()
        self.refuse()

    def answer(self, request: Request) -> Reply:
        """Return the reply of the door that a request belongs to."""
        return self.faults.applied(request.path, lambda: self._routed(request))

    def _routed(self, request: Request) -> Reply:
        first = request.path.split("/")[1]
        if first == "alibaba":
            return self.alibaba.answer(_below(request, "/alibaba"))
        if request.headers.get("host", "").startswith(TENCENT_HOST):
            return self.tencent.answer(request)
        if first == "computeMetadata":
            return self.gcp.answer(request)
        if first == "metadata":
            return self.azure.answer(request)
        if first == "opc":
            return self.oracle.answer(request)
        return self.aws.answer(request) if request.path != "/" else page(404)


def _below(request: Request, prefix: str) -> Request:
    path = request.path.removeprefix(prefix)
    return Request(request.method, path, request.query, request.headers, request.body)


class Listener(ThreadingHTTPServer):
    """The listening socket, and the connections that are open."""

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True

    def __init__(self, service: PretendedMetadata, host: str, port: int) -> None:
        """Bind and listen."""
        if ":" in host:
            self.address_family = socket.AF_INET6
        self.service = service
        self.open: set[socket.socket] = set()
        super().__init__((host, port), Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Remember a new connection."""
        self.open.add(request)
        self.service.connections += 1
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Forget a connection that is over."""
        self.open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: clients that hang up are part of the play."""

    def cut(self) -> None:
        """Close every open connection."""
        for connection in list(self.open):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    # Head and body in one packet: else each answer waits 40 ms for a delayed acknowledgement.
    wbufsize = -1
    server: Listener

    def do_GET(self) -> None:
        """Answer one request."""
        parts = urlsplit(self.path)
        query = tuple(parse_qsl(parts.query, keep_blank_values=True))
        headers = {name.lower(): value for name, value in self.headers.items()}
        body = self.rfile.read(int(headers.get("content-length", 0)))
        request = Request(self.command, parts.path, query, headers, body)
        self._send(self.server.service.answer(request))

    do_PUT = do_POST = do_HEAD = do_GET  # noqa: N815 - the standard library's names

    def log_message(self, format: str, *_: object) -> None:  # noqa: A002
        """Say nothing."""

    def _send(self, reply: Reply) -> None:
        scene = self.server.service.scene
        if reply.manner == "silence":
            scene.hold(lambda: False, float("inf"))
            self.close_connection = True
            return
        self._head(reply)
        body = b"" if self.command == "HEAD" else reply.body
        if reply.manner == "chunked":
            body = b"".join(b"%x\r\n%s\r\n" % (1, body[i : i + 1]) for i in range(len(body)))
            body += b"0\r\n\r\n"
        if reply.manner in ("drip", "reset"):
            body = body[: 1 if reply.manner == "drip" else len(body) // 2]
        self.wfile.write(body)
        self.wfile.flush()
        self._end(reply)

    def _head(self, reply: Reply) -> None:
        headers = {"Date": self.server.service.scene.date(), "Server": "pretended"}
        headers |= reply.headers
        if reply.manner == "chunked":
            headers["Transfer-Encoding"] = "chunked"
        else:
            headers["Content-Length"] = str(len(reply.body))
        if reply.manner == "close":
            headers["Connection"] = "close"
        self.send_response_only(reply.status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def _end(self, reply: Reply) -> None:
        if reply.manner == "drip":
            self.server.service.scene.hold(lambda: False, float("inf"))
        if reply.manner == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            self.connection.close()
        self.close_connection = self.close_connection or reply.manner in ("close", "drip", "reset")
