"""Google Cloud Storage: what is asked for, lost answers, restarts, flipped bits."""

from __future__ import annotations

import pytest
import requests

from ckptsyncd.checksum import crc64nvme
from ckptsyncd.core.facts import IfAbsent, Piece
from ckptsyncd.errors import Again, Gone, Lost, Missing
from ckptsyncd.stores.memory import BytesBody
from tests.emulators import BUCKET, GcsServer
from tests.proxy import Proxy, proxied
from tests.stores.gcs_bench import CHUNK, Opened, address, answer, behind
from tests.stores.samples import (
    NONCE,
    piece_bytes_of,
    pieces_of,
    read,
    some_bytes,
    stored,
    upload,
)

# What a user can ask for -----------------------------------------------------------------------


def test_a_key_a_class_and_a_payer_are_asked_for(
    gcs_opened: Opened, checking: Proxy, gcp_emulator_server: GcsServer
) -> None:
    """The customer's key is named with every write, the class with data, the payer always."""
    store = gcs_opened(
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


def test_a_key_and_a_class_are_asked_for_with_parts(gcs_opened: Opened, documented: Proxy) -> None:
    """The XML API is told both in headers."""
    store = gcs_opened(documented, kms_key_name="projects/p/k", storage_class="NEARLINE")
    stored(store, "large", b"xyz")
    (begun,) = documented.sent("POST", "large.*uploads")
    assert "x-goog-encryption-kms-key-name: projects/p/k" in begun.headers
    assert "x-goog-storage-class: nearline" in begun.headers


# Lost answers and restarts ---------------------------------------------------------------------


def test_a_restarted_daemon_sends_only_what_the_session_lacks(
    gcs_opened: Opened, checking: Proxy, gcp_emulator_server: GcsServer
) -> None:
    """Pieces that were stored before the restart are not sent again: bytes counted on the wire."""
    data = some_bytes(4 * CHUNK + 11)
    first = gcs_opened(checking)
    begun = first.begin("big", len(data), CHUNK, NONCE)
    pieces = pieces_of(data, CHUNK)
    receipts = [first.put_piece(begun, piece, BytesBody(part)) for piece, part in pieces[:3]]
    before = checking.data_bytes("upload_id")
    assert before == 3 * CHUNK

    again = gcs_opened(checking, first._root)
    receipts[2] = again.put_piece(begun, pieces[2][0], BytesBody(pieces[2][1]))
    assert checking.data_bytes("upload_id") == before
    receipts += [again.put_piece(begun, piece, BytesBody(part)) for piece, part in pieces[3:]]
    assert checking.data_bytes("upload_id") == len(data)
    again.finish(begun, receipts, crc64nvme(data), create_only=True)
    assert behind(again, gcp_emulator_server)() == {"big": data}


def test_a_piece_whose_answer_is_lost_is_not_sent_twice(
    gcs_opened: Opened, checking: Proxy
) -> None:
    """After a lost answer the session is asked how far it is, and goes on from there."""
    data = some_bytes(2 * CHUNK)
    store = gcs_opened(checking)
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


def test_the_sessions_address_stays_secret(gcs_opened: Opened, checking: Proxy) -> None:
    """Neither an error nor a description nor a name in the store shows what a session's key is."""
    store = gcs_opened(checking)
    begun = store.begin("big", 2 * CHUNK, CHUNK, NONCE)
    secret = begun.token.partition("upload_id=")[2]
    assert secret
    checking.rule("swallow", "PUT", "upload_id", times=2)
    for _ in range(2):
        with pytest.raises(Again) as lost:
            store.put_piece(begun, Piece(0, 0, CHUNK), BytesBody(some_bytes(CHUNK)))
        assert secret not in str(lost.value)
    assert secret not in store.describe()


def test_a_session_that_is_behind_its_ledger_is_gone(gcs_opened: Opened, checking: Proxy) -> None:
    """A session that has less than the pieces before this one is begun anew."""
    store = gcs_opened(checking)
    begun = store.begin("big", 3 * CHUNK, CHUNK, NONCE)
    again = gcs_opened(checking, store._root)
    with pytest.raises(Gone):
        again.put_piece(begun, Piece(1, CHUNK, CHUNK), BytesBody(some_bytes(CHUNK)))


@pytest.mark.parametrize("step", ["uploadId", "PATCH", "moveTo"])
def test_a_finish_whose_answer_is_lost_is_resolved(
    gcs_opened: Opened, documented: Proxy, step: str
) -> None:
    """Wherever the answer is lost, a look or a second finish ends with the object, labelled."""
    store = gcs_opened(documented)
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


def test_a_session_that_is_gone_leaves_nothing(
    gcs_opened: Opened, fake_gcs_server: GcsServer
) -> None:
    """A server that ends a session wrongly, and keeps what it had, is cleaned up after."""
    with proxied(*address(fake_gcs_server.endpoint)) as proxy:
        first, second = gcs_opened(proxy, "gone"), gcs_opened(proxy, "gone")
        data = some_bytes(2 * CHUNK)
        begun = first.begin("large", len(data), CHUNK, NONCE)
        first.put_piece(begun, Piece(0, 0, CHUNK), BytesBody(data[:CHUNK]))
        with pytest.raises(Gone):  # who is new has to ask how far it is, which this one minds
            second.put_piece(begun, Piece(1, CHUNK, CHUNK), BytesBody(data[CHUNK:]))
        assert fake_gcs_server.objects("gone/") == {}


def test_a_copy_whose_answer_is_lost_leaves_one_object(
    gcs_opened: Opened, checking: Proxy, gcp_emulator_server: GcsServer
) -> None:
    """Where a copy stands in for the move, the next try finds it, and removes what was copied."""
    store = gcs_opened(checking)
    begun = store.begin("copied", 3, CHUNK, NONCE)
    receipt = store.put_piece(begun, Piece(0, 0, 3), BytesBody(b"xyz"))
    checking.rule("swallow", "POST", "rewriteTo/.*copied")
    with pytest.raises(Again):
        store.finish(begun, [receipt], crc64nvme(b"xyz"), create_only=True)
    with pytest.raises(Lost):
        store.finish(begun, [receipt], crc64nvme(b"xyz"), create_only=True)
    assert list(behind(store, gcp_emulator_server)()) == ["copied"]


def test_a_put_whose_answer_is_lost_is_told_by_reading(gcs_opened: Opened, trusting: Proxy) -> None:
    """A create-only record whose answer is lost is there, and the second try is Lost."""
    store = gcs_opened(trusting)
    assert store.limits.compare_and_set
    trusting.rule("swallow", "POST", "uploadType=multipart")
    with pytest.raises(Again) as lost:
        store.put_small("record", b"mine", IfAbsent())
    assert lost.value.ambiguous
    with pytest.raises(Lost):
        store.put_small("record", b"mine", IfAbsent())
    assert store.get_small("record", 10)[0] == b"mine"


# Damage ----------------------------------------------------------------------------------------


def test_a_bit_flipped_in_a_small_file_is_refused_by_the_server(
    gcs_opened: Opened, checking: Proxy, gcp_emulator_server: GcsServer
) -> None:
    """A server that compares answers 400, which is Again, and keeps nothing."""
    store = gcs_opened(checking)
    assert store.limits.checksum == "crc32c"
    checking.rule("flip", "POST", "uploadType=multipart")
    with pytest.raises(Again, match="CRC32C"):
        store.put_whole("small", BytesBody(bytes(4000)), NONCE, create_only=True)
    assert behind(store, gcp_emulator_server)() == {}


def test_a_bit_flipped_on_a_server_that_compares_nothing_is_found_by_us(
    gcs_opened: Opened, trusting: Proxy, fake_gcs_server: GcsServer
) -> None:
    """Where the server takes damaged bytes, its own CRC32C betrays them, and they are removed."""
    store = gcs_opened(trusting)
    assert store.limits.checksum == "crc32c"
    trusting.rule("flip", "POST", "uploadType=multipart")
    with pytest.raises(Again):
        store.put_whole("small", BytesBody(bytes(4000)), NONCE, create_only=True)
    assert behind(store, fake_gcs_server)() == {}


def test_a_bit_flipped_in_a_session_never_becomes_visible(
    gcs_opened: Opened, checking: Proxy, gcp_emulator_server: GcsServer
) -> None:
    """The object that grew is compared before it gets its key; what differs is dropped."""
    store = gcs_opened(checking)
    data = some_bytes(2 * CHUNK)
    begun = store.begin("big", len(data), CHUNK, NONCE)
    checking.rule("flip", "PUT", "upload_id")
    receipts = upload(store, begun, data)
    with pytest.raises(Gone):
        store.finish(begun, receipts, crc64nvme(data), create_only=True)
    assert behind(store, gcp_emulator_server)() == {}


def test_a_bit_flipped_in_a_part_is_seen_at_once(gcs_opened: Opened, documented: Proxy) -> None:
    """The server's CRC32C of a part differs from ours: the part is sent again, and all is well."""
    store = gcs_opened(documented)
    data = some_bytes(3000)
    begun = store.begin("part", len(data), piece_bytes_of(store.limits), NONCE)
    documented.rule("flip", "PUT", "partNumber")
    with pytest.raises(Again, match="damaged"):
        upload(store, begun, data)
    store.finish(begun, upload(store, begun, data), crc64nvme(data), create_only=True)
    assert read(store, "part", len(data)) == data


def test_an_object_that_may_not_be_labelled_is_read_back(
    gcs_opened: Opened, documented: Proxy
) -> None:
    """A role that may not change metadata costs a reading at stat, not the upload."""
    store = gcs_opened(documented)
    documented.rule("answer", "PATCH", "", answer=answer(403, "forbidden"))
    data = some_bytes(3000)
    put = stored(store, "unlabelled", data)
    assert (put.crc64nvme, put.checked) == (crc64nvme(data), "crc32c")
    seen = store.stat("unlabelled")
    assert (seen.crc64nvme, seen.nonce, seen.checked) == (crc64nvme(data), NONCE, "read back")
    assert "may not label" in store.describe()
