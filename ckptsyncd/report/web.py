"""A small HTTP server for metrics and probes that cannot hurt the program it tells about.

So many clients at once, each with a deadline for its request and for taking the answer; requests
are small or refused, and every connection carries one. It knows GET and HEAD of fixed paths, reads
no body, and holds nothing that the loop needs.
"""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ckptsyncd.core.facts import Instant
from ckptsyncd.errors import UsageError

#: No request of a scraper or a probe is longer (guessed: browsers' headers have 2 KiB).
MAX_REQUEST_BYTES = 8 * 1024
#: A client has so long to send its request, and again to take the answer (guessed).
CLIENT_SECONDS = 5.0
#: Clients served at once; more are told to come again (guessed: scraper, kubelet, people).
MAX_CLIENTS = 8
_PAUSE_SECONDS = 0.1
_CLOSE_SECONDS = 1.0
_PART_READS = 16
_END = b"\r\n\r\n"
_REASONS = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    503: "Service Unavailable",
}
_TEXT = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a path answers."""

    status: int
    body: bytes
    kind: str = _TEXT

    @classmethod
    def line(cls, status: int, text: str) -> Answer:
        """Return a line of plain text."""
        return cls(status, f"{text}\n".encode("utf-8", "backslashreplace"))


Pages = Mapping[str, Callable[[], Answer]]


class WebServer:
    """Serves pages from ``start`` to ``close``; pages are called from several threads."""

    def __init__(self, host: str, port: int, pages: Pages, now: Callable[[], Instant]) -> None:
        """Remember where to listen; port 0 takes any that is free."""
        self._address = (host, port)
        self._now = now
        self._pages = dict(pages)
        self._stopped = threading.Event()
        self._places = threading.BoundedSemaphore(MAX_CLIENTS)
        self._wake, self._woken = socket.socketpair()
        self._acceptor: threading.Thread | None = None
        self.port = port

    def start(self) -> None:
        """Listen and serve in threads of its own; UsageError where the address is taken."""
        server = self._bound()
        self.port = int(server.getsockname()[1])
        self._acceptor = threading.Thread(
            target=self._accept, args=(server,), name="web", daemon=True
        )
        self._acceptor.start()

    def close(self) -> None:
        """Stop to listen. Takes a second at most; clients being served are left to their end."""
        self._stopped.set()
        self._wake.close()
        if self._acceptor is not None:
            self._acceptor.join(_CLOSE_SECONDS)
        self._woken.close()

    def _bound(self) -> socket.socket:
        host, port = self._address
        try:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            server = socket.create_server((host, port), family=family, backlog=MAX_CLIENTS)
        except OSError as error:
            self.close()
            msg = f"cannot serve metrics on {host} port {port}: {error.strerror or error}"
            hint = "name another --metrics-port, or another --metrics-host"
            raise UsageError(msg, hint=hint) from error
        server.setblocking(False)
        return server

    def _accept(self, server: socket.socket) -> None:
        poll = select.poll()
        poll.register(server, select.POLLIN)
        poll.register(self._woken, select.POLLIN)
        with server:
            while not self._stopped.is_set():
                poll.poll()
                self._take_client(server)

    def _take_client(self, server: socket.socket) -> None:
        try:
            connection, _ = server.accept()
        except BlockingIOError:
            return
        except OSError:
            # No descriptor is left. The client stays in the queue; others will free some.
            self._stopped.wait(_PAUSE_SECONDS)
            return
        if not self._places.acquire(blocking=False):
            _turn_away(connection)
            return
        threading.Thread(target=self._serve, args=(connection,), name="web", daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection:
                is_head, answer = self._answered(connection)
                connection.settimeout(CLIENT_SECONDS)
                connection.sendall(_response(answer, is_head=is_head))
                _part(connection)
        except OSError:
            return  # the client went away, or was too slow: nobody is left to be told
        finally:
            self._places.release()

    def _answered(self, connection: socket.socket) -> tuple[bool, Answer]:
        try:
            head = self._read(connection)
        except TimeoutError:
            return False, Answer.line(408, "the request took too long")
        if head is None:
            return False, Answer.line(431, "the request is too long")
        words = head.split(b"\r\n", 1)[0].split(b" ")
        if len(words) != 3 or not words[2].startswith(b"HTTP/1."):  # noqa: PLR2004
            return False, Answer.line(400, "this is no HTTP request")
        if words[0] not in (b"GET", b"HEAD"):
            return False, Answer.line(405, "only GET and HEAD")
        page = self._pages.get(words[1].partition(b"?")[0].decode("latin-1"))
        if page is None:
            return words[0] == b"HEAD", Answer.line(404, f"known are {', '.join(self._pages)}")
        return words[0] == b"HEAD", page()

    def _read(self, connection: socket.socket) -> bytes | None:
        """Return the request's head, ``None`` where it is too long; TimeoutError if too slow."""
        deadline = self._now().boot + CLIENT_SECONDS
        data = b""
        while _END not in data:
            if len(data) > MAX_REQUEST_BYTES:
                return None
            left = deadline - self._now().boot
            if left <= 0:
                raise TimeoutError
            connection.settimeout(left)
            more = connection.recv(MAX_REQUEST_BYTES)
            if not more:
                break
            data += more
        return data


def _response(answer: Answer, *, is_head: bool = False) -> bytes:
    head = (
        f"HTTP/1.1 {answer.status} {_REASONS[answer.status]}\r\n"
        f"Content-Type: {answer.kind}\r\nContent-Length: {len(answer.body)}\r\n"
        "Cache-Control: no-store\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + (b"" if is_head else answer.body)


def _turn_away(connection: socket.socket) -> None:
    """Say that there is no room, without ever waiting for the client to listen."""
    with connection, contextlib.suppress(OSError):
        connection.setblocking(False)
        connection.sendall(_response(Answer.line(503, "too many clients")))
        connection.shutdown(socket.SHUT_WR)
        connection.recv(MAX_REQUEST_BYTES)


def _part(connection: socket.socket) -> None:
    """Let the client close first: what it sent and we did not read would reset the connection."""
    connection.shutdown(socket.SHUT_WR)
    connection.settimeout(1.0)
    for _ in range(_PART_READS):
        if not connection.recv(MAX_REQUEST_BYTES):
            return
