"""S3 keeps every promise on servers that check everything, something, and nothing."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import cache
from secrets import token_hex
from typing import Any, ClassVar

import pytest
from botocore.exceptions import ClientError

from ckptsyncd.checksum import crc64nvme
from ckptsyncd.core.ports import Store
from ckptsyncd.errors import Again, Never, Refused
from ckptsyncd.stores.memory import BytesBody
from ckptsyncd.stores.s3.options import S3Options
from ckptsyncd.stores.s3.store import S3Store
from tests import servers
from tests.stores.conformance import Conformance
from tests.stores.found import FOUND
from tests.stores.samples import NONCE, Behind, BrokenBody, Mark, piece_bytes_of, read, some_bytes


def opened(server: servers.S3Server, prefix: str) -> S3Store:
    """Open a store on a server, with pages small enough to need several."""
    return S3Store(server.bucket, prefix, S3Options(endpoint_url=server.endpoint), page_keys=10)


@dataclass(frozen=True, slots=True)
class Place:
    """A prefix of a server: our store there, and a plain client to look behind it."""

    bucket: str
    prefix: str
    store: S3Store
    plain: Any


Kept = Callable[[servers.S3Server], Place]


@pytest.fixture(scope="module")
def kept() -> Iterator[Kept]:
    """Keep one place for each server: opening a client takes a quarter of a second."""
    with ExitStack() as stack:
        yield cache(lambda server: place_on(server, stack))


def place_on(server: servers.S3Server, stack: ExitStack) -> Place:
    """Return a new place, until the stack ends."""
    prefix = f"tests/run {token_hex(6)}"
    store = stack.enter_context(closing(opened(server, prefix)))
    plain = stack.enter_context(
        closing(servers.client(server.endpoint, server.access_key, server.secret_key))
    )
    return Place(server.bucket, prefix, store, plain)


class OnS3(Conformance):
    """The suite below a prefix of a real server."""

    #: The fixture that runs the server.
    runs: ClassVar[str]
    many = 25

    @pytest.fixture
    def place(self, request: pytest.FixtureRequest, kept: Kept) -> Place:
        """Return the module's place on the server."""
        return kept(request.getfixturevalue(self.runs))

    @pytest.fixture
    def store(self, place: Place) -> S3Store:
        """Return the store, emptied behind its back."""
        inside = {"Bucket": place.bucket, "Prefix": place.prefix + "/"}
        for row in place.plain.list_objects_v2(**inside).get("Contents", ()):
            place.plain.delete_object(Bucket=place.bucket, Key=row["Key"])
        for row in begun_on(place, inside):
            place.plain.abort_multipart_upload(
                Bucket=place.bucket, Key=row["Key"], UploadId=row["UploadId"]
            )
        return place.store

    @pytest.fixture
    def behind(self, place: Place) -> Behind:
        """Read the bucket with the plain client."""

        def look() -> dict[str, bytes]:
            rows = place.plain.list_objects_v2(Bucket=place.bucket, Prefix=place.prefix + "/")
            keys = [row["Key"] for row in rows.get("Contents", ())]
            return {key.removeprefix(place.prefix + "/"): body_of(key) for key in keys}

        def body_of(key: str) -> bytes:
            body: bytes = place.plain.get_object(Bucket=place.bucket, Key=key)["Body"].read()
            return body

        return look

    @pytest.fixture
    def mark(self, place: Place) -> Mark:
        """Ask for the metadata with the plain client."""

        def of(key: str) -> str | None:
            full = f"{place.prefix}/{key}"
            found: dict[str, str] = place.plain.head_object(Bucket=place.bucket, Key=full)[
                "Metadata"
            ]
            return found.get("ckptsyncd-nonce")

        return of

    def reopened(self, store: Store) -> Store:
        """Open the same prefix again."""
        assert isinstance(store, S3Store)
        return S3Store(store._wire.bucket, store._root[:-1], store._options)

    def test_the_probe_finds_what_the_documentation_says(self, store: S3Store) -> None:
        """The table of docs/stores.md tells what this server was seen to do."""
        assert store.limits.checksum
        found = next((row for row in FOUND if row.fixture == self.runs), None)
        assert found is None or found.agrees(store._keeper.found())


