"""Kept-alive HTTP connections for bodies that go the short way (``express``)."""

from __future__ import annotations

import errno
import select
import socket
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from ckptsyncd.stores.s3.sending import SentBody

#: Bytes of one write to the socket.
BLOCK_BYTES = 1024 * 1024
#: A body up to here leaves in one write with its head.
JOINED_BYTES = 128 * 1024
#: No answer to a body has a larger head, and no error document is larger (guessed).
MOST_HEAD_BYTES = 64 * 1024
MOST_BODY_BYTES = 64 * 1024

Sock = socket.socket
Connect = Callable[["Place"], Sock]


@dataclass(frozen=True, slots=True)
class Place:
    """Where to connect; ``netloc`` is how a request names it."""

    is_tls: bool
    host: str
    port: int | None
    netloc: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server said; header names in lower case."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    is_last: bool = False


class Line:
    """One connection. Used by one thread at a time."""

    def __init__(self, sock: Sock) -> None:
        """Take a connected socket over."""
        self._sock = sock
        self._ahead = b""

    @property
    def is_stale(self) -> bool:
        """Whether the other side has closed, or said something that nobody asked for."""
        poll = select.poll()
        poll.register(self._sock, select.POLLIN)
        return bool(poll.poll(0))

    def exchange(self, head: bytes, sent: SentBody) -> Answer:
        """Send a request and return its answer; OSError where the connection or the body fails.

        A server that answers before it has everything is heard.
        """
        try:
            self._send(head, sent)
        except (BrokenPipeError, ConnectionResetError):
            if sent.fault is not None:
                raise
            return self._answer(is_last=True)
        except BaseException:
            self.close()
            raise
        return self._answer()

    def close(self) -> None:
        """Hang up."""
        self._sock.close()

    def _send(self, head: bytes, sent: SentBody) -> None:
        sent.seek(0)
        if len(sent) <= JOINED_BYTES:
            self._sock.sendall(b"".join((head, *_all_of(sent))))
            return
        self._sock.sendall(head)
        while block := sent.read(BLOCK_BYTES):
            self._sock.sendall(block)

    def _answer(self, *, is_last: bool = False) -> Answer:
        try:
            answer = self._read(is_last=is_last)
            while answer.status < 200:  # noqa: PLR2004 - only a word in between
                answer = self._read(is_last=is_last)
        except BaseException:
            self.close()
            raise
        return answer

    def _read(self, *, is_last: bool) -> Answer:
        while b"\r\n\r\n" not in self._ahead:
            if len(self._ahead) > MOST_HEAD_BYTES:
                msg = "the answer's head has no end"
                raise ConnectionResetError(errno.ECONNRESET, msg)
            self._more()
        head, _, self._ahead = self._ahead.partition(b"\r\n\r\n")
        first, *rows = head.decode("latin-1").split("\r\n")
        pairs = (row.partition(":") for row in rows)
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        try:
            status = int(first.split(" ", 2)[1])
            length = int(headers.get("content-length", "0"))
        except (ValueError, IndexError):
            msg = f"no HTTP answer: {first!r:.100}"
            raise ConnectionResetError(errno.ECONNRESET, msg) from None
        has_end = status in (100, 204) or "content-length" in headers
        is_last = is_last or not has_end or headers.get("connection", "").lower() == "close"
        if not has_end:
            return Answer(status, headers, self._rest(), is_last=True)
        while len(self._ahead) < min(length, MOST_BODY_BYTES):
            self._more()
        body, self._ahead = self._ahead[:length], self._ahead[length:]
        return Answer(status, headers, body, is_last=is_last or length > MOST_BODY_BYTES)

    def _rest(self) -> bytes:
        """Return what there is of a body whose length nobody told: an error's words, at most."""
        return self._ahead[:MOST_BODY_BYTES]

    def _more(self) -> None:
        block = self._sock.recv(16 * 1024)
        if not block:
            msg = "the connection ended before the answer"
            raise ConnectionResetError(errno.ECONNRESET, msg)
        self._ahead += block


class Lines:
    """The idle connections to one place; taken by many threads."""

    def __init__(self, connect: Callable[[], Sock]) -> None:
        """Hold none yet."""
        self._connect = connect
        self._idle: list[Line] = []
        self._lock = threading.Lock()

    def take(self) -> Line | None:
        """Return a connection that seems alive; ``None`` where there is none to be had."""
        while True:
            with self._lock:
                line = self._idle.pop() if self._idle else None
            if line is None:
                break
            if not line.is_stale:
                return line
            line.close()
        try:
            return Line(self._connect())
        except OSError:
            return None

    def give_back(self, line: Line, answer: Answer) -> None:
        """Keep a connection for the next request, unless that was its last answer."""
        if answer.is_last:
            line.close()
            return
        with self._lock:
            self._idle.append(line)

    def close(self) -> None:
        """Close what is idle."""
        with self._lock:
            idle, self._idle = self._idle, []
        for line in idle:
            line.close()


def connected(
    place: Place, context: ssl.SSLContext | None, connect_seconds: float, read_seconds: float
) -> Sock:
    """Return a connection, with TLS where there is a context; each later wait is bounded."""
    port = place.port or (443 if place.is_tls else 80)
    sock = socket.create_connection((place.host, port), connect_seconds)
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if context is not None:
            sock = context.wrap_socket(sock, server_hostname=place.host)
        sock.settimeout(read_seconds)
    except BaseException:
        sock.close()
        raise
    return sock


def _all_of(sent: SentBody) -> list[bytes]:
    blocks = []
    while block := sent.read(BLOCK_BYTES):
        blocks.append(bytes(block))
    return blocks
