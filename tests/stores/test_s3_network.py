"""S3 over a bad network: what real servers, sockets and certificates raise, and what it means."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from secrets import token_hex

import pytest

from ckptsyncd.checksum import crc64nvme
from ckptsyncd.core.facts import IfAbsent
from ckptsyncd.errors import Again, Gone, Lost, Never, Refused
from ckptsyncd.stores.memory import BytesBody
from ckptsyncd.stores.s3.options import S3Options
from ckptsyncd.stores.s3.store import S3Store
from tests import servers
from tests.proxy import Proxy
from tests.servers import free_ports
from tests.stores.samples import NONCE, piece_bytes_of, read, some_bytes, upload

pytestmark = pytest.mark.server

Opened = Callable[..., S3Store]


@pytest.fixture
def opened(s3_server: servers.S3Server) -> Iterator[Opened]:
    """Open stores at an address, with time-outs as short as a test likes, and close them."""
    with ExitStack() as stack:

        def open_one(endpoint: str, bucket: str = "") -> S3Store:
            options = S3Options(
                endpoint_url=endpoint, connect_timeout_seconds=1.0, read_timeout_seconds=1.0
            )
            store = S3Store(bucket or s3_server.bucket, f"net-{token_hex(4)}", options)
            return stack.enter_context(closing(store))

        yield open_one


@pytest.mark.parametrize(
    "endpoint", ["http://127.0.0.1:{port}", "http://nowhere.invalid", "https://nowhere.invalid"]
)
def test_where_nobody_answers_nothing_can_have_happened(opened: Opened, endpoint: str) -> None:
    """Refused, or a name that does not resolve: Again, not ambiguous, and what to check."""
    store = opened(endpoint.format(port=free_ports(1)[0]))
    with pytest.raises(Again) as raised:
        store.put_small("record", b"x", None)
    assert not raised.value.ambiguous
    assert "network" in raised.value.hint


def test_a_failed_handshake_names_the_certificate(
    opened: Opened, s3_server: servers.S3Server
) -> None:
    """TLS to what speaks none: Again, with a hint at the certificate."""
    store = opened(s3_server.endpoint.replace("http:", "https:"))
    with pytest.raises(Again) as raised:
        store.stat("record")
    assert "certificate" in raised.value.hint


@pytest.mark.parametrize("what", ["hold", "refuse", "swallow"])
def test_a_write_without_an_answer_may_have_acted(opened: Opened, proxy: Proxy, what: str) -> None:
    """Silence, a reset before or after the server acted: Again and ambiguous; reading tells."""
    store = opened(proxy.endpoint)
    assert store.limits
    rule = proxy.rule(what, "PUT", "/record")
    with pytest.raises(Again) as raised:
        store.put_small("record", b"x", IfAbsent())
    rule.release.set()
    assert raised.value.ambiguous
    if what == "swallow":
        with pytest.raises(Lost):
            store.put_small("record", b"x", IfAbsent())
    else:
        store.put_small("record", b"x", IfAbsent())
    assert store.get_small("record", 9)[0] == b"x"


def test_a_finish_whose_answer_is_lost_is_resolved_by_looking(opened: Opened, proxy: Proxy) -> None:
    """The object is there, whole and ours; finishing again succeeds or is Gone or Lost."""
    store = opened(proxy.endpoint)
    data = some_bytes(piece_bytes_of(store.limits) + 100)
    begun = store.begin("large", len(data), piece_bytes_of(store.limits), NONCE)
    receipts = upload(store, begun, data)
    proxy.rule("swallow", "POST", r"/large\?uploadId")
    with pytest.raises(Again) as raised:
        store.finish(begun, receipts, crc64nvme(data), create_only=True)
    assert raised.value.ambiguous
    seen = store.stat("large")
    assert (seen.size, seen.crc64nvme, seen.nonce) == (len(data), crc64nvme(data), NONCE)
    with suppress(Gone, Lost):
        store.finish(begun, receipts, crc64nvme(data), create_only=True)
    assert read(store, "large", len(data)) == data


def test_half_a_head_is_no_answer(opened: Opened, proxy: Proxy) -> None:
    """An answer whose head breaks off is Again: without the rest ours looks like another's."""
    store = opened(proxy.endpoint)
    store.put_whole("file", BytesBody(b"x"), NONCE, create_only=True)
    proxy.rule("half", "HEAD", "/file")
    with pytest.raises(Again):
        store.stat("file")
    assert store.stat("file").nonce == NONCE


def test_half_a_body_is_no_data(opened: Opened, proxy: Proxy) -> None:
    """An answer that breaks off in its body is Again, never short data."""
    store = opened(proxy.endpoint)
    store.put_whole("file", BytesBody(some_bytes(5000)), NONCE, create_only=True)
    head = b"HTTP/1.1 206 Partial Content\r\nContent-Length: 5000\r\nETag: x\r\n\r\n"
    proxy.rule("answer", "GET", "/file", answer=head + b"half of it")
    with pytest.raises(Again):
        list(store.read_range("file", 0, 5000))
    assert read(store, "file", 5000) == some_bytes(5000)


def test_what_the_server_itself_refuses(
    opened: Opened, s3_server: servers.S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bucket that is missing is Never, a key that it does not know and a wrong one Refused."""
    with pytest.raises((Never, Refused)) as raised:
        opened(s3_server.endpoint, "no-such-bucket").get_small("x", 9)
    assert raised.value.hint
    for name, value in (("AWS_ACCESS_KEY_ID", "nobody"), ("AWS_SECRET_ACCESS_KEY", "wrong")):
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            with pytest.raises(Refused) as refused:
                opened(s3_server.endpoint).put_small("x", b"1", None)
            assert "wrong" not in str(refused.value)
