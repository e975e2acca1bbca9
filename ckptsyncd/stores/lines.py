"""Kept-alive HTTP connections for bodies that go past an SDK (``short``)."""

from __future__ import annotations

import errno
import select
import socket
import ssl
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

#: A body up to here leaves in one write with its head.
JOINED_BYTES = 128 * 1024
#: No answer to a body has a larger head, and no error document is larger (guessed).
MOST_HEAD_BYTES = 64 * 1024
MOST_BODY_BYTES = 64 * 1024

#: Bytes of one read from the socket.
READ_BYTES = 16 * 1024

Sock = socket.socket
Block = bytes | bytearray | memoryview


class Sent(Protocol):
    """A request's body: blocks under a known length."""

    @property
    def fault(self) -> OSError | None:
        """What the body itself raised."""
        ...

    def __len__(self) -> int:
        """Return the content length."""
        ...

    def __iter__(self) -> Iterator[Block]:
        """Yield the bytes from the start; a block may be overwritten by the next."""
        ...


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

    def exchange(self, head: bytes, sent: Sent) -> Answer:
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

    def ask(self, head: bytes) -> tuple[Answer, bool]:
        """Send a request without a body; return its answer, and whether a body is to be received.

        That is so for a good answer that says how long it is; one that does not is of no use here.
        OSError where the connection fails.
        """
        try:
            self._sock.sendall(head)
            answer = self._head(is_last=False)
            while answer.status < 200:  # noqa: PLR2004 - only a word in between
                answer = self._head(is_last=False)
            if answer.status not in (200, 206):
                return self._body(answer), False
            is_plain = _is_plain(answer)
            return (answer if is_plain else replace(answer, is_last=True)), is_plain
        except BaseException:
            self.close()
            raise

    def receive(self, most_bytes: int) -> bytes:
        """Return the next bytes of a body; OSError where the connection fails or has ended."""
        if self._ahead:
            block, self._ahead = self._ahead[:most_bytes], self._ahead[most_bytes:]
            return block
        if block := self._sock.recv(most_bytes):
            return block
        msg = "the connection ended inside the answer"
        raise ConnectionResetError(errno.ECONNRESET, msg)

    def close(self) -> None:
        """Hang up."""
        self._sock.close()

    def _send(self, head: bytes, sent: Sent) -> None:
        if len(sent) <= JOINED_BYTES:
            self._sock.sendall(b"".join((head, *map(bytes, sent))))
            return
        self._sock.sendall(head)
        for block in sent:
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
        return self._body(self._head(is_last=is_last))

    def _head(self, *, is_last: bool) -> Answer:
        """Return an answer without its body."""
        first, *rows = self._until(b"\r\n\r\n").decode("latin-1").split("\r\n")
        pairs = (row.partition(":") for row in rows)
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        try:
            status = int(first.split(" ", 2)[1])
            is_odd = int(headers.get("content-length", "0")) < 0
        except (ValueError, IndexError):
            raise _no_http(first) from None
        if is_odd:
            raise _no_http(first)
        kept = "close" if first.startswith("HTTP/1.0") else "keep-alive"  # unless it is told
        is_last = is_last or headers.get("connection", kept).lower() == "close"
        return Answer(status, headers, is_last=is_last)

    def _body(self, answer: Answer) -> Answer:
        """Return an answer with its body, as far as anybody reads it."""
        if answer.status < 200 or answer.status == 204:  # noqa: PLR2004 - whatever is said of it
            return answer
        if answer.headers.get("transfer-encoding", "").lower() == "chunked":
            return self._chunked(answer)
        if "content-length" not in answer.headers:
            return replace(answer, body=self._rest(), is_last=True)
        length = int(answer.headers["content-length"])
        body = self._taken(min(length, MOST_BODY_BYTES))
        return replace(answer, body=body, is_last=answer.is_last or length > MOST_BODY_BYTES)

    def _chunked(self, answer: Answer) -> Answer:
        """Return the answer with its body, which comes in pieces and a last one without bytes."""
        body = b""
        while len(body) <= MOST_BODY_BYTES:
            row = self._until(b"\r\n")
            try:
                size = int(row.partition(b";")[0], 16)
            except ValueError:
                raise _no_http(row) from None
            if not size:
                while self._until(b"\r\n"):
                    pass  # what a server adds behind the body
                return replace(answer, body=body)
            body += self._taken(min(size, MOST_BODY_BYTES + 1))
            if self._taken(2) != b"\r\n":
                break
        return replace(answer, body=body[:MOST_BODY_BYTES], is_last=True)

    def _until(self, end: bytes) -> bytes:
        """Return what comes before an end, which is taken too."""
        while end not in self._ahead:
            if len(self._ahead) > MOST_HEAD_BYTES:
                msg = "the answer's head has no end"
                raise ConnectionResetError(errno.ECONNRESET, msg)
            self._more()
        found, _, self._ahead = self._ahead.partition(end)
        return found

    def _taken(self, count: int) -> bytes:
        """Return so many bytes."""
        while len(self._ahead) < count:
            self._more()
        taken, self._ahead = self._ahead[:count], self._ahead[count:]
        return taken

    def _rest(self) -> bytes:
        """Return a body whose length nobody told: it ends with the connection."""
        while len(self._ahead) < MOST_BODY_BYTES and (block := self._sock.recv(READ_BYTES)):
            self._ahead += block
        return self._ahead[:MOST_BODY_BYTES]

    def _more(self) -> None:
        block = self._sock.recv(READ_BYTES)
        if not block:
            msg = "the connection ended before the answer"
            raise ConnectionResetError(errno.ECONNRESET, msg)
        self._ahead += block


class Lines:
    """The idle connections to one place; taken by many threads.

    What is idle is closed at the latest when nobody knows the place any more: a connection may be
    given back after everybody else has gone.
    """

    def __init__(self, place: Place, connect: Callable[[], Sock]) -> None:
        """Hold none yet."""
        self.place = place
        self._connect = connect
        self._idle: list[Line] = []
        self._lock = threading.Lock()
        weakref.finalize(self, _hang_up, self._idle)

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
            _hang_up(self._idle)


def _hang_up(idle: list[Line]) -> None:
    while idle:
        idle.pop().close()


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


def head_of(method: str, target: str, headers: Mapping[str, str], length: int) -> bytes:
    """Return a request's head for a body of this length, as it is sent."""
    rows = [f"{name}: {value}" for name, value in headers.items()]
    first = f"{method} {target} HTTP/1.1"
    return "\r\n".join((first, *rows, f"Content-Length: {length}", "", "")).encode()


def _is_plain(answer: Answer) -> bool:
    """Return whether an answer's body is as many bytes as it says."""
    return "content-length" in answer.headers and "transfer-encoding" not in answer.headers


def _no_http(said: str | bytes) -> ConnectionResetError:
    return ConnectionResetError(errno.ECONNRESET, f"no HTTP answer: {said!r:.100}")
