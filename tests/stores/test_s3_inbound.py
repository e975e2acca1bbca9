"""The short way back on S3: the same bytes as the SDK's, its way where it knows more."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing

import pytest

from ckptsyncd.errors import Again, Missing, Never, Refused
from ckptsyncd.stores.memory import BytesBody
from ckptsyncd.stores.s3.options import S3Options
from ckptsyncd.stores.s3.store import S3Store
from tests import servers
from tests.proxy import Proxy

pytestmark = pytest.mark.server

MIB = 1024 * 1024
DATA = os.urandom(3 * MIB + 17)
KEY = "a key/with ü+%.bin"
QUOTED = "/a%20key/"


@pytest.fixture
def store(s3_server: servers.S3Server, proxy: Proxy) -> Iterator[S3Store]:
    """Return a store behind the proxy that holds an object and has read once, by the SDK."""
    options = S3Options(endpoint_url=proxy.endpoint, region="us-east-1", read_timeout_seconds=2.0)
    prefix = f"back-{os.urandom(4).hex()}"
    with closing(S3Store(s3_server.bucket, prefix, options)) as one:
        one.put_whole(KEY, BytesBody(DATA), "n0nce", create_only=True)
    with closing(S3Store(s3_server.bucket, prefix, options)) as one:
        assert read(one, 0, 5) == DATA[:5]
        assert asked(proxy)[-1] == "sdk"
        yield one


def read(store: S3Store, offset: int, length: int) -> bytes:
    """Return the bytes of a range."""
    return b"".join(store.read_range(KEY, offset, length))


def asked(proxy: Proxy) -> list[str]:
    """Return who asked for the object's bytes: ``short`` or ``sdk``."""
    sent = proxy.sent("GET", QUOTED)
    return ["sdk" if "user-agent: botocore" in one.headers else "short" for one in sent]


def test_ranges_and_records_come(store: S3Store, proxy: Proxy) -> None:
    """What comes the short way is what was stored, on a connection that is used again."""
    assert read(store, 0, len(DATA)) == DATA
    assert read(store, 1000, 2 * MIB) == DATA[1000 : 1000 + 2 * MIB]
    assert read(store, len(DATA) - 1, 1) == DATA[-1:]
    data, version = store.get_small(KEY, len(DATA))
    assert (data, version) == (DATA, store.stat(KEY).version)
    assert asked(proxy) == ["sdk", "short", "short", "short", "short"]
    known = store._wire._inbound._known
    assert known is not None
    assert len(known[1]._idle) == 1


def test_what_is_not_there_is_told(store: S3Store) -> None:
    """A missing object is Missing, a range behind the end and a record of too many bytes Never."""
    with pytest.raises(Missing):
        list(store.read_range("nowhere", 0, 1))
    with pytest.raises(Missing):
        store.get_small("nowhere", 10)
    for offset in (len(DATA), len(DATA) - 5):
        with pytest.raises(Never):
            read(store, offset, 10)
    with pytest.raises(Never, match="more than"):
        store.get_small(KEY, 100)
    assert read(store, 7, 7) == DATA[7:14]


def test_an_early_end_leaves_no_half_read_connection(store: S3Store) -> None:
    """Whoever stops in the middle gets the next answer all the same, not the rest of this one."""
    for block in store.read_range(KEY, 0, len(DATA)):
        assert DATA.startswith(block)
        break
    assert read(store, 100, 50) == DATA[100:150]


HALF = b"HTTP/1.1 206 Partial Content\r\nContent-Length: 5000\r\nETag: x\r\n\r\nhalf of it"
CHUNKED = b"HTTP/1.1 206 Partial\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nwrong\r\n0\r\n\r\n"
ENDLESS = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nwrong"


@pytest.mark.parametrize(
    "answer",
    [HALF, b"HTTP/1.1 206 Partial\r\nContent-Length: -5\r\n\r\n", b"nonsense\r\n\r\n"],
    ids=["half", "negative", "nonsense"],
)
def test_what_is_no_answer_is_again(store: S3Store, proxy: Proxy, answer: bytes) -> None:
    """An answer that breaks off, or is none, is Again and never data; the next one is right."""
    proxy.rule("answer", "GET", QUOTED, answer=answer)
    with pytest.raises(Again):
        read(store, 0, 5000)
    assert read(store, 0, 5000) == DATA[:5000]


@pytest.mark.parametrize("answer", [CHUNKED, ENDLESS], ids=["chunked", "endless"])
def test_an_answer_of_no_length_is_the_sdks(store: S3Store, proxy: Proxy, answer: bytes) -> None:
    """What does not say how long it is is asked for again by the SDK, which reads all kinds."""
    proxy.rule("answer", "GET", QUOTED, answer=answer)
    assert read(store, 0, 5000) == DATA[:5000]
    assert asked(proxy)[-1] == "sdk"


def test_a_server_that_throttles_is_heard(store: S3Store, proxy: Proxy) -> None:
    """It says how long to wait, and is spoken to by the SDK for a while."""
    busy = b"HTTP/1.1 503 Slow\r\nRetry-After: 7\r\nContent-Length: 36\r\n\r\n"
    body = b"<Error><Code>SlowDown</Code></Error>"
    proxy.rule("answer", "GET", QUOTED, answer=busy + body)
    with pytest.raises(Again, match="SlowDown") as caught:
        read(store, 0, 10)
    assert caught.value.wait_seconds == 7.0
    assert read(store, 0, 10) == DATA[:10]
    assert asked(proxy)[-1] == "sdk"


def test_refused_credentials_are_looked_for_anew(store: S3Store, proxy: Proxy) -> None:
    """A refusal is Refused, and what was found of the credentials is forgotten."""
    body = b"<Error><Code>ExpiredToken</Code></Error>"
    head = f"HTTP/1.1 400 Bad\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    proxy.rule("answer", "GET", QUOTED, answer=head + body)
    with pytest.raises(Refused):
        read(store, 0, 10)
    assert store._wire._identity._found is None
    assert read(store, 0, 10) == DATA[:10]
