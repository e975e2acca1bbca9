"""The web server: what it answers, and that no client can hurt it."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Iterator

import pytest

from ckptsyncd.edge.clock import BootClock
from ckptsyncd.errors import UsageError
from ckptsyncd.report import web
from ckptsyncd.report.web import MAX_CLIENTS, MAX_REQUEST_BYTES, Answer, WebServer

PATIENCE = 10.0
LARGE = Answer(200, b"x" * 64 * 1024 * 1024)


@pytest.fixture
def server() -> Iterator[WebServer]:
    """Run a server with three pages, one of which waits until the test is over."""
    over = threading.Event()

    def slow() -> Answer:
        over.wait(PATIENCE)
        return Answer.line(200, "at last")

    pages = {"/": lambda: Answer.line(200, "hello"), "/large": lambda: LARGE, "/slow": slow}
    made = WebServer("127.0.0.1", 0, pages, BootClock().now)
    made.start()
    yield made
    over.set()
    made.close()


def connected(server: WebServer) -> socket.socket:
    """Return a connection to the server."""
    return socket.create_connection(("127.0.0.1", server.port), PATIENCE)


def answer(server: WebServer, request: bytes) -> bytes:
    """Send bytes and return everything that comes back."""
    with connected(server) as client:
        client.sendall(request)
        return client.makefile("rb").read()


def asked(server: WebServer, path: str, method: str = "GET") -> tuple[int, bytes]:
    """Return status and body of a request by a client that knows HTTP."""
    client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
    client.request(method, path)
    response = client.getresponse()
    body = response.read()
    client.close()
    return response.status, body


def test_pages_and_everything_else(server: WebServer) -> None:
    """Known paths answer, with a query too; HEAD has no body; the rest is refused by its number."""
    assert asked(server, "/") == (200, b"hello\n")
    assert asked(server, "/?x=1") == (200, b"hello\n")
    assert asked(server, "/", "HEAD") == (200, b"")
    assert asked(server, "/nothing") == (404, b"known are /, /large, /slow\n")
    assert asked(server, "/", "POST")[0] == 405


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"\r\n\r\n", 400),
        (b"\x16\x03\x01\r\n\r\n", 400),
        (b"GET /\r\n\r\n", 400),
        (b"GET / HTTP/2.0\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nx: " + b"y" * MAX_REQUEST_BYTES * 2, 431),
        (b"GET /\xff\xff HTTP/1.1\r\n\r\n", 404),
    ],
)
def test_odd_requests_are_answered(server: WebServer, request_bytes: bytes, status: int) -> None:
    """What is no request of ours is refused with a reason, and the next client is served."""
    assert answer(server, request_bytes).startswith(b"HTTP/1.1 %d " % status)
    assert asked(server, "/")[0] == 200


def test_clients_that_leave_are_no_trouble(server: WebServer) -> None:
    """Whoever connects and says nothing, or goes away in the middle of a large answer, is let go.

    More of them than there are places come one after the other, and everybody is served after.
    """
    for _ in range(MAX_CLIENTS * 2):
        connected(server).close()
        with connected(server) as client:
            client.sendall(b"GET /large HTTP/1.1\r\n\r\n")
            assert client.recv(100).startswith(b"HTTP/1.1 200")
    assert asked(server, "/")[0] == 200


def test_places_are_bounded(server: WebServer) -> None:
    """With every place taken the next client is told at once, and served when one is free."""
    taken = [connected(server) for _ in range(MAX_CLIENTS)]
    for one in taken:
        one.sendall(b"GET /slow HTTP/1.1\r\n\r\n")
    assert asked(server, "/") == (503, b"too many clients\n")
    for one in taken:
        one.close()


def test_a_slow_client_loses_its_place(
    server: WebServer,
) -> None:
    """Whoever sends byte by byte has a deadline for the whole request."""
    with connected(server) as client:
        client.sendall(b"GET / HT")
        client.settimeout(web.CLIENT_SECONDS + PATIENCE)
        assert client.recv(100).startswith(b"HTTP/1.1 408 ")


def test_a_taken_port_is_a_usage_error(server: WebServer) -> None:
    """A second server on the same port says which flags help."""
    with pytest.raises(UsageError, match="cannot serve metrics on") as caught:
        WebServer("127.0.0.1", server.port, {}, BootClock().now).start()
    assert "--metrics-port" in caught.value.hint


def test_closing_frees_the_port(server: WebServer) -> None:
    """After close nobody listens, so that a restart can."""
    server.close()
    with pytest.raises(ConnectionRefusedError):
        connected(server)
