"""Google Cloud Storage when something goes wrong: lost answers, flipped bits, refusals, silence."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from urllib.parse import urlsplit

import pytest
import requests

from ckptsyncd.checksum import crc64nvme
from ckptsyncd.core.facts import IfAbsent, Piece
from ckptsyncd.errors import Again, Gone, Lost, Missing, Never, Refused, StoreError
from ckptsyncd.stores.gcs.options import GcsOptions
from ckptsyncd.stores.gcs.store import GcsStore
from ckptsyncd.stores.memory import BytesBody
from tests.emulators import BUCKET, GcsServer
from tests.proxy import Proxy, proxied
from tests.servers import free_ports
from tests.stores.samples import (
    NONCE,
    Behind,
    piece_bytes_of,
    pieces_of,
    read,
    some_bytes,
    stored,
    upload,
)

_numbers = count()

Opened = Callable[..., GcsStore]

CHUNK = 256 * 1024


def address(server: GcsServer) -> tuple[str, int]:
    """Return host and port of a server."""
    parts = urlsplit(server.endpoint)
    return parts.hostname or "", parts.port or 0


@pytest.fixture
def checking(gcp_emulator_server: GcsServer) -> Iterator[Proxy]:
    """Stand in front of the emulator that compares checksums and resumes sessions."""
    with proxied(*address(gcp_emulator_server)) as proxy:
        yield proxy


@pytest.fixture
def documented(google_front: GcsServer) -> Iterator[Proxy]:
    """Stand in front of what Google documents: parallel parts, moves, conditions."""
    with proxied(*address(google_front)) as proxy:
        yield proxy


@pytest.fixture
def trusting(fake_gcs_server: GcsServer) -> Iterator[Proxy]:
    """Stand in front of the emulator that compares no checksum."""
    with proxied(*address(fake_gcs_server)) as proxy:
        yield proxy


@pytest.fixture
def opened() -> Iterator[Opened]:
    """Open stores behind a proxy, below a prefix of their own, and close them."""
    with ExitStack() as stack:

        def open_one(proxy: Proxy, prefix: str = "", **options: float | str) -> GcsStore:
            made = GcsOptions(proxy.endpoint, **options)  # type: ignore[arg-type]
            store = GcsStore(BUCKET, prefix or f"faults {next(_numbers)}", made)
            stack.callback(store.close)
            return store

        yield open_one


def behind(store: GcsStore, server: GcsServer) -> Behind:
    """Look at the store's objects with a plain client."""
    return lambda: server.objects(store._root)


def answer(status: int, reason: str = "", message: str = "told so", extra: str = "") -> bytes:
    """Return an error as the JSON API words it, and the end of the connection.

    (One idle connection is enough to keep gcp-storage-emulator from answering anybody else.)
    """
    error = {"code": status, "message": message, "errors": [{"reason": reason}]}
    body = json.dumps({"error": error})
    head = f"HTTP/1.1 {status} Something\r\nConnection: close\r\n{extra}"
    return f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode()


# What a user can ask for ---------------------------------------------------------------------


def test_a_key_a_class_and_a_payer_are_asked_for(
    opened: Opened, checking: Proxy, gcp_emulator_server: GcsServer
) -> None:
    """The customer's key is named with every write, the class with data, the payer always."""
    store = opened(
        checking, kms_key_name="projects/p/k", storage_class="NEARLINE", user_project="payer"
    )
    store.put_whole("small", BytesBody(b"x"), NONCE, create_only=True)
    stored(store, "large", b"xyz")
    store.put_small("record", b"x", None)
    assert all(
        "kmskeyname=projects" in r.target.lower() for r in checking.sent("POST", "uploadType")
    )
    assert len(checking.sent("POST", "destinationKmsKeyName=projects")) >= 1
    assert all("x-goog-user-project: payer" in r.headers for r in checking.requests)
    url = f"{gcp_emulator_server.endpoint}/storage/v1/b/{BUCKET}/o"
    rows = requests.get(url, params={"prefix": store._root}, timeout=10).json()["items"]
    classes = {row["name"].removeprefix(store._root): row["storageClass"] for row in rows}
    assert classes == {"small": "NEARLINE", "large": "NEARLINE", "record": "STANDARD"}


