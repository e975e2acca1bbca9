"""Azure Blob when something goes wrong: lost answers, flipped bits, other writers, credentials."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import datetime, timedelta, timezone
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from azure.storage.blob import BlobBlock, ContainerSasPermissions, generate_container_sas

from ckptsyncd.checksum import crc64nvme
from ckptsyncd.core.facts import IfAbsent, Piece
from ckptsyncd.errors import Again, Gone, Lost, Missing, Never, Refused, StoreError, UsageError
from ckptsyncd.stores.azure.blobs import Blobs, block_id, declared_of
from ckptsyncd.stores.azure.credentials import access
from ckptsyncd.stores.azure.options import AzureOptions
from ckptsyncd.stores.azure.store import AzureStore
from ckptsyncd.stores.memory import BytesBody
from tests.emulators import AzureServer
from tests.proxy import Proxy, proxied
from tests.servers import free_ports
from tests.stores.samples import NONCE, piece_bytes_of, pieces_of, read, some_bytes, stored, upload

_numbers = count()

Opened = Callable[..., AzureStore]

NOBODY = "DefaultEndpointsProtocol=https;AccountName=other;AccountKey=Zm9v;EndpointSuffix=core.test"


@pytest.fixture
def proxy(azurite_server: AzureServer) -> Iterator[Proxy]:
    """Stand in front of Azurite."""
    parts = urlsplit(azurite_server.endpoint)
    with proxied(parts.hostname or "", parts.port or 0) as made:
        yield made


@pytest.fixture
def opened(proxy: Proxy, azurite_server: AzureServer) -> Iterator[Opened]:
    """Open stores behind the proxy, below a prefix of their own, and close them."""
    with ExitStack() as stack:

        def open_one(prefix: str = "", container: str = "", **options: object) -> AzureStore:
            if "sas_token" not in options and "sas_token_file" not in options:
                options.setdefault("account_key", azurite_server.key)
            store = AzureStore(
                azurite_server.account,
                container or azurite_server.container,
                prefix or f"faults {next(_numbers)}",
                AzureOptions(f"{proxy.endpoint}/{azurite_server.account}", **options),  # type: ignore[arg-type]
            )
            stack.callback(store.close)
            return store

        yield open_one


def answer(status: int, code: str = "", extra: str = "") -> bytes:
    """Return an error as the Blob service words it, and the end of the connection."""
    body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>told so</Message></Error>"
    named = f"x-ms-error-code: {code}\r\n" if code else ""
    head = f"HTTP/1.1 {status} Something\r\nContent-Type: application/xml\r\n{named}{extra}"
    return f"{head}Connection: close\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


def token(server: AzureServer, minutes: float, permission: str = "racwdl") -> str:
    """Return a SAS token of the container that lives so long."""
    return generate_container_sas(
        server.account,
        server.container,
        account_key=server.key,
        permission=ContainerSasPermissions.from_string(permission),
        expiry=datetime.now(timezone.utc) + timedelta(minutes=minutes),
    )


# The probe and what it decides ----------------------------------------------------------------


def test_the_probe_finds_what_azurite_does(opened: Opened) -> None:
    """Azurite has no CRC64, refuses a wrong MD5, and honours every condition."""
    store = opened()
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


def test_a_crc64_is_sent_where_the_server_has_it(opened: Opened, proxy: Proxy) -> None:
    """A server that answers a wrong CRC64 with Crc64Mismatch is given right ones from then on."""
    mismatch = answer(400, "Crc64Mismatch")
    proxy.rule("answer", "PUT", "comp=block&", answer=mismatch)
    proxy.rule("answer", "PUT", "probe", answer=mismatch)
    assert opened().limits.checksum == "crc64nvme"


def test_lists_come_page_by_page(opened: Opened, proxy: Proxy) -> None:
    """More names than one page holds are all listed, once, each page asked for by itself."""
    store = opened()
    for number in range(7):
        store.put_small(f"k{number}", b"x", None)
    found = [str(blob.name) for blob in Blobs(store._wire, store._options).list(store._root, 3)]
    assert found == [f"{store._root}k{number}" for number in range(7)]
    assert len(proxy.sent("GET", "comp=list")) == 3


def test_tiers_are_asked_for_data_and_not_for_records(
    opened: Opened, azurite_server: AzureServer
) -> None:
    """Data goes to the tier that was asked for, in one request or in blocks; records do not."""
    store = opened(access_tier="Cool")
    store.put_whole("small", BytesBody(b"x"), NONCE, create_only=True)
    stored(store, "large", b"xyz")
    store.put_small("record", b"x", None)
    with azurite_server.client() as client:
        tiers = {
            str(blob.name).removeprefix(store._root): str(blob.blob_tier)
            for blob in client.list_blobs(name_starts_with=store._root)
        }
    assert tiers == {"small": "Cool", "large": "Cool", "record": "Hot"}


def test_an_encryption_scope_is_asked_for_with_every_write(opened: Opened, proxy: Proxy) -> None:
    """Blobs, blocks and their commit name the scope, of data and of records."""
    store = opened(encryption_scope="team")
    store.put_whole("small", BytesBody(b"x"), NONCE, create_only=True)
    stored(store, "large", b"xyz")
    store.put_small("record", b"x", None)
    writes = proxy.sent("PUT", "small|large|record")
    assert len(writes) == 4
    assert all("x-ms-encryption-scope: team" in request.headers for request in writes)


@pytest.mark.parametrize("key", ["a/b.", "ends./x", "back\\slash"])
def test_names_that_azure_would_change_are_refused(opened: Opened, key: str) -> None:
    """A component that ends with a dot, and a backslash, would be stored under another name."""
    with pytest.raises(Never):
        opened().put_small(key, b"x", None)


def test_a_large_whole_file_is_streamed_as_one_block(opened: Opened, proxy: Proxy) -> None:
    """What is over a mebibyte is not held in memory: one block and its commit."""
    store = opened()
    data = some_bytes(2 * 1024 * 1024)
    store.put_whole("large", BytesBody(data), NONCE, create_only=True)
    assert [r.body_bytes for r in proxy.sent("PUT", "large.*comp=block&")] == [len(data)]
    assert read(store, "large", len(data)) == data
    with pytest.raises(Lost):
        store.put_whole("large", BytesBody(data), "other", create_only=True)


# Other writers --------------------------------------------------------------------------------


def test_blocks_that_another_writer_discarded_are_gone(
    opened: Opened, azurite_server: AzureServer
) -> None:
    """Another writer's commit throws our blocks away: finish says Gone, and theirs stays.

    (So does a put of the whole blob on Azure; Azurite keeps the blocks then.)
    """
    store = opened()
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


def test_two_writers_of_one_blob_do_not_mix(opened: Opened, azurite_server: AzureServer) -> None:
    """Blocks carry the nonce: the first to finish has its own bytes, the second has lost."""
    store, other = opened(), None
    other = opened(store._root)
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


# Lost answers, restarts, damage ---------------------------------------------------------------


def test_a_restarted_daemon_sends_only_what_is_missing(opened: Opened, proxy: Proxy) -> None:
    """Blocks that were staged before the restart are not sent again: bytes on the wire."""
    store = opened()
    data = some_bytes(5000)
    begun = store.begin("big", len(data), 1000, NONCE)
    pieces = pieces_of(data, 1000)
    receipts = [store.put_piece(begun, piece, BytesBody(part)) for piece, part in pieces[:3]]
    again = opened(store._root)
    receipts += [again.put_piece(begun, piece, BytesBody(part)) for piece, part in pieces[3:]]
    again.finish(begun, receipts, crc64nvme(data), create_only=True)
    assert proxy.data_bytes("big.*comp=block&") == len(data)
    assert read(again, "big", len(data)) == data


@pytest.mark.parametrize("what", ["comp=blocklist", "comp=block&"])
def test_a_lost_answer_is_resolved(opened: Opened, proxy: Proxy, what: str) -> None:
    """After a lost answer a second try, or a look, ends with the object."""
    store = opened()
    data = some_bytes(3000)
    assert store.limits.checksum == "md5"
    begun = store.begin("lost", len(data), len(data), NONCE)
    proxy.rule("swallow", "PUT", what)
    with pytest.raises(Again) as lost:
        store.finish(begun, upload(store, begun, data), crc64nvme(data), create_only=True)
    assert lost.value.ambiguous
    try:
        seen = store.stat("lost")
    except Missing:
        receipts = upload(store, begun, data)
        seen = store.finish(begun, receipts, crc64nvme(data), create_only=True)
    assert (seen.size, seen.crc64nvme, seen.nonce) == (len(data), crc64nvme(data), NONCE)


def test_a_bit_flipped_in_a_block_is_refused_by_the_server(opened: Opened, proxy: Proxy) -> None:
    """A damaged block is Again, and the right one then makes the object."""
    store = opened()
    data = some_bytes(3000)
    assert store.limits.checksum == "md5"
    begun = store.begin("flipped", len(data), len(data), NONCE)
    proxy.rule("flip", "PUT", "comp=block&")
    with pytest.raises(Again, match="doesn't match"):
        upload(store, begun, data)
    store.finish(begun, upload(store, begun, data), crc64nvme(data), create_only=True)
    assert read(store, "flipped", len(data)) == data


def test_a_bit_flipped_in_a_small_file_is_refused_by_the_server(
    opened: Opened, proxy: Proxy, azurite_server: AzureServer
) -> None:
    """A damaged put keeps nothing, of files and of records."""
    store = opened()
    assert store.limits.checksum == "md5"
    proxy.rule("flip", "PUT", "small", times=2)
    with pytest.raises(Again, match="doesn't match"):
        store.put_whole("small", BytesBody(bytes(100)), NONCE, create_only=True)
    with pytest.raises(Again, match="doesn't match"):
        store.put_small("small", b"record", IfAbsent())
    assert azurite_server.objects(store._root) == {}


# Credentials ----------------------------------------------------------------------------------


def test_a_sas_token_is_enough(opened: Opened, azurite_server: AzureServer) -> None:
    """Everything that the store does is allowed by read, add, create, write, delete and list."""
    store = opened(sas_token=token(azurite_server, 5))
    data = some_bytes(3000)
    stored(store, "a", data)
    store.put_small("b", b"x", IfAbsent())
    assert [fact.key for fact in store.list("")] == ["a", "b"]
    assert read(store, "a", len(data)) == data
    store.delete("a")
    assert "sig=" not in store.describe()


def test_a_sas_token_that_is_replaced_in_its_file_is_seen(
    opened: Opened, azurite_server: AzureServer, tmp_path: Path
) -> None:
    """An expired token is Refused; once the file has a new one the upload goes on where it was."""
    file = tmp_path / "sas"
    file.write_text(token(azurite_server, 5) + "\n")
    store = opened(sas_token_file=str(file))
    data = some_bytes(2000)
    begun = store.begin("rotated", len(data), 1000, NONCE)
    (first, left), (second, right) = pieces_of(data, 1000)
    receipts = [store.put_piece(begun, first, BytesBody(left))]
    file.write_text(token(azurite_server, -5))
    store.close()  # as a refusal does
    with pytest.raises(Refused) as refused:
        store.put_piece(begun, second, BytesBody(right))
    assert "sig=" not in str(refused.value).replace("sig=...", "")
    file.write_text("not a token")
    with pytest.raises(Refused, match="no SAS token"):
        store.put_piece(begun, second, BytesBody(right))
    file.write_text(token(azurite_server, 5))
    receipts.append(store.put_piece(begun, second, BytesBody(right)))
    store.finish(begun, receipts, crc64nvme(data), create_only=True)
    assert read(store, "rotated", len(data)) == data


def test_a_token_without_a_permission_is_refused(
    opened: Opened, azurite_server: AzureServer
) -> None:
    """A token that may only read does not write, and the hint says what is needed."""
    store = opened(sas_token=token(azurite_server, 5, "rl"))
    with pytest.raises(Refused) as refused:
        store.put_small("a", b"x", None)
    assert refused.value.hint
    with pytest.raises(Missing):
        store.stat("a")


def test_a_wrong_key_is_refused_and_stays_secret(opened: Opened) -> None:
    """A key that is not the account's is Refused; no part of it is told."""
    wrong = "c2VjcmV0IHRoYXQgaXMgbm90IHRoZSBhY2NvdW50J3M="
    store = opened(account_key=wrong)
    with pytest.raises(Refused) as refused:
        store.put_small("a", b"x", None)
    assert wrong not in str(refused.value)
    assert wrong not in repr(store._options)


