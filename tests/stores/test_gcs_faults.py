"""Google Cloud Storage when it says no, or nothing."""

from __future__ import annotations

import pytest

from ckptsyncd.core.facts import IfAbsent, Piece
from ckptsyncd.errors import Again, Gone, Lost, Missing, Never, Refused, StoreError
from ckptsyncd.stores.gcs.options import GcsOptions
from ckptsyncd.stores.gcs.store import GcsStore
from ckptsyncd.stores.memory import BytesBody
from tests.emulators import BUCKET, GcsServer
from tests.proxy import Proxy
from tests.servers import free_ports
from tests.stores.gcs_bench import CHUNK, Opened, answer
from tests.stores.samples import (
    NONCE,
    let_go,
    read,
    stored,
)

TABLE: list[tuple[bytes, tuple[type[StoreError], float | None, bool]]] = [
    (answer(400, "invalid"), (Never, None, False)),
    (
        answer(400, "invalid", "Provided CRC32C does not match calculated CRC32C."),
        (Again, None, False),
    ),
    (answer(401, "authError"), (Refused, None, False)),
    (answer(403, "forbidden"), (Refused, None, False)),
    (answer(403, "rateLimitExceeded"), (Again, None, False)),
    (answer(403, "retentionPolicyNotMet"), (Refused, None, False)),
    (answer(404, "notFound", "The specified bucket does not exist."), (Never, None, False)),
    (answer(404, "notFound"), (Never, None, False)),
    (answer(408), (Again, None, True)),
    (answer(409, "conflict"), (Again, None, False)),
    (answer(412, "conditionNotMet"), (Lost, None, False)),
    (answer(429, "rateLimitExceeded", extra="Retry-After: 7\r\n"), (Again, 7.0, False)),
    (answer(500, "backendError"), (Again, None, True)),
    (answer(502), (Again, None, True)),
    (answer(503, extra="Retry-After: 30\r\n"), (Again, 30.0, True)),
]


@pytest.mark.parametrize("way", ["short", "SDK's"])
@pytest.mark.parametrize(("given", "expected"), TABLE, ids=[f"{i}" for i in range(len(TABLE))])
def test_answers_to_a_write_are_classified(
    gcs_opened: Opened,
    checking: Proxy,
    given: bytes,
    expected: tuple[type[StoreError], float | None, bool],
    way: str,
) -> None:
    """Every answer is one of the six kinds, with its pause, and says whether it may have acted."""
    store = gcs_opened(checking)
    let_go(store, way)
    checking.rule("answer", "POST", "uploadType=multipart", answer=given)
    with pytest.raises(StoreError) as raised:
        store.put_small("record", b"x", None)
    error = raised.value
    assert (type(error), error.wait_seconds, error.ambiguous) == expected


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (answer(403, "forbidden"), Refused),
        (answer(404, "notFound"), Missing),
        (answer(416), Never),
        (answer(503), Again),
    ],
)
def test_answers_to_a_reading_are_never_ambiguous(
    gcs_opened: Opened, checking: Proxy, given: bytes, kind: type[StoreError]
) -> None:
    """A 404 of a reading is the object's, and no reading can have changed anything."""
    store = gcs_opened(checking)
    checking.rule("answer", "GET", "", answer=given)
    with pytest.raises(StoreError) as raised:
        store.stat("record")
    assert type(raised.value) is kind
    assert not raised.value.ambiguous


@pytest.mark.parametrize(("status", "kind"), [(404, Gone), (410, Gone), (499, Gone), (503, Again)])
def test_answers_about_an_upload_are_about_the_upload(
    gcs_opened: Opened, checking: Proxy, status: int, kind: type[StoreError]
) -> None:
    """A session that the store does not know is Gone, however it says so."""
    store = gcs_opened(checking)
    begun = store.begin("big", CHUNK, CHUNK, NONCE)
    checking.rule("answer", "PUT", "upload_id", answer=answer(status))
    with pytest.raises(kind):
        store.put_piece(begun, Piece(0, 0, CHUNK), BytesBody(bytes(CHUNK)))


def test_a_missing_bucket_is_told_with_what_to_do(gcp_emulator_server: GcsServer) -> None:
    """A bucket that does not exist is no missing object: it is not tried again by itself."""
    store = GcsStore("nowhere", "", GcsOptions(gcp_emulator_server.endpoint))
    with pytest.raises(Never) as raised:
        store.put_small("record", b"x", None)
    assert "bucket" in raised.value.hint


