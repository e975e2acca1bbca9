"""Azure Blob: what the probe decides, other writers, lost answers, restarts, flipped bits."""

from __future__ import annotations

import pytest
from azure.storage.blob import BlobBlock

from ckptsyncd.checksum import crc64nvme
from ckptsyncd.core.facts import IfAbsent
from ckptsyncd.errors import Again, Gone, Lost, Missing, Never
from ckptsyncd.stores.azure.blobs import Blobs, block_id, declared_of
from ckptsyncd.stores.memory import BytesBody
from tests.emulators import AzureServer
from tests.proxy import Proxy
from tests.stores.azure_bench import Opened, answer
from tests.stores.samples import NONCE, piece_bytes_of, pieces_of, read, some_bytes, stored, upload

# The probe and what it decides -----------------------------------------------------------------


def test_the_probe_finds_what_azurite_does(azure_opened: Opened) -> None:
    """Azurite has no CRC64, refuses a wrong MD5, and honours every condition."""
    store = azure_opened()
    limits = store.limits
    assert (limits.checksum, limits.create_only_finish, limits.compare_and_set) == (
        "md5",
        True,
        True,
    )
    assert not limits.can_abandon
    assert "md5 checked for each block; every condition is honoured" in store.describe()


def test_our_checksum_is_azures_with_its_lowest_byte_first() -> None:
    """The header's form of the CRC's published check value, as Azure's own tools write it."""
    assert crc64nvme(b"123456789") == 0xAE8B14860A799888
    told = declared_of("crc64nvme", b"123456789")
    assert told == {"transactional_content_crc64": bytearray.fromhex("8898790a86148bae")}


def test_a_crc64_is_sent_where_the_server_has_it(azure_opened: Opened, azure_proxy: Proxy) -> None:
    """A server that answers a wrong CRC64 with Crc64Mismatch is given right ones from then on."""
    mismatch = answer(400, "Crc64Mismatch")
    azure_proxy.rule("answer", "PUT", "comp=block&", answer=mismatch)
    azure_proxy.rule("answer", "PUT", "probe", answer=mismatch)
    assert azure_opened().limits.checksum == "crc64nvme"


def test_lists_come_page_by_page(azure_opened: Opened, azure_proxy: Proxy) -> None:
    """More names than one page holds are all listed, once, each page asked for by itself."""
    store = azure_opened()
    for number in range(7):
        store.put_small(f"k{number}", b"x", None)
    found = [str(blob.name) for blob in Blobs(store._wire, store._options).list(store._root, 3)]
    assert found == [f"{store._root}k{number}" for number in range(7)]
    assert len(azure_proxy.sent("GET", "comp=list")) == 3


def test_tiers_are_asked_for_data_and_not_for_records(
    azure_opened: Opened, azurite_server: AzureServer
) -> None:
    """Data goes to the tier that was asked for, in one request or in blocks; records do not."""
    store = azure_opened(access_tier="Cool")
    store.put_whole("small", BytesBody(b"x"), NONCE, create_only=True)
    stored(store, "large", b"xyz")
    store.put_small("record", b"x", None)
    with azurite_server.client() as client:
        tiers = {
            str(blob.name).removeprefix(store._root): str(blob.blob_tier)
            for blob in client.list_blobs(name_starts_with=store._root)
        }
    assert tiers == {"small": "Cool", "large": "Cool", "record": "Hot"}


def test_an_encryption_scope_is_asked_for_with_every_write(
    azure_opened: Opened, azure_proxy: Proxy
) -> None:
    """Blobs, blocks and their commit name the scope, of data and of records."""
    store = azure_opened(encryption_scope="team")
    store.put_whole("small", BytesBody(b"x"), NONCE, create_only=True)
    stored(store, "large", b"xyz")
    store.put_small("record", b"x", None)
    writes = azure_proxy.sent("PUT", "small|large|record")
    assert len(writes) == 4
    assert all("x-ms-encryption-scope: team" in request.headers for request in writes)


@pytest.mark.parametrize("key", ["a/b.", "ends./x", "back\\slash"])
def test_names_that_azure_would_change_are_refused(azure_opened: Opened, key: str) -> None:
    """A component that ends with a dot, and a backslash, would be stored under another name."""
    with pytest.raises(Never):
        azure_opened().put_small(key, b"x", None)


def test_a_large_whole_file_is_streamed_as_one_block(
    azure_opened: Opened, azure_proxy: Proxy
) -> None:
    """What is over a mebibyte is not held in memory: one block and its commit."""
    store = azure_opened()
    data = some_bytes(2 * 1024 * 1024)
    store.put_whole("large", BytesBody(data), NONCE, create_only=True)
    assert [r.body_bytes for r in azure_proxy.sent("PUT", "large.*comp=block&")] == [len(data)]
    assert read(store, "large", len(data)) == data
    with pytest.raises(Lost):
        store.put_whole("large", BytesBody(data), "other", create_only=True)


# Other writers ---------------------------------------------------------------------------------


