"""S3 keeps every promise on servers that check something else, and tells what a fault means."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import cache

import pytest

from ckptsyncd.checksum import crc64nvme
from ckptsyncd.core.facts import IfAbsent, IfMatches, Piece
from ckptsyncd.core.ports import Store
from ckptsyncd.errors import Again, Gone, Lost, Missing, Never, Refused, StoreError
from ckptsyncd.stores.memory import BytesBody
from ckptsyncd.stores.s3.options import S3Options
from ckptsyncd.stores.s3.store import S3Store
from tests.stores.conformance import Conformance
from tests.stores.dialects import Dialect, DialectServer, Fault, failing, serving
from tests.stores.samples import NONCE, Behind, LyingBody, some_bytes, stored

pytestmark = pytest.mark.usefixtures("s3_environment")

#: Checks everything, as S3 itself does.
FULL = Dialect(checks=frozenset({"crc64nvme", "crc32c", "sha256", "md5"}), whole_check=True)
NOTHING = Dialect()


def opened(server: DialectServer, *, trust_size: bool = False) -> S3Store:
    """Open a store on a server, with time-outs as short as a test likes."""
    options = S3Options(
        endpoint_url=server.endpoint,
        trust_size=trust_size,
        connect_timeout_seconds=2.0,
        read_timeout_seconds=2.0,
    )
    return S3Store("bucket", "pre/fix", options)


@contextmanager
def speaking(dialect: Dialect) -> Iterator[tuple[S3Store, DialectServer]]:
    """Run a server and a store on it that has tried it out already."""
    with serving(dialect) as server, closing(opened(server)) as store:
        assert store.limits
        yield store, server


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

    dialect = Dialect(checks=frozenset({"sha256", "md5"}), matches="bare", create_only_finish=False)


class TestMd5(DialectConformance):
    """A server that checks MD5 and obeys no condition."""

    dialect = Dialect(
        checks=frozenset({"md5"}), create_only_put=False, create_only_finish=False, matches=""
    )


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


# Faults -----------------------------------------------------------------------------------------


def test_a_foreign_object_is_not_read_through() -> None:
    """Stat reads back only what carries a nonce of ours, since a foreign object may be huge."""
    with speaking(Dialect(keeps_metadata=False)) as (store, _):
        store.put_whole("x", BytesBody(b"data"), NONCE, create_only=True)
        seen = store.stat("x")
        assert (seen.nonce, seen.crc64nvme, seen.checked) == (None, None, "size")


@pytest.mark.parametrize(
    ("fault", "kind", "ambiguous"),
    [
        (Fault(503, "SlowDown", headers={"Retry-After": "7"}), Again, False),
        (Fault(500, "InternalError"), Again, True),
        (Fault(502, ""), Again, True),
        (Fault(0, after=True), Again, True),
        (Fault(0), Again, True),
        (Fault(403, "AccessDenied"), Refused, False),
        (Fault(403, "RequestTimeTooSkewed"), Again, False),
        (Fault(400, "ExpiredToken"), Refused, False),
        (Fault(404, "NoSuchBucket"), Never, False),
        (Fault(409, "ConditionalRequestConflict"), Again, False),
        (Fault(413, "EntityTooLarge"), Never, False),
    ],
)
def test_a_fault_of_a_write_is_told_as_what_it_is(
    fault: Fault,
    kind: type[StoreError],
    ambiguous: bool,  # noqa: FBT001 - a row of the table
) -> None:
    """Each answer, or none, becomes its kind, and says whether the write may have happened."""
    with speaking(FULL) as (store, server):
        server.dialect = failing(FULL, "PUT", "/x", fault)
        with pytest.raises(kind) as caught:
            store.put_small("x", b"data", IfAbsent())
        assert caught.value.ambiguous is ambiguous
        assert caught.value.wait_seconds == (7 if fault.headers else None)
        assert ("pre/fix/x" in server.objects) is fault.after


def test_a_lost_answer_shows_as_lost_and_the_object_as_ours() -> None:
    """After an answer that was lost, the same finish again is no failure without a look."""
    with speaking(FULL) as (store, server):
        data = some_bytes(3000)
        begun = store.begin("x", 3000, 3000, NONCE)
        receipt = store.put_piece(begun, Piece(0, 0, 3000), BytesBody(data))
        server.dialect = failing(FULL, "POST", "uploadId", Fault(after=True))
        with pytest.raises(Again) as caught:
            store.finish(begun, [receipt], crc64nvme(data), create_only=True)
        assert caught.value.ambiguous
        with pytest.raises((Gone, Lost)):
            store.finish(begun, [receipt], crc64nvme(data), create_only=True)
        seen = store.stat("x")
        assert (seen.nonce, seen.crc64nvme) == (NONCE, crc64nvme(data))


def test_what_was_stored_but_not_proved_is_ambiguous() -> None:
    """Where reading back fails, the object is neither removed nor called stored."""
    with speaking(NOTHING) as (store, server):
        server.dialect = failing(NOTHING, "GET", "/x", Fault(500, "InternalError"))
        with pytest.raises(Again) as caught:
            store.put_whole("x", BytesBody(b"data"), NONCE, create_only=True)
        assert caught.value.ambiguous
        assert server.objects["pre/fix/x"].data == b"data"


def test_an_answer_that_ends_early_is_again() -> None:
    """Half of a range, of a record or of a read-back is never taken for the whole."""
    with speaking(NOTHING) as (store, server):
        data = some_bytes(3000)
        store.put_whole("x", BytesBody(data), NONCE, create_only=True)
        server.dialect = failing(NOTHING, "GET", "/x", Fault(cut=True), times=3)
        with pytest.raises(Again):
            list(store.read_range("x", 0, 3000))
        with pytest.raises(Again):
            store.get_small("x", 3000)
        with pytest.raises(Again):
            store.stat("x")
        assert store.stat("x").crc64nvme == crc64nvme(data)


def test_a_server_that_is_not_there_is_again() -> None:
    """A refused connection cannot have acted, and a later try works once the server is back."""
    with serving(FULL) as server:
        store = opened(server)
    with closing(store), pytest.raises(Again) as caught:
        store.put_small("x", b"data", None)
    assert not caught.value.ambiguous


def test_a_failed_probe_is_tried_again() -> None:
    """An error while trying the server out is raised, and the next call tries again."""
    slow = failing(FULL, "PUT", "probe", Fault(503, "SlowDown"))
    with serving(slow) as server, closing(opened(server)) as store:
        with pytest.raises(Again):
            store.put_small("x", b"data", None)
        assert store.put_small("x", b"data", None)
        assert store.limits.checksum == "crc64nvme"


def test_reading_needs_no_right_to_write() -> None:
    """Every reading method works where each write is refused: restore tries nothing out."""
    with speaking(FULL) as (store, server):
        store.put_small("x", b"data", None)
        server.dialect = failing(FULL, "PUT", "", Fault(403, "AccessDenied"), times=100)
        with closing(opened(server)) as reader:
            assert reader.get_small("x", 10)[0] == b"data"
            assert b"".join(reader.read_range("x", 1, 2)) == b"at"
            assert [fact.key for fact in reader.list("")] == ["x"]
            assert reader.stat("x").size == 4
            assert "not tried out" in reader.describe()
            with pytest.raises(Refused):
                reader.put_small("y", b"", None)


def test_the_probe_says_what_it_had_to_leave() -> None:
    """Where removing is forbidden the store works all the same, and describe says what is left."""
    forbidden = failing(FULL, "DELETE", "probe", Fault(403, "AccessDenied"), times=9)
    with serving(forbidden) as server, closing(opened(server)) as store:
        assert not store.limits.can_abandon
        assert "left" in store.describe()


def test_without_conditions_a_single_writer_is_still_told_what_it_sees() -> None:
    """Where the server ignores conditions, the store looks first: enough for one writer."""
    with speaking(TestMd5.dialect) as (store, server):
        version = store.put_small("x", b"1", IfAbsent())
        with pytest.raises(Lost):
            store.put_small("x", b"2", IfAbsent())
        with pytest.raises(Lost):
            store.put_small("x", b"2", IfMatches('"other"'))
        with pytest.raises(Lost):
            store.put_small("y", b"2", IfMatches(version))
        store.put_small("x", b"2", IfMatches(version))
        with pytest.raises(Lost):
            stored(store, "x", b"3", create_only=True)
        assert server.objects["pre/fix/x"].data == b"2"


def test_a_lie_is_removed_where_nothing_checks() -> None:
    """Where only reading back checks, a body that changed meanwhile leaves no object behind."""
    with speaking(NOTHING) as (store, server):
        with pytest.raises(Again):
            store.put_whole("x", LyingBody(some_bytes(3000)), NONCE, create_only=True)
        assert server.objects == {}
        with pytest.raises(Missing):
            store.stat("x")


def test_small_bodies_do_not_wait_for_a_go_ahead() -> None:
    """Only a first large body asks for 100-continue: it costs a round trip each time."""
    sizes = {"large": 3_000_000, "small": 3000, "larger": 4_000_000}
    with speaking(FULL) as (store, server):
        for key, size in sizes.items():
            store.put_whole(key, BytesBody(some_bytes(size)), NONCE, create_only=True)
        large = [one for one in server.requests if one.size >= 3000]
        expects = {one.path.rpartition("/")[2]: "expect" in one.headers for one in large}
        assert expects == {"large": True, "small": False, "larger": False}


def test_encryption_is_asked_for_everything_and_a_class_for_data_only() -> None:
    """Records stay in the default class (they are small and read often); nothing stays in clear."""
    with serving(FULL) as server:
        options = S3Options(
            endpoint_url=server.endpoint, sse="aws:kms", kms_key_id="k1", storage_class="COLD"
        )
        with closing(S3Store("bucket", "", options)) as store:
            store.put_small("record", b"1", None)
            store.put_whole("small", BytesBody(b"1"), NONCE, create_only=True)
            stored(store, "large", some_bytes(2000))
        asked = {
            (one.method, one.path.partition("?")[0].rpartition("/")[2]): (
                one.headers.get("x-amz-server-side-encryption"),
                one.headers.get("x-amz-server-side-encryption-aws-kms-key-id"),
                one.headers.get("x-amz-storage-class"),
            )
            for one in server.requests
            if "probe" not in one.path and ("uploads" in one.path or "?" not in one.path)
        }
    assert asked == {
        ("PUT", "record"): ("aws:kms", "k1", None),
        ("PUT", "small"): ("aws:kms", "k1", "COLD"),
        ("POST", "large"): ("aws:kms", "k1", "COLD"),
    }


def test_payloads_are_signed_only_where_that_is_what_is_checked() -> None:
    """A hash costs as much as everything else together, and protects where a server looks at it."""
    for dialect, signed in ((FULL, False), (TestSha256.dialect, True), (NOTHING, False)):
        with speaking(dialect) as (store, server):
            store.put_whole("x", BytesBody(some_bytes(3000)), NONCE, create_only=False)
            (one,) = [one for one in server.requests if one.path == "/bucket/pre/fix/x" if one.size]
            assert (one.headers["x-amz-content-sha256"] != "UNSIGNED-PAYLOAD") is signed


def test_no_body_is_ever_framed() -> None:
    """No request carries a trailer or chunks, which old dialects refuse or store as data."""
    with speaking(FULL) as (store, server):
        stored(store, "x", some_bytes(3000))
        for one in server.requests:
            assert "x-amz-trailer" not in one.headers
            assert "transfer-encoding" not in one.headers
            assert "content-encoding" not in one.headers