def test_a_key_and_a_class_are_asked_for_with_parts(opened: Opened, documented: Proxy) -> None:
    """The XML API is told both in headers."""
    store = opened(documented, kms_key_name="projects/p/k", storage_class="NEARLINE")
    stored(store, "large", b"xyz")
    (begun,) = documented.sent("POST", "large.*uploads")
    assert "x-goog-encryption-kms-key-name: projects/p/k" in begun.headers
    assert "x-goog-storage-class: nearline" in begun.headers


# Lost answers and restarts --------------------------------------------------------------------


def test_a_restarted_daemon_sends_only_what_the_session_lacks(
    opened: Opened, checking: Proxy, gcp_emulator_server: GcsServer
) -> None:
    """Pieces that were stored before the restart are not sent again: bytes counted on the wire."""
    data = some_bytes(4 * CHUNK + 11)
    first = opened(checking)
    begun = first.begin("big", len(data), CHUNK, NONCE)
    pieces = pieces_of(data, CHUNK)
    receipts = [first.put_piece(begun, piece, BytesBody(part)) for piece, part in pieces[:3]]
    before = checking.data_bytes("upload_id")
    assert before == 3 * CHUNK

    again = opened(checking, first._root)
    receipts[2] = again.put_piece(begun, pieces[2][0], BytesBody(pieces[2][1]))
    assert checking.data_bytes("upload_id") == before
    receipts += [again.put_piece(begun, piece, BytesBody(part)) for piece, part in pieces[3:]]
    assert checking.data_bytes("upload_id") == len(data)
    again.finish(begun, receipts, crc64nvme(data), create_only=True)
    assert behind(again, gcp_emulator_server)() == {"big": data}


def test_a_piece_whose_answer_is_lost_is_not_sent_twice(opened: Opened, checking: Proxy) -> None:
    """After a lost answer the session is asked how far it is, and goes on from there."""
    data = some_bytes(2 * CHUNK)
    store = opened(checking)
    begun = store.begin("big", len(data), CHUNK, NONCE)
    (first, left), (second, right) = pieces_of(data, CHUNK)
    checking.rule("swallow", "PUT", "upload_id")
    with pytest.raises(Again) as lost:
        store.put_piece(begun, first, BytesBody(left))
    assert lost.value.ambiguous
    receipts = [
        store.put_piece(begun, first, BytesBody(left)),
        store.put_piece(begun, second, BytesBody(right)),
    ]
    assert checking.data_bytes("upload_id") == len(data)
    store.finish(begun, receipts, crc64nvme(data), create_only=True)
    assert read(store, "big", len(data)) == data


def test_the_sessions_address_stays_secret(opened: Opened, checking: Proxy) -> None:
    """Neither an error nor a description nor a name in the store shows what a session's key is."""
    store = opened(checking)
    begun = store.begin("big", 2 * CHUNK, CHUNK, NONCE)
    secret = begun.token.partition("upload_id=")[2]
    assert secret
    checking.rule("swallow", "PUT", "upload_id", times=2)
    for _ in range(2):
        with pytest.raises(Again) as lost:
            store.put_piece(begun, Piece(0, 0, CHUNK), BytesBody(some_bytes(CHUNK)))
        assert secret not in str(lost.value)
    assert secret not in store.describe()


def test_a_session_that_is_behind_its_ledger_is_gone(opened: Opened, checking: Proxy) -> None:
    """A session that has less than the pieces before this one is begun anew."""
    store = opened(checking)
    begun = store.begin("big", 3 * CHUNK, CHUNK, NONCE)
    again = opened(checking, store._root)
    with pytest.raises(Gone):
        again.put_piece(begun, Piece(1, CHUNK, CHUNK), BytesBody(some_bytes(CHUNK)))