def test_blocks_that_another_writer_discarded_are_gone(
    azure_opened: Opened, azurite_server: AzureServer
) -> None:
    """Another writer's commit throws our blocks away: finish says Gone, and theirs stays.

    (So does a put of the whole blob on Azure; Azurite keeps the blocks then.)
    """
    store = azure_opened()
    data = some_bytes(3000)
    begun = store.begin("shared", len(data), piece_bytes_of(store.limits), NONCE)
    receipts = upload(store, begun, data)
    with azurite_server.client() as client:
        blob = client.get_blob_client(f"{store._root}shared")
        blob.stage_block(block_id("other", 0), b"theirs")
        blob.commit_block_list([BlobBlock(block_id("other", 0))])
    with pytest.raises(Gone):
        store.finish(begun, receipts, crc64nvme(data), create_only=False)
    assert azurite_server.objects(store._root) == {"shared": b"theirs"}


def test_two_writers_of_one_blob_do_not_mix(
    azure_opened: Opened, azurite_server: AzureServer
) -> None:
    """Blocks carry the nonce: the first to finish has its own bytes, the second has lost."""
    store, other = azure_opened(), None
    other = azure_opened(store._root)
    left, right = some_bytes(3000, 1), some_bytes(3000, 2)
    first = store.begin("shared", 3000, 1000, "one")
    second = other.begin("shared", 3000, 1000, "two")
    ours, theirs = [], []
    for (piece, a), (_, b) in zip(pieces_of(left, 1000), pieces_of(right, 1000), strict=True):
        ours.append(store.put_piece(first, piece, BytesBody(a)))
        theirs.append(other.put_piece(second, piece, BytesBody(b)))
    store.finish(first, ours, crc64nvme(left), create_only=True)
    with pytest.raises((Lost, Gone)):
        other.finish(second, theirs, crc64nvme(right), create_only=True)
    assert azurite_server.objects(store._root) == {"shared": left}
    assert store.stat("shared").nonce == "one"


# Lost answers, restarts, damage ----------------------------------------------------------------


def test_a_restarted_daemon_sends_only_what_is_missing(
    azure_opened: Opened, azure_proxy: Proxy
) -> None:
    """Blocks that were staged before the restart are not sent again: bytes on the wire."""
    store = azure_opened()
    data = some_bytes(5000)
    begun = store.begin("big", len(data), 1000, NONCE)
    pieces = pieces_of(data, 1000)
    receipts = [store.put_piece(begun, piece, BytesBody(part)) for piece, part in pieces[:3]]
    again = azure_opened(store._root)
    receipts += [again.put_piece(begun, piece, BytesBody(part)) for piece, part in pieces[3:]]
    again.finish(begun, receipts, crc64nvme(data), create_only=True)
    assert azure_proxy.data_bytes("big.*comp=block&") == len(data)
    assert read(again, "big", len(data)) == data


@pytest.mark.parametrize("what", ["comp=blocklist", "comp=block&"])
def test_a_lost_answer_is_resolved(azure_opened: Opened, azure_proxy: Proxy, what: str) -> None:
    """After a lost answer a second try, or a look, ends with the object."""
    store = azure_opened()
    data = some_bytes(3000)
    assert store.limits.checksum == "md5"
    begun = store.begin("lost", len(data), len(data), NONCE)
    azure_proxy.rule("swallow", "PUT", what)
    with pytest.raises(Again) as lost:
        store.finish(begun, upload(store, begun, data), crc64nvme(data), create_only=True)
    assert lost.value.ambiguous
    try:
        seen = store.stat("lost")
    except Missing:
        receipts = upload(store, begun, data)
        seen = store.finish(begun, receipts, crc64nvme(data), create_only=True)
    assert (seen.size, seen.crc64nvme, seen.nonce) == (len(data), crc64nvme(data), NONCE)


def test_a_bit_flipped_in_a_block_is_refused_by_the_server(
    azure_opened: Opened, azure_proxy: Proxy
) -> None:
    """A damaged block is Again, and the right one then makes the object."""
    store = azure_opened()
    data = some_bytes(3000)
    assert store.limits.checksum == "md5"
    begun = store.begin("flipped", len(data), len(data), NONCE)
    azure_proxy.rule("flip", "PUT", "comp=block&")
    with pytest.raises(Again, match="doesn't match"):
        upload(store, begun, data)
    store.finish(begun, upload(store, begun, data), crc64nvme(data), create_only=True)
    assert read(store, "flipped", len(data)) == data


def test_a_bit_flipped_in_a_small_file_is_refused_by_the_server(
    azure_opened: Opened, azure_proxy: Proxy, azurite_server: AzureServer
) -> None:
    """A damaged put keeps nothing, of files and of records."""
    store = azure_opened()
    assert store.limits.checksum == "md5"
    azure_proxy.rule("flip", "PUT", "small", times=2)
    with pytest.raises(Again, match="doesn't match"):
        store.put_whole("small", BytesBody(bytes(100)), NONCE, create_only=True)
    with pytest.raises(Again, match="doesn't match"):
        store.put_small("small", b"record", IfAbsent())
    assert azurite_server.objects(store._root) == {}