def test_a_refused_connection_cannot_have_acted() -> None:
    """Nobody listens: Again, not ambiguous, and the hint is about reaching the endpoint."""
    (port,) = free_ports(1)
    store = GcsStore(BUCKET, "", GcsOptions(f"http://127.0.0.1:{port}"))
    with pytest.raises(Again) as raised:
        store.put_small("record", b"x", None)
    assert not raised.value.ambiguous
    assert "network" in raised.value.hint


def test_a_name_that_does_not_resolve_cannot_have_acted() -> None:
    """DNS failure: Again, not ambiguous."""
    store = GcsStore(BUCKET, "", GcsOptions("http://nowhere.invalid"))
    with pytest.raises(Again) as raised:
        store.put_small("record", b"x", None)
    assert not raised.value.ambiguous


def test_a_failed_handshake_names_the_certificate(gcp_emulator_server: GcsServer) -> None:
    """TLS to what speaks none: Again, with a hint at the certificate; no credentials are sent."""
    endpoint = gcp_emulator_server.endpoint.replace("http:", "https:")
    store = GcsStore(BUCKET, "", GcsOptions(endpoint, anonymous=True))
    with pytest.raises(Again) as raised:
        store.stat("record")
    assert "certificate" in raised.value.hint


def test_silence_ends_with_the_time_out(gcs_opened: Opened, checking: Proxy) -> None:
    """A server that takes the request and says nothing may have acted."""
    store = gcs_opened(checking, read_timeout_seconds=0.3)
    checking.rule("hold", "POST", "uploadType=multipart")
    with pytest.raises(Again) as raised:
        store.put_small("record", b"x", None)
    assert raised.value.ambiguous


def test_an_answer_that_breaks_off_is_no_answer(gcs_opened: Opened, checking: Proxy) -> None:
    """A body that ends early is Again, never short data."""
    store = gcs_opened(checking, read_timeout_seconds=0.3)
    half = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\nx-goog-generation: 1\r\n\r\nhalf of it"
    checking.rule("answer", "GET", "alt=media", times=2, answer=half)
    with pytest.raises(Again):
        store.get_small("record", 1000)
    with pytest.raises(Again):
        list(store.read_range("record", 0, 100))


def test_what_failed_while_trying_out_is_tried_again(gcs_opened: Opened, checking: Proxy) -> None:
    """A probe that meets a bad moment raises it, and the next reading finds everything out."""
    store = gcs_opened(checking)
    checking.rule("answer", "POST", "uploadType=multipart", answer=answer(503))
    with pytest.raises(Again):
        _ = store.limits
    assert store.limits.checksum == "crc32c"


def test_missing_credentials_are_refused_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    """Where Google finds no credentials nothing is sent, and the hint names three ways."""
    for name in ("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_PROJECT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    store = GcsStore(BUCKET, "", GcsOptions("https://127.0.0.1:1"))
    with pytest.raises(Refused) as raised:
        store.stat("record")
    assert "application default credentials" in raised.value.hint


def test_nothing_is_presented_without_tls(
    gcs_opened: Opened, checking: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An http endpoint gets no token: no credentials are even looked for."""
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/does/not/exist")
    store = gcs_opened(checking)
    store.put_small("record", b"x", None)
    assert store.get_small("record", 10)[0] == b"x"


def test_a_taken_key_is_lost_even_where_conditions_are_ignored(
    gcs_opened: Opened, checking: Proxy
) -> None:
    """Where the server ignores conditions we look first: no race is won, and no fool either."""
    store = gcs_opened(checking)
    assert not store.limits.create_only_finish
    store.put_whole("taken", BytesBody(b"first"), NONCE, create_only=True)
    version = store.put_small("record", b"1", IfAbsent())
    with pytest.raises(Lost):
        store.put_whole("taken", BytesBody(b"second"), "other", create_only=True)
    with pytest.raises(Lost):
        stored(store, "taken", b"second")
    with pytest.raises(Lost):
        store.put_small("record", b"2", IfAbsent())
    assert store.get_small("record", 10) == (b"1", version)
    assert read(store, "taken", 5) == b"first"
