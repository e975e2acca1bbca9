"""S3 keeps every promise on a server that checks everything, and on one that checks nothing."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import cache
from secrets import token_hex
from typing import Any

import pytest

from ckptsyncd.core.ports import Store
from ckptsyncd.stores.s3.options import S3Options
from ckptsyncd.stores.s3.store import S3Store
from tests import servers
from tests.stores.conformance import Conformance
from tests.stores.samples import Behind


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

        @cache
        def place_on(server: servers.S3Server) -> Place:
            prefix = f"tests/run {token_hex(6)}"
            store = stack.enter_context(closing(opened(server, prefix)))
            plain = stack.enter_context(closing(servers.client(server.endpoint)))
            return Place(server.bucket, prefix, store, plain)

        yield place_on


class S3Conformance(Conformance):
    """The suite below a prefix of a real server."""

    many = 25

    @pytest.fixture
    def server(self) -> servers.S3Server:
        """Return the server; every class below brings its own."""
        raise NotImplementedError

    @pytest.fixture
    def place(self, server: servers.S3Server, kept: Kept) -> Place:
        """Return the module's place on the server."""
        return kept(server)

    @pytest.fixture
    def store(self, place: Place) -> S3Store:
        """Return the store, emptied behind its back."""
        inside = {"Bucket": place.bucket, "Prefix": place.prefix + "/"}
        for row in place.plain.list_objects_v2(**inside).get("Contents", ()):
            place.plain.delete_object(Bucket=place.bucket, Key=row["Key"])
        for row in place.plain.list_multipart_uploads(**inside).get("Uploads", ()):
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

    def reopened(self, store: Store) -> Store:
        """Open the same prefix again."""
        assert isinstance(store, S3Store)
        return S3Store(store._wire.bucket, store._root[:-1], store._options)


@pytest.mark.server
class TestSeaweedFS(S3Conformance):
    """SeaweedFS: checks signatures, all checksums and all conditions."""

    sorts = False  # it lists a directory's content where the directory's name sorts

    @pytest.fixture
    def server(self, s3_server: servers.S3Server) -> servers.S3Server:
        """Use the session's server."""
        return s3_server

    def test_the_probe_sees_what_it_checks(self, store: S3Store) -> None:
        """The strongest check and every condition are found."""
        limits = store.limits
        assert limits.checksum == "crc64nvme"
        assert limits.create_only_finish
        assert limits.compare_and_set


@pytest.mark.server
class TestMoto(S3Conformance):
    """Moto: checks conditions, and no content at all."""

    @pytest.fixture
    def server(self, moto_server: servers.S3Server) -> servers.S3Server:
        """Use the session's server."""
        return moto_server

    def test_the_probe_sees_what_it_does_not_check(self, store: S3Store) -> None:
        """No check is believed that accepts a wrong value."""
        limits = store.limits
        assert limits.checksum == "read back"
        assert limits.create_only_finish
        assert limits.compare_and_set


if "CKPTSYNCD_TEST_S3" in os.environ:

    @pytest.mark.server
    class TestYours(S3Conformance):
        """Whatever answers at CKPTSYNCD_TEST_S3 (``http://host:port/bucket``): your credentials."""

        sorts = False

        @pytest.fixture
        def server(self) -> servers.S3Server:
            """Use the server that the environment names."""
            endpoint, _, bucket = os.environ["CKPTSYNCD_TEST_S3"].rpartition("/")
            return servers.S3Server("yours", endpoint, bucket)