@pytest.mark.parametrize("step", ["uploadId", "PATCH", "moveTo"])
def test_a_finish_whose_answer_is_lost_is_resolved(
    opened: Opened, documented: Proxy, step: str
) -> None:
    """Wherever the answer is lost, a look or a second finish ends with the object, labelled."""
    store = opened(documented)
    data = some_bytes(3000)
    begun = store.begin("lost", len(data), piece_bytes_of(store.limits), NONCE)
    receipts = upload(store, begun, data)
    documented.rule(
        "swallow", "PATCH" if step == "PATCH" else "POST", "" if step == "PATCH" else step
    )
    with pytest.raises(Again) as lost:
        store.finish(begun, receipts, crc64nvme(data), create_only=True)
    assert lost.value.ambiguous
    try:
        seen = store.stat("lost")
    except Missing:
        seen = store.finish(begun, receipts, crc64nvme(data), create_only=True)
    assert (seen.size, seen.crc64nvme, seen.nonce) == (len(data), crc64nvme(data), NONCE)
    assert store.stat("lost").checked == "crc32c"
    assert list(store.uploads("")) == []


def test_a_put_whose_answer_is_lost_is_told_by_reading(opened: Opened, trusting: Proxy) -> None:
    """A create-only record whose answer is lost is there, and the second try is Lost."""
    store = opened(trusting)
    assert store.limits.compare_and_set
    trusting.rule("swallow", "POST", "uploadType=multipart")
    with pytest.raises(Again) as lost:
        store.put_small("record", b"mine", IfAbsent())
    assert lost.value.ambiguous
    with pytest.raises(Lost):
        store.put_small("record", b"mine", IfAbsent())
    assert store.get_small("record", 10)[0] == b"mine"


# Damage ---------------------------------------------------------------------------------------


def test_a_bit_flipped_in_a_small_file_is_refused_by_the_server(
    opened: Opened, checking: Proxy, gcp_emulator_server: GcsServer
) -> None:
    """A server that compares answers 400, which is Again, and keeps nothing."""
    store = opened(checking)
    assert store.limits.checksum == "crc32c"
    checking.rule("flip", "POST", "uploadType=multipart")
    with pytest.raises(Again, match="CRC32C"):
        store.put_whole("small", BytesBody(bytes(4000)), NONCE, create_only=True)
    assert behind(store, gcp_emulator_server)() == {}


def test_a_bit_flipped_on_a_server_that_compares_nothing_is_found_by_us(
    opened: Opened, trusting: Proxy, fake_gcs_server: GcsServer
) -> None:
    """Where the server takes damaged bytes, its own CRC32C betrays them, and they are removed."""
    store = opened(trusting)
    assert store.limits.checksum == "crc32c"
    trusting.rule("flip", "POST", "uploadType=multipart")
    with pytest.raises(Again):
        store.put_whole("small", BytesBody(bytes(4000)), NONCE, create_only=True)
    assert behind(store, fake_gcs_server)() == {}


def test_a_bit_flipped_in_a_session_never_becomes_visible(
    opened: Opened, checking: Proxy, gcp_emulator_server: GcsServer
) -> None:
    """The object that grew is compared before it gets its key; what differs is dropped."""
    store = opened(checking)
    data = some_bytes(2 * CHUNK)
    begun = store.begin("big", len(data), CHUNK, NONCE)
    checking.rule("flip", "PUT", "upload_id")
    receipts = upload(store, begun, data)
    with pytest.raises(Gone):
        store.finish(begun, receipts, crc64nvme(data), create_only=True)
    assert behind(store, gcp_emulator_server)() == {}