def begun_on(place: Place, inside: dict[str, str]) -> list[Any]:
    """Return the begun uploads; none where the server cannot tell."""
    try:
        rows: list[Any] = place.plain.list_multipart_uploads(**inside).get("Uploads", [])
    except ClientError as error:
        code = error.response["Error"]["Code"]
        assert code in ("NotImplemented", "NoSuchUpload")
        return []
    return rows


@pytest.mark.server
class TestSeaweedFS(OnS3):
    """SeaweedFS: checks signatures, all checksums and all conditions."""

    runs = "s3_server"
    sorts = False  # it lists a directory's content where the directory's name sorts


@pytest.mark.server
class TestMoto(OnS3):
    """Moto: checks conditions, and no content at all."""

    runs = "moto_server"


@pytest.mark.server
class TestNanio(OnS3):
    """Nanio stores what an SDK sends by default with its framing; ours arrives as it is."""

    runs = "nanio_server"

    def test_odd_names_come_back_as_they_were(self, store: Store, behind: Behind) -> None:
        """It takes a percent sign for an escape: such a name is Refused, others come back."""
        with pytest.raises(Refused):
            store.put_whole("percent%41", BytesBody(b"x"), NONCE, create_only=True)
        for key in ("epoch=3-step=500.ckpt", "with space/and+plus", "umlaut-ü/日本語/🚀"):
            store.put_whole(key, BytesBody(b"x"), NONCE, create_only=True)
            assert read(store, key, 1) == b"x"
            store.delete(key)
        assert behind() == {}


@pytest.mark.server
class TestS3rver(OnS3):
    """S3rver does so too, checks nothing, and cannot abandon an upload."""

    runs = "s3rver_server"
    sorts = False

    @pytest.fixture(autouse=True)
    def _keys(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Use the only keys that it has."""
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", servers.S3RVER_KEY)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", servers.S3RVER_KEY)

    def test_long_lists_come_page_by_page(self, store: Store) -> None:
        """It fails on the second page, and so does the list."""
        for number in range(self.many):
            store.put_small(f"page/{number:04}", b"x", None)
        with pytest.raises(Again):
            list(store.list("page/"))

    def test_ranges_are_exact(self, store: Store) -> None:
        """It gives the whole object instead of its first byte, which is seen and refused."""
        store.put_whole("range", BytesBody(some_bytes(5000)), NONCE, create_only=True)
        with pytest.raises(Never):
            list(store.read_range("range", 0, 1))
        assert read(store, "range", 5000) == some_bytes(5000)

    def test_a_begun_upload_is_found_again(self, store: Store, behind: Behind) -> None:
        """It tells of no begun upload."""
        store.begin("run/a", 2000, piece_bytes_of(store.limits), NONCE)
        assert list(store.uploads("run/")) == []
        assert behind() == {}

    def test_a_body_that_ends_early_passes_its_own_error(
        self, store: Store, behind: Behind
    ) -> None:
        """It may keep what came of a broken request, which no checksum of ours fits."""
        data = some_bytes(9000)
        with pytest.raises(OSError, match="became shorter"):
            store.put_whole("short", BrokenBody(data), NONCE, create_only=True)
        if "short" in behind():
            assert store.stat("short").crc64nvme != crc64nvme(data)


@pytest.mark.server
def test_more_than_a_thousand_keys_are_listed(moto_server: servers.S3Server) -> None:
    """A thousand keys are the most that one page holds: the rest is on the next."""
    keys = [f"{number:04}" for number in range(1005)]
    with (
        closing(servers.client(moto_server.endpoint)) as plain,
        closing(S3Store(moto_server.bucket, "page", S3Options(moto_server.endpoint))) as store,
        ThreadPoolExecutor(4) as pool,
    ):

        def put(key: str) -> None:
            plain.put_object(Bucket=moto_server.bucket, Key=f"page/{key}", Body=b"x")

        list(pool.map(put, keys))
        assert [fact.key for fact in store.list("")] == keys


if "CKPTSYNCD_TEST_S3" in os.environ:

    @pytest.fixture
    def your_server() -> servers.S3Server:
        """Use the server that the environment names."""
        endpoint, _, bucket = os.environ["CKPTSYNCD_TEST_S3"].rpartition("/")
        return servers.S3Server("yours", endpoint, bucket, "", "")

    @pytest.mark.server
    class TestYours(OnS3):
        """Whatever answers at CKPTSYNCD_TEST_S3 (``http://host:port/bucket``): your credentials."""

        runs = "your_server"
        sorts = False
