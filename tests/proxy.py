"""A proxy on loopback between the program and a real store server: it counts, holds and spoils.

Requests pass unchanged; rules match them by method and target. It speaks as much HTTP/1.1 as SDKs
use against a store: bodies with a length, answers with a length or chunked, kept-alive connections.
"""

from __future__ import annotations

import re
import socket
import socketserver
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from io import BufferedReader as Reader

#: No request head is larger.
MOST_HEAD_BYTES = 64 * 1024
BLOCK_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it passed: its body's length in bytes, and its headers in lower case."""

    method: str
    target: str
    body_bytes: int
    headers: str = ""


@dataclass(slots=True)
class Rule:
    """What happens to requests that match, so many times at most.

    ``hold``: the request waits, unsent, until ``release`` (or for ever). ``swallow``: it is sent,
    the store acts, and the answer is lost. ``refuse``: the connection is cut before it is sent.
    ``half``: half of the answer arrives. ``reset``: it is sent, and the connection is reset.
    ``answer``: this answer is given in the store's stead. ``flip``: one bit in the middle of the
    body is sent on wrong. ``reached`` is set at the first match, ``taken_at`` are the times of all
    (monotonic seconds). ``headers`` must be found in the request's head, where it is given.
    """

    method: str
    target: re.Pattern[str]
    times: int
    what: str
    answer: bytes = b""
    headers: str = ""
    reached: threading.Event = field(default_factory=threading.Event)
    release: threading.Event = field(default_factory=threading.Event)
    taken_at: list[float] = field(default_factory=list)

    def takes(self, method: str, target: str, head: str) -> bool:
        """Return whether this request falls under the rule, and count it."""
        if self.times <= 0 or self.method not in ("*", method) or self.headers not in head:
            return False
        if self.target.search(target) is None:
            return False
        self.times -= 1
        self.taken_at.append(time.monotonic())
        return True


class Proxy:
    """A listening proxy. ``requests`` is what was sent on, in order."""

    def __init__(self, host: str, port: int) -> None:
        """Listen on an ephemeral port of the loopback address and send on to ``host:port``."""
        self.upstream = (host, port)
        self.requests: list[Request] = []
        self.rules: list[Rule] = []
        self.lock = threading.Lock()
        #: The link's speed in bytes per second, for all request bodies together; ``None``: no end.
        self.speed: float | None = None
        self._free_at = 0.0
        #: Asked about each request that no rule takes: what happens to it, if anything.
        self.weather: Callable[[], Rule | None] = lambda: None
        #: With it the proxy speaks TLS to those that connect from now on.
        self.tls: ssl.SSLContext | None = None
        self.clients: set[socket.socket] = set()
        proxy = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                proxy.welcome(self.request)

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True
            allow_reuse_address = True
            block_on_close = False

        self.server = Server(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)

    @property
    def endpoint(self) -> str:
        """The URL of the proxy."""
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def welcome(self, client: socket.socket) -> None:
        """Serve one client; with TLS where there is a certificate."""
        if self.tls is not None:
            try:
                client = self.tls.wrap_socket(client, server_side=True)
            except OSError:
                return  # it does not like the certificate
        with self.lock:
            self.clients.add(client)
        try:
            serve(self, client)
        finally:
            with self.lock:
                self.clients.discard(client)
            client.close()

    def cut(self) -> None:
        """End every connection that there is."""
        with self.lock:
            for client in self.clients:
                with suppress(OSError):
                    client.shutdown(socket.SHUT_RDWR)

    def rule(
        self,
        what: str,
        method: str,
        target: str,
        *,
        times: int = 1,
        answer: bytes = b"",
        headers: str = "",
    ) -> Rule:
        """Add a rule for requests whose method is this (``*``: any) and whose target matches."""
        made = Rule(method, re.compile(target), times, what, answer, headers)
        with self.lock:
            self.rules.append(made)
        return made

    def matched(self, method: str, target: str, head: str) -> Rule | None:
        """Return the rule that takes a request, if any."""
        with self.lock:
            return next((rule for rule in self.rules if rule.takes(method, target, head)), None)

    def shaped(self, reader: Reader, length: int) -> bytes:
        """Return a request's body, as fast as the link is that all of them share."""
        if self.speed is None:
            return reader.read(length)
        body = bytearray()
        while len(body) < length:
            block = reader.read(min(BLOCK_BYTES, length - len(body)))
            if not block:
                break
            body += block
            self._pass(len(block))
        return bytes(body)

    def _pass(self, count: int) -> None:
        """Wait until so many bytes have had their turn on the link."""
        with self.lock:
            now = time.monotonic()
            begun = max(now, self._free_at)
            self._free_at = begun + count / (self.speed or float("inf"))
            wait = self._free_at - now
        threading.Event().wait(wait)

    def sent(self, method: str, target: str) -> list[Request]:
        """Return the requests of this kind that were sent on."""
        pattern = re.compile(target)
        with self.lock:
            return [r for r in self.requests if r.method == method and pattern.search(r.target)]

    def data_bytes(self, target: str = r"") -> int:
        """Return how many body bytes were sent on for keys that match."""
        pattern = re.compile(target)
        with self.lock:
            return sum(r.body_bytes for r in self.requests if pattern.search(r.target))


