"""Azure Blob when the service says no, or nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ckptsyncd.checksum import crc64nvme
from ckptsyncd.core.facts import Piece
from ckptsyncd.errors import Again, Lost, Never, Refused, StoreError
from ckptsyncd.stores.azure.options import AzureOptions
from ckptsyncd.stores.azure.store import AzureStore
from ckptsyncd.stores.memory import BytesBody
from tests.proxy import Proxy
from tests.servers import free_ports
from tests.stores.azure_bench import Opened, answer
from tests.stores.samples import NONCE, let_go

TABLE: list[tuple[bytes, tuple[type[StoreError], float | None, bool]]] = [
    (answer(400, "InvalidHeaderValue"), (Never, None, False)),
    (answer(400, "Md5Mismatch"), (Again, None, False)),
    (answer(401, "NoAuthenticationInformation"), (Refused, None, False)),
    (answer(403, "AuthenticationFailed"), (Refused, None, False)),
    (answer(403, "AuthorizationPermissionMismatch"), (Refused, None, False)),
    (answer(404, "ContainerNotFound"), (Never, None, False)),
    (answer(408), (Again, None, True)),
    (answer(409, "BlobAlreadyExists"), (Lost, None, False)),
    (answer(409, "BlobImmutableDueToPolicy"), (Refused, None, False)),
    (answer(409, "ContainerBeingDeleted"), (Again, None, False)),
    (answer(412, "ConditionNotMet"), (Lost, None, False)),
    (answer(412, "LeaseIdMissing"), (Again, None, False)),
    (answer(413, "RequestBodyTooLarge"), (Never, None, False)),
    (answer(429, extra="Retry-After: 7\r\n"), (Again, 7.0, True)),
    (answer(500, "OperationTimedOut"), (Again, None, True)),
    (answer(500, "InternalError"), (Again, None, True)),
    (answer(502), (Again, None, True)),
    (answer(503, "ServerBusy", extra="Retry-After: 30\r\n"), (Again, 30.0, True)),
]


@pytest.mark.parametrize("way", ["short", "SDK's"])
@pytest.mark.parametrize(("given", "expected"), TABLE, ids=[f"{i}" for i in range(len(TABLE))])
def test_answers_to_a_write_are_classified(
    azure_opened: Opened,
    azure_proxy: Proxy,
    given: bytes,
    expected: tuple[type[StoreError], float | None, bool],
    way: str,
) -> None:
    """Every answer is one of the six kinds, with its pause, and is not tried again by the SDK."""
    store = azure_opened()
    let_go(store, way)
    assert store.limits.checksum == "md5"
    rule = azure_proxy.rule("answer", "PUT", "record", times=9, answer=given)
    with pytest.raises(StoreError) as raised:
        store.put_small("record", b"x", None)
    error = raised.value
    assert (type(error), error.wait_seconds, error.ambiguous) == expected
    assert rule.times == 8


def test_a_missing_container_is_told_with_what_to_do(azure_opened: Opened) -> None:
    """A container that does not exist is no missing blob: it is not tried again by itself."""
    store = azure_opened(container="nowhere")
    acts: list[Callable[[], object]] = [
        lambda: store.put_small("record", b"x", None),
        lambda: store.stat("record"),
        lambda: list(store.list("")),
    ]
    for act in acts:
        with pytest.raises(Never) as raised:
            act()
        assert "container" in raised.value.hint


def test_a_connection_that_was_never_made_cannot_have_acted() -> None:
    """Nobody listens, or no such name: Again, not ambiguous, with a hint at the network."""
    (port,) = free_ports(1)
    for endpoint in (f"http://127.0.0.1:{port}/acct", "http://nowhere.invalid/acct"):
        store = AzureStore("acct", "container", "", AzureOptions(endpoint, account_key="a2V5"))
        with pytest.raises(Again) as raised:
            store.put_small("record", b"x", None)
        assert not raised.value.ambiguous
        assert "network" in raised.value.hint


def test_silence_ends_with_the_time_out(azure_opened: Opened, azure_proxy: Proxy) -> None:
    """A server that takes the request and says nothing may have acted."""
    store = azure_opened(read_timeout_seconds=0.5)
    assert store.limits.checksum == "md5"
    azure_proxy.rule("hold", "PUT", "record")
    with pytest.raises(Again) as raised:
        store.put_small("record", b"x", None)
    assert raised.value.ambiguous


def test_half_a_head_is_no_answer(azure_opened: Opened, azure_proxy: Proxy) -> None:
    """An answer whose head breaks off is Again: without the rest ours looks like another's."""
    store = azure_opened()
    store.put_whole("file", BytesBody(b"x"), NONCE, create_only=True)
    azure_proxy.rule("half", "HEAD", "/file")
    with pytest.raises(Again):
        store.stat("file")
    assert store.stat("file").nonce == NONCE


def test_an_answer_that_breaks_off_is_no_answer(azure_opened: Opened, azure_proxy: Proxy) -> None:
    """A body that ends early is Again, never short data."""
    store = azure_opened(read_timeout_seconds=0.3)
    half = (
        b"HTTP/1.1 206 Partial Content\r\nContent-Length: 100\r\nContent-Range: bytes 0-99/100\r\n"
        b'ETag: "0x1"\r\nx-ms-blob-type: BlockBlob\r\n\r\nhalf of it'
    )
    azure_proxy.rule("answer", "GET", "record", times=9, answer=half)
    with pytest.raises(Again):
        list(store.read_range("record", 0, 100))


def test_what_failed_while_trying_out_is_tried_again(
    azure_opened: Opened, azure_proxy: Proxy
) -> None:
    """A probe that meets a bad moment raises it, and the next reading finds everything out."""
    store = azure_opened()
    azure_proxy.rule("answer", "PUT", "probe", answer=answer(503, "ServerBusy"))
    with pytest.raises(Again):
        _ = store.limits
    assert store.limits.checksum == "md5"


def test_a_piece_of_nothing_is_a_block_of_nothing(azure_opened: Opened) -> None:
    """An empty file that the brain sends as one empty piece becomes an empty blob."""
    store = azure_opened()
    begun = store.begin("empty", 0, 1000, NONCE)
    with pytest.raises(StoreError):
        store.put_piece(begun, Piece(1, 0, 0), BytesBody(b""))
    receipt = store.put_piece(begun, Piece(0, 0, 0), BytesBody(b""))
    store.finish(begun, [receipt], crc64nvme(b""), create_only=True)
    assert store.stat("empty").size == 0