def test_credentials_are_looked_for_in_the_sdks_own_order(tmp_path: Path) -> None:
    """Connection string, then key, then SAS, from the options before the environment."""
    key, sas = "a2V5", "sv=1&sig=abc"
    text = (
        "DefaultEndpointsProtocol=https;AccountName=acct;AccountKey=Zm9v;EndpointSuffix=core.test"
    )
    file = tmp_path / "sas"
    file.write_text(f"?{sas}\n")
    found = access("acct", AzureOptions(), {"AZURE_STORAGE_CONNECTION_STRING": text})
    assert found.account_url == "https://acct.blob.core.test"
    assert found.credential.named_key.key == "Zm9v"
    both = {"AZURE_STORAGE_KEY": key, "AZURE_STORAGE_SAS_TOKEN": sas}
    found = access("acct", AzureOptions(), both)
    assert found.account_url == "https://acct.blob.core.windows.net"
    assert found.credential.named_key.key == key
    assert access("acct", AzureOptions(sas_token_file=str(file)), both).credential.signature == sas
    assert access("acct", AzureOptions(account_key="b3Ro"), both).credential.named_key.key == "b3Ro"


def test_credentials_of_another_account_are_no_accident() -> None:
    """A connection string or a key that names another account is told, not presented."""
    for environment in (
        {"AZURE_STORAGE_CONNECTION_STRING": NOBODY},
        {"AZURE_STORAGE_ACCOUNT": "other", "AZURE_STORAGE_KEY": "a2V5"},
        {"AZURE_STORAGE_CONNECTION_STRING": "nonsense"},
    ):
        with pytest.raises(UsageError):
            access("acct", AzureOptions(), environment)


