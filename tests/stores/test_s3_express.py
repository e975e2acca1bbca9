"""The short way of bodies on S3: the same requests as the SDK's, its way where it knows more."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing

import pytest

from ckptsyncd.checksum import crc64nvme
from ckptsyncd.core.facts import IfAbsent, Piece
from ckptsyncd.errors import Again, Gone, Lost
from ckptsyncd.stores.lines import Place
from ckptsyncd.stores.memory import BytesBody
from ckptsyncd.stores.s3.express import route_of
from ckptsyncd.stores.s3.options import S3Options
from ckptsyncd.stores.s3.store import S3Store
from tests import servers
from tests.proxy import Proxy

pytestmark = pytest.mark.server

MIB = 1024 * 1024
SIGNED = "AWS4-HMAC-SHA256 Credential=ID/20261201/eu-west-3/s3/aws4_request, SignedHeaders=host"


@pytest.fixture
def store(s3_server: servers.S3Server, proxy: Proxy) -> Iterator[S3Store]:
    """Return a store behind the proxy whose bodies have found the short way."""
    options = S3Options(endpoint_url=proxy.endpoint, region="us-east-1")
    with closing(S3Store(s3_server.bucket, f"short-{os.urandom(4).hex()}", options)) as one:
        one.put_small("first", b"shows the way", None)
        assert one._wire.way == "short"
        yield one


def agents(proxy: Proxy, key: str) -> list[str]:
    """Return who sent the bodies of a key: ``short`` or ``sdk``."""
    sent = proxy.sent("PUT", key)
    return ["sdk" if "user-agent: botocore" in one.headers else "short" for one in sent]


def test_small_and_large_bodies_arrive(store: S3Store, proxy: Proxy) -> None:
    """What goes the short way is what the store holds, with its conditions, nonce and checksum."""
    data = os.urandom(300_000)
    store.put_whole("a key/with ü+%.bin", BytesBody(data), "n0nce", create_only=True)
    assert b"".join(store.read_range("a key/with ü+%.bin", 0, len(data))) == data
    seen = store.stat("a key/with ü+%.bin")
    assert (seen.nonce, seen.crc64nvme, seen.checked) == ("n0nce", crc64nvme(data), "crc64nvme")
    assert agents(proxy, "/a%20key/") == ["short"]
    with pytest.raises(Lost):
        store.put_whole("a key/with ü+%.bin", BytesBody(b"other"), "other", create_only=True)


def test_an_answer_that_is_no_success_is_the_sdks(store: S3Store, proxy: Proxy) -> None:
    """A server that throttles is heard at once, once, and then spoken to by the SDK."""
    busy = b"HTTP/1.1 503 Slow\r\nRetry-After: 7\r\nContent-Length: 42\r\n\r\n"
    body = b"<Error><Code>SlowDown</Code></Error>" + b" " * 6
    proxy.rule("answer", "PUT", "busy", answer=busy + body)
    with pytest.raises(Again, match="SlowDown") as caught:
        store.put_small("busy", b"data", None)
    assert caught.value.wait_seconds == 7.0
    assert not caught.value.ambiguous
    store.put_small("busy", b"data", None)
    assert agents(proxy, "busy") == ["sdk"]


def test_a_lost_answer_is_ambiguous(store: S3Store, proxy: Proxy) -> None:
    """Where the connection ends instead of an answer, the object may be there: it is said so."""
    proxy.rule("swallow", "PUT", "swallowed")
    with pytest.raises(Again) as caught:
        store.put_small("swallowed", b"data", IfAbsent())
    assert caught.value.ambiguous
    assert store.get_small("swallowed", 100)[0] == b"data"


def test_a_closed_connection_is_no_failure(store: S3Store, proxy: Proxy) -> None:
    """A connection that the server closed while it was idle is replaced before it is used."""
    idle = store._wire._express._lines
    assert idle is not None
    store.put_small("one", b"data", None)
    (line,) = idle._idle
    line._sock.shutdown(2)
    store.put_small("two", b"data", None)
    assert agents(proxy, "two") == ["short"]


def test_flipped_bits_are_found_where_the_whole_is_checked(store: S3Store, proxy: Proxy) -> None:
    """A piece that is damaged on its way, undeclared, never becomes an object; then each is told.

    The server refuses the whole, the upload is dropped, and the pieces of the next one carry their
    own checksums: the same damage is refused at once there.
    """
    data = os.urandom(11 * MIB)
    pieces = [Piece(0, 0, 6 * MIB), Piece(1, 6 * MIB, 5 * MIB)]
    bodies = [BytesBody(data[: 6 * MIB]), BytesBody(data[6 * MIB :])]
    begun = store.begin("flipped", len(data), 6 * MIB, "n")
    proxy.rule("flip", "PUT", "flipped.*partNumber=2")
    receipts = [store.put_piece(begun, *pair) for pair in zip(pieces, bodies, strict=True)]
    assert not any("x-amz-checksum" in one.headers for one in proxy.sent("PUT", "flipped"))
    with pytest.raises(Gone):
        store.finish(begun, receipts, crc64nvme(data), create_only=True)
    begun = store.begin("flipped", len(data), 6 * MIB, "m")
    proxy.rule("flip", "PUT", "flipped.*partNumber=1")
    with pytest.raises(Again):
        store.put_piece(begun, pieces[0], bodies[0])
    receipts = [store.put_piece(begun, *pair) for pair in zip(pieces, bodies, strict=True)]
    fact = store.finish(begun, receipts, crc64nvme(data), create_only=True)
    assert fact.checked == "crc64nvme"
    assert b"".join(store.read_range("flipped", 0, len(data))) == data


def test_the_route_is_that_of_the_signed_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """Host, path before the key and region come from the SDK; a proxy leaves all to the SDK."""
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    route = route_of("https://bucket.s3.eu-west-3.amazonaws.com/a/b%20c", SIGNED, "a/b c")
    assert route is not None
    host = "bucket.s3.eu-west-3.amazonaws.com"
    assert (route.place, route.base, route.region) == (
        Place(True, host, None, host),
        "",
        "eu-west-3",
    )
    route = route_of("http://[::1]:9000/bucket/k", SIGNED, "k")
    assert route is not None
    assert (route.place, route.base) == (Place(False, "::1", 9000, "[::1]:9000"), "/bucket")
    assert route_of("https://host/bucket/k", "AWS4-ECDSA-P256-SHA256 Credential=...", "k") is None
    assert route_of("https://host/bucket/k", SIGNED.replace("/s3/", "/s3express/"), "k") is None
    monkeypatch.setenv("https_proxy", "http://proxy.example.com:3128")
    assert route_of("https://host/bucket/k", SIGNED, "k") is None
    assert route_of("http://host/bucket/k", SIGNED, "k") is not None