@contextmanager
def proxied(host: str, port: int) -> Iterator[Proxy]:
    """Run a proxy in front of ``host:port``; at the end every request that is held is let go."""
    proxy = Proxy(host, port)
    proxy.thread.start()
    try:
        yield proxy
    finally:
        for rule in proxy.rules:
            rule.release.set()
        proxy.server.shutdown()
        proxy.server.server_close()


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a request or an answer."""

    first: str
    raw: bytes
    length: int | None
    is_chunked: bool


def serve(proxy: Proxy, client: socket.socket) -> None:
    """Pass requests of one client connection on until either side closes."""
    reader = client.makefile("rb")
    try:
        with socket.create_connection(proxy.upstream) as store:
            answers = store.makefile("rb")
            while _pass_one(proxy, client, reader, store, answers):
                pass
    except OSError:
        return  # a side that vanished is what some tests are about


def _pass_one(
    proxy: Proxy, client: socket.socket, reader: Reader, store: socket.socket, answers: Reader
) -> bool:
    head = read_head(reader)
    if head is None:
        return False
    method, target, _ = head.first.split(" ", 2)
    if b"100-continue" in head.raw.lower():
        client.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
    body = proxy.shaped(reader, head.length or 0)
    headers = head.raw.decode("latin-1").lower()
    rule = proxy.matched(method, target, headers) or proxy.weather()
    if rule is not None:
        rule.reached.set()
        if rule.what == "hold":
            rule.release.wait()
        if rule.what in ("hold", "refuse"):
            return False
        if rule.what == "answer":
            client.sendall(rule.answer)
            return True
        if rule.what == "flip":
            middle = len(body) // 2
            body = body[:middle] + bytes([body[middle] ^ 1]) + body[middle + 1 :]
    with proxy.lock:
        proxy.requests.append(Request(method, target, len(body), headers))
    store.sendall(without_expect(head.raw) + body)
    return _answer(client, answers, method, "" if rule is None else rule.what)


def _answer(client: socket.socket, answers: Reader, method: str, what: str) -> bool:
    head = read_head(answers)
    if head is None:
        return False
    pieces = [head.raw]
    has_body = method != "HEAD" and " 204" not in head.first and " 304" not in head.first
    if has_body and head.is_chunked:
        pieces += read_chunks(answers)
    elif has_body and head.length is not None:
        pieces.append(answers.read(head.length))
    whole = b"".join(pieces)
    if what == "reset":
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    if what in ("swallow", "half", "reset"):
        client.sendall(whole[: len(whole) // 2] if what == "half" else b"")
        return False
    client.sendall(whole)
    return b"connection: close" not in head.raw.lower()


def read_head(reader: Reader) -> Head | None:
    """Return the next head, ``None`` where the connection ended."""
    lines = [reader.readline(MOST_HEAD_BYTES)]
    while lines[-1] not in (b"\r\n", b""):
        lines.append(reader.readline(MOST_HEAD_BYTES))
    if lines[-1] == b"":
        return None
    fields = {
        name.strip().lower(): value.strip()
        for name, _, value in (line.decode("latin-1").partition(":") for line in lines[1:-1])
    }
    length = int(fields["content-length"]) if "content-length" in fields else None
    chunked = "chunked" in fields.get("transfer-encoding", "")
    return Head(lines[0].decode("latin-1").strip(), b"".join(lines), length, chunked)


def read_chunks(reader: Reader) -> list[bytes]:
    """Return a chunked body as it came."""
    pieces = []
    while True:
        line = reader.readline(MOST_HEAD_BYTES)
        size = int(line.split(b";")[0], 16)
        pieces += [line, reader.read(size + 2)]
        if size == 0:
            return pieces


def without_expect(raw: bytes) -> bytes:
    """Return a request head without its wish for a go-ahead, which was given already."""
    return re.sub(rb"(?im)^expect:[^\r\n]*\r\n", b"", raw)