def test_a_missing_extra_is_told_with_the_command_that_brings_it() -> None:
    """Without azure-identity, and without a key, the error names the pip command."""
    program = (
        "import sys; sys.modules['azure.identity'] = None\n"
        "from ckptsyncd.errors import UsageError\n"
        "from ckptsyncd.stores.open import open_store\n"
        "try: open_store('az://account/container')\n"
        "except UsageError as error: print(error.hint)\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", program], env={}, capture_output=True, text=True, check=True
    )
    assert "pip install 'ckptsyncd[azure-identity]'" in told.stdout


@pytest.mark.parametrize(
    ("url", "module", "extra"),
    [
        ("az://account/container", "azure.storage.blob", "azure"),
        ("gs://bucket", "google.cloud.storage", "gcs"),
    ],
)
def test_a_missing_sdk_is_told_with_the_command_that_brings_it(
    url: str, module: str, extra: str
) -> None:
    """Where an SDK is not installed the error names its extra, and no other URL needs it."""
    program = (
        f"import sys; sys.modules[{module!r}] = None\n"
        "from ckptsyncd.errors import UsageError\n"
        "from ckptsyncd.stores.open import open_store\n"
        "open_store('file:///tmp/somewhere')\n"
        f"try: open_store({url!r})\n"
        "except UsageError as error: print(error.hint)\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", program], env={}, capture_output=True, text=True, check=True
    )
    assert f"pip install 'ckptsyncd[{extra}]'" in told.stdout


