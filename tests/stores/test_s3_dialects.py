"""S3 keeps every promise on servers that check something else, and tells what a fault means."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from functools import cache

import pytest

from ckptsyncd.checksum import crc64nvme
from ckptsyncd.core.ports import Store
from ckptsyncd.errors import Again, Gone, Never
from ckptsyncd.stores.memory import BytesBody
from ckptsyncd.stores.s3.store import S3Store
from tests.stores.conformance import Conformance
from tests.stores.dialects import Dialect, DialectServer, serving
from tests.stores.samples import NONCE, Behind, some_bytes, stored
from tests.stores.speaking import FULL, MD5, NOTHING, SHA256, opened, speaking

pytestmark = pytest.mark.usefixtures("s3_environment")

Running = Callable[[Dialect], tuple[S3Store, DialectServer]]


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    """Run one server, and keep one store, for each dialect: clients take their time to make."""
    with ExitStack() as stack:

        @cache
        def of(dialect: Dialect) -> tuple[S3Store, DialectServer]:
            return stack.enter_context(speaking(dialect))

        yield of


class DialectConformance(Conformance):
    """The suite on a server that speaks ``dialect``."""

    dialect = NOTHING
    many = 12

    @pytest.fixture
    def store(self, running: Running) -> S3Store:
        """Return the dialect's store, emptied behind its back."""
        store, server = running(self.dialect)
        server.objects.clear()
        server.uploads.clear()
        return store

    @pytest.fixture
    def server(self, running: Running) -> DialectServer:
        """Return the dialect's server."""
        return running(self.dialect)[1]

    @pytest.fixture
    def behind(self, server: DialectServer) -> Behind:
        """Look into its memory."""
        return lambda: {
            key.removeprefix("pre/fix/"): one.data for key, one in server.objects.items()
        }

    def reopened(self, store: Store) -> Store:
        """Open the same prefix again."""
        assert isinstance(store, S3Store)
        return S3Store("bucket", "pre/fix", store._options)


class TestCrc32c(DialectConformance):
    """A server from before CRC64-NVME."""

    dialect = Dialect(checks=frozenset({"crc32c", "md5"}))


class TestSha256(DialectConformance):
    """A server like Ceph 16: signed payloads, versions compared without quotes."""

    dialect = SHA256


class TestMd5(DialectConformance):
    """A server that checks MD5 and obeys no condition."""

    dialect = MD5


@pytest.mark.parametrize(
    ("dialect", "checksum"),
    [
        (FULL, "crc64nvme"),
        (Dialect(checks=frozenset({"crc64nvme"})), "crc64nvme"),
        (TestCrc32c.dialect, "crc32c"),
        (TestSha256.dialect, "sha256"),
        (TestMd5.dialect, "md5"),
        (NOTHING, "read back"),
    ],
)
def test_the_strongest_check_is_found_and_used(dialect: Dialect, checksum: str) -> None:
    """The probe believes what refuses a wrong value, leaves nothing, and uploads work that way."""
    with speaking(dialect) as (store, server):
        assert store.limits.checksum == checksum
        assert (server.objects, server.uploads) == ({}, {})
        data = some_bytes(3000)
        assert stored(store, "pieces", data).checked == checksum
        assert (
            store.put_whole("whole", BytesBody(data), NONCE, create_only=True).checked == checksum
        )
        assert {one.data for one in server.objects.values()} == {data}
        assert store.stat("pieces").crc64nvme == crc64nvme(data)


# Servers that damage what they store ------------------------------------------------------------


def test_a_server_that_gives_other_bytes_back_is_never_used() -> None:
    """The probe itself sees it, and nothing is stored there."""
    with (
        serving(Dialect(damage=lambda data: data[:-1])) as server,
        closing(opened(server)) as store,
    ):
        with pytest.raises(Never, match="gave"):
            store.put_whole("x", BytesBody(b"data"), NONCE, create_only=True)
        assert "pre/fix/x" not in server.objects


def flipped(data: bytes) -> bytes:
    """Return large bodies with one bit wrong, small ones as they are."""
    return data if len(data) < 2000 else bytes([data[0] ^ 1]) + data[1:]


def test_damage_is_never_called_stored() -> None:
    """A server that passed the probe and damages an object later: reading back sees it."""
    with speaking(Dialect(damage=flipped)) as (store, server):
        with pytest.raises(Again):
            store.put_whole("small", BytesBody(some_bytes(3000)), NONCE, create_only=True)
        with pytest.raises(Gone):
            stored(store, "large", some_bytes(4000))
        with pytest.raises(Again):
            store.put_small("record", some_bytes(3000), None)
        assert server.objects == {}


def test_a_cut_object_is_seen_by_its_size() -> None:
    """Where pieces are checked and the whole is not, the size of the whole is compared."""
    cut = Dialect(
        checks=frozenset({"md5"}), damage=lambda data: data if len(data) < 2000 else data[:-1]
    )
    with speaking(cut) as (store, server):
        with pytest.raises(Gone):
            stored(store, "large", some_bytes(4000))
        assert server.objects == {}


def test_sizes_are_trusted_only_where_somebody_said_so() -> None:
    """With trust_size nothing is read back, and the fact says that only the size was compared."""
    with (
        serving(Dialect(damage=flipped)) as server,
        closing(opened(server, trust_size=True)) as store,
    ):
        assert store.put_whole("x", BytesBody(some_bytes(3000)), NONCE, create_only=True)
        assert stored(store, "y", some_bytes(3000)).checked == "size"
        assert store.stat("y").crc64nvme is None
        assert "trusted" in store.describe()


def test_a_checksum_that_a_server_only_echoes_is_not_believed() -> None:
    """Stat reads an object back where the server returns checksums that it never checked."""
    with speaking(NOTHING) as (store, server):
        data = some_bytes(3000)
        store.put_whole("x", BytesBody(data), NONCE, create_only=True)
        one = server.objects["pre/fix/x"]
        server.objects["pre/fix/x"] = type(one)(
            b"?" + data[1:], one.etag, one.nonce, "AAAAAAAAAAA="
        )
        seen = store.stat("x")
        assert (seen.checked, seen.crc64nvme) == ("read back", crc64nvme(b"?" + data[1:]))
