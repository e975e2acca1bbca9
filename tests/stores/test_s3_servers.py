"""S3 keeps every promise on a server that checks everything, and on one that checks nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from secrets import token_hex

import pytest

from ckptsyncd.core.ports import Store
from ckptsyncd.errors import Again
from ckptsyncd.stores.s3.options import S3Options
from ckptsyncd.stores.s3.store import S3Store
from tests import servers
from tests.stores.conformance import Behind, Conformance


def opened(server: servers.S3Server, prefix: str) -> S3Store:
    """Open a store on a server, with pages small enough to need several."""
    return S3Store(server.bucket, prefix, S3Options(endpoint_url=server.endpoint), page_keys=10)


class S3Conformance(Conformance):
    """The suite below a prefix of a real server."""

    many = 25

    @pytest.fixture
    def server(self) -> servers.S3Server:
        """Return the server; every class below brings its own."""
        raise NotImplementedError

    @pytest.fixture
    def prefix(self) -> str:
        """Return a prefix that no test uses now or has used before."""
        return f"tests/run {token_hex(6)}"

    @pytest.fixture
    def store(self, server: servers.S3Server, prefix: str) -> Iterator[S3Store]:
        """Return an empty store."""
        with closing(opened(server, prefix)) as store:
            yield store

    @pytest.fixture
    def behind(self, server: servers.S3Server, prefix: str) -> Iterator[Behind]:
        """Read the bucket with a plain client."""
        with closing(servers.client(server.endpoint)) as s3:

            def look() -> dict[str, bytes]:
                rows = s3.list_objects_v2(Bucket=server.bucket, Prefix=prefix + "/")
                keys = [row["Key"] for row in rows.get("Contents", ())]
                return {
                    key.removeprefix(prefix + "/"): s3.get_object(Bucket=server.bucket, Key=key)[
                        "Body"
                    ].read()
                    for key in keys
                }

            yield look

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

    gone_means = Again  # it answers 500 for a part of an upload that it does not know

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


@pytest.mark.server
@pytest.mark.skipif("CKPTSYNCD_TEST_S3" not in os.environ, reason="CKPTSYNCD_TEST_S3 is not set")
class TestYours(S3Conformance):
    """Whatever answers at CKPTSYNCD_TEST_S3 (``http://host:port/bucket``): your credentials."""

    sorts = False

    @pytest.fixture
    def server(self) -> servers.S3Server:
        """Use the server that the environment names."""
        endpoint, _, bucket = os.environ["CKPTSYNCD_TEST_S3"].rpartition("/")
        return servers.S3Server("yours", endpoint, bucket)