# Answers and silence --------------------------------------------------------------------------

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


@pytest.mark.parametrize(("given", "expected"), TABLE, ids=[f"{i}" for i in range(len(TABLE))])
def test_answers_to_a_write_are_classified(
    opened: Opened,
    proxy: Proxy,
    given: bytes,
    expected: tuple[type[StoreError], float | None, bool],
) -> None:
    """Every answer is one of the six kinds, with its pause, and is not tried again by the SDK."""
    store = opened()
    assert store.limits.checksum == "md5"
    rule = proxy.rule("answer", "PUT", "record", times=9, answer=given)
    with pytest.raises(StoreError) as raised:
        store.put_small("record", b"x", None)
    error = raised.value
    assert (type(error), error.wait_seconds, error.ambiguous) == expected
    assert rule.times == 8


def test_a_missing_container_is_told_with_what_to_do(opened: Opened) -> None:
    """A container that does not exist is no missing blob: it is not tried again by itself."""
    store = opened(container="nowhere")
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


def test_silence_ends_with_the_time_out(opened: Opened, proxy: Proxy) -> None:
    """A server that takes the request and says nothing may have acted."""
    store = opened(read_timeout_seconds=0.5)
    assert store.limits.checksum == "md5"
    proxy.rule("hold", "PUT", "record")
    with pytest.raises(Again) as raised:
        store.put_small("record", b"x", None)
    assert raised.value.ambiguous


def test_an_answer_that_breaks_off_is_no_answer(opened: Opened, proxy: Proxy) -> None:
    """A body that ends early is Again, never short data."""
    store = opened(read_timeout_seconds=0.3)
    half = (
        b"HTTP/1.1 206 Partial Content\r\nContent-Length: 100\r\nContent-Range: bytes 0-99/100\r\n"
        b'ETag: "0x1"\r\nx-ms-blob-type: BlockBlob\r\n\r\nhalf of it'
    )
    proxy.rule("answer", "GET", "record", times=9, answer=half)
    with pytest.raises(Again):
        list(store.read_range("record", 0, 100))


def test_what_failed_while_trying_out_is_tried_again(opened: Opened, proxy: Proxy) -> None:
    """A probe that meets a bad moment raises it, and the next reading finds everything out."""
    store = opened()
    proxy.rule("answer", "PUT", "probe", answer=answer(503, "ServerBusy"))
    with pytest.raises(Again):
        _ = store.limits
    assert store.limits.checksum == "md5"


def test_a_piece_of_nothing_is_a_block_of_nothing(opened: Opened) -> None:
    """An empty file that the brain sends as one empty piece becomes an empty blob."""
    store = opened()
    begun = store.begin("empty", 0, 1000, NONCE)
    with pytest.raises(StoreError):
        store.put_piece(begun, Piece(1, 0, 0), BytesBody(b""))
    receipt = store.put_piece(begun, Piece(0, 0, 0), BytesBody(b""))
    store.finish(begun, [receipt], crc64nvme(b""), create_only=True)
    assert store.stat("empty").size == 0