def test_a_bit_flipped_in_a_part_is_seen_at_once(opened: Opened, documented: Proxy) -> None:
    """The server's CRC32C of a part differs from ours: the part is sent again, and all is well."""
    store = opened(documented)
    data = some_bytes(3000)
    begun = store.begin("part", len(data), piece_bytes_of(store.limits), NONCE)
    documented.rule("flip", "PUT", "partNumber")
    with pytest.raises(Again, match="damaged"):
        upload(store, begun, data)
    store.finish(begun, upload(store, begun, data), crc64nvme(data), create_only=True)
    assert read(store, "part", len(data)) == data


def test_an_object_that_may_not_be_labelled_is_read_back(opened: Opened, documented: Proxy) -> None:
    """A role that may not change metadata costs a reading at stat, not the upload."""
    store = opened(documented)
    documented.rule("answer", "PATCH", "", answer=answer(403, "forbidden"))
    data = some_bytes(3000)
    put = stored(store, "unlabelled", data)
    assert (put.crc64nvme, put.checked) == (crc64nvme(data), "crc32c")
    seen = store.stat("unlabelled")
    assert (seen.crc64nvme, seen.nonce, seen.checked) == (crc64nvme(data), NONCE, "read back")
    assert "may not label" in store.describe()


# Answers and silence --------------------------------------------------------------------------

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


@pytest.mark.parametrize(("given", "expected"), TABLE, ids=[f"{i}" for i in range(len(TABLE))])
def test_answers_to_a_write_are_classified(
    opened: Opened,
    checking: Proxy,
    given: bytes,
    expected: tuple[type[StoreError], float | None, bool],
) -> None:
    """Every answer is one of the six kinds, with its pause, and says whether it may have acted."""
    store = opened(checking)
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
    opened: Opened, checking: Proxy, given: bytes, kind: type[StoreError]
) -> None:
    """A 404 of a reading is the object's, and no reading can have changed anything."""
    store = opened(checking)
    checking.rule("answer", "GET", "", answer=given)
    with pytest.raises(StoreError) as raised:
        store.stat("record")
    assert type(raised.value) is kind
    assert not raised.value.ambiguous


@pytest.mark.parametrize(("status", "kind"), [(404, Gone), (410, Gone), (499, Gone), (503, Again)])
def test_answers_about_an_upload_are_about_the_upload(
    opened: Opened, checking: Proxy, status: int, kind: type[StoreError]
) -> None:
    """A session that the store does not know is Gone, however it says so."""
    store = opened(checking)
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


def test_silence_ends_with_the_time_out(opened: Opened, checking: Proxy) -> None:
    """A server that takes the request and says nothing may have acted."""
    store = opened(checking, read_timeout_seconds=0.3)
    checking.rule("hold", "POST", "uploadType=multipart")
    with pytest.raises(Again) as raised:
        store.put_small("record", b"x", None)
    assert raised.value.ambiguous


def test_an_answer_that_breaks_off_is_no_answer(opened: Opened, checking: Proxy) -> None:
    """A body that ends early is Again, never short data."""
    store = opened(checking, read_timeout_seconds=0.3)
    half = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\nx-goog-generation: 1\r\n\r\nhalf of it"
    checking.rule("answer", "GET", "alt=media", times=2, answer=half)
    with pytest.raises(Again):
        store.get_small("record", 1000)
    with pytest.raises(Again):
        list(store.read_range("record", 0, 100))


def test_what_failed_while_trying_out_is_tried_again(opened: Opened, checking: Proxy) -> None:
    """A probe that meets a bad moment raises it, and the next reading finds everything out."""
    store = opened(checking)
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
    opened: Opened, checking: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An http endpoint gets no token: no credentials are even looked for."""
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/does/not/exist")
    store = opened(checking)
    store.put_small("record", b"x", None)
    assert store.get_small("record", 10)[0] == b"x"


def test_a_taken_key_is_lost_even_where_conditions_are_ignored(
    opened: Opened, checking: Proxy
) -> None:
    """Where the server ignores conditions we look first: no race is won, and no fool either."""
    store = opened(checking)
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
