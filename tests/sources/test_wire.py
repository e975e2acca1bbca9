"""One exchange: everything that can go wrong ends in words, in time, and within 64 KiB."""

from __future__ import annotations

import socket
from contextlib import closing

import pytest

from ckptsyncd.errors import UsageError
from ckptsyncd.sources.pretend.server import PretendedMetadata
from ckptsyncd.sources.wire import MOST_BYTES, Answer, Silence, Wire
from tests.sources.bench import SILENCE_SECONDS, Bench

PATH = "/latest/meta-data/instance-id"
NUMBER = b"i-0123456789abcdef0"


def good(found: Answer | Silence) -> bytes:
    """Return the body of an answer that came."""
    assert isinstance(found, Answer), found
    assert found.status == 200
    return found.body


def bad(found: Answer | Silence) -> Silence:
    """Return the silence that came instead of an answer."""
    assert isinstance(found, Silence), found
    return found


@pytest.mark.parametrize("kind", ["chunked", "close", "gzip", "type", "bom"])
def test_odd_answers_are_read_all_the_same(bench: Bench, kind: str) -> None:
    """Chunks, compression, a closed connection or a wrong type change nothing about the body."""
    bench.cloud.faults.inject(kind, argument="image/png" if kind == "type" else "")
    body = good(bench.wire().exchange("GET", PATH, {}))
    assert body.removeprefix(b"\xef\xbb\xbf") == NUMBER


def test_the_connection_is_kept(bench: Bench) -> None:
    """Polls after the first use the connection that is open already."""
    wire = bench.wire()
    for _ in range(5):
        good(wire.exchange("GET", PATH, {}))
    assert bench.cloud.connections == 1


def test_a_connection_that_was_closed_between_polls_is_replaced(bench: Bench) -> None:
    """A service that cuts idle connections costs at most one poll."""
    wire = bench.wire()
    good(wire.exchange("GET", PATH, {}))
    bench.cloud.cut()
    found = wire.exchange("GET", PATH, {})
    if isinstance(found, Silence):
        assert found.kind == "broken"
        found = wire.exchange("GET", PATH, {})
    assert good(found) == NUMBER


def test_nobody_answers(bench: Bench) -> None:
    """A service that takes the request and says nothing is a read time-out."""
    bench.cloud.faults.inject("silence")
    silence = bad(bench.wire(read_seconds=SILENCE_SECONDS).exchange("GET", PATH, {}))
    assert silence.kind == "read time-out"


def test_nobody_is_there(bench: Bench) -> None:
    """A refused connection is told from an answer that does not come, and ends with the outage."""
    wire = bench.wire()
    bench.cloud.refuse()
    assert bad(wire.exchange("GET", PATH, {})).kind == "refused"
    bench.cloud.listen()
    assert good(wire.exchange("GET", PATH, {})) == NUMBER


def test_connections_are_not_taken() -> None:
    """A service whose queue of connections is full is a connect time-out, after our time."""
    with socket.socket() as listener, socket.socket() as first, socket.socket() as second:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for waiting in (first, second):
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with closing(Wire(url, connect_seconds=0.2, read_seconds=0.2)) as wire:
            assert bad(wire.exchange("GET", PATH, {})).kind == "connect time-out"


def test_an_answer_breaks_off(bench: Bench) -> None:
    """A connection that is reset in the middle of a body gives no half body."""
    bench.cloud.faults.inject("reset")
    assert bad(bench.wire().exchange("GET", PATH, {})).kind == "broken"


def test_an_answer_drips(bench: Bench) -> None:
    """A body that comes byte by byte is given up when the time for the whole of it is over."""
    bench.cloud.faults.inject("drip")
    ticks = iter((0.0, 100.0))
    wire = Wire(bench.cloud.url, read_seconds=10.0, monotonic=lambda: next(ticks))
    with closing(wire):
        silence = bad(wire.exchange("GET", PATH, {}))
    assert silence.text.endswith("sends its answer too slowly")


def test_an_answer_is_endless(bench: Bench) -> None:
    """No more than 64 KiB are read, and the connection does not serve again."""
    bench.cloud.faults.inject("big", count=1)
    wire = bench.wire()
    silence = bad(wire.exchange("GET", PATH, {}))
    assert str(MOST_BYTES) in silence.text
    assert good(wire.exchange("GET", PATH, {})) == NUMBER
    assert bench.cloud.connections == 2


def test_redirects_are_not_followed(bench: Bench) -> None:
    """A redirect is an answer like any other: nobody is asked in its place."""
    bench.cloud.faults.inject("redirect", argument=f"{bench.cloud.url}/elsewhere")
    found = bench.wire().exchange("GET", PATH, {})
    assert isinstance(found, Answer)
    assert found.status == 302
    assert bench.cloud.aws.requests == []


def test_proxies_of_the_environment_are_not_used(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scenario 42: variables that name a proxy do not lead metadata requests there."""
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert good(bench.wire().exchange("GET", PATH, {})) == NUMBER


def test_the_clock_of_the_other_side_is_read(bench: Bench) -> None:
    """The Date header is the server's clock."""
    found = bench.wire().exchange("GET", PATH, {})
    assert isinstance(found, Answer)
    assert found.server_wall == bench.scene.now()


@pytest.mark.parametrize(
    ("asked", "waited"), [("", None), ("0", 1.0), ("3", 3.0), ("3600", 5.0), ("soon", None)]
)
def test_a_wait_that_was_asked_for_is_bounded(
    bench: Bench, asked: str, waited: float | None
) -> None:
    """Retry-After is honoured between one and five seconds."""
    bench.cloud.faults.inject("throttled", argument=asked)
    found = bench.wire().exchange("GET", PATH, {})
    assert isinstance(found, Answer)
    assert found.wait_seconds == waited


def test_ipv6(bench: Bench) -> None:
    """An address in brackets reaches a listener on IPv6."""
    with closing(PretendedMetadata(host="::1")) as cloud:
        assert good(bench.wire(cloud.url).exchange("GET", PATH, {})) == NUMBER


@pytest.mark.parametrize("url", ["http://host:port", "ftp://host", "http://[::1", "http://h:70000"])
def test_a_url_that_is_none(url: str) -> None:
    """An address that cannot be used is the user's error, with a hint."""
    with pytest.raises(UsageError, match="no URL of a metadata service"):
        Wire(url)
