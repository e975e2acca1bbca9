"""What S3 is asked for and how, and what a fault of it means, on servers that can do little."""

from __future__ import annotations

from contextlib import closing

import pytest

from ckptsyncd.checksum import crc64nvme
from ckptsyncd.core.facts import IfAbsent, IfMatches, Piece
from ckptsyncd.errors import Again, Gone, Lost, Missing, Never, Refused, StoreError
from ckptsyncd.stores.memory import BytesBody
from ckptsyncd.stores.s3.options import S3Options
from ckptsyncd.stores.s3.store import S3Store
from tests.stores.dialects import Dialect, Fault, failing, serving
from tests.stores.samples import NONCE, LyingBody, some_bytes, stored
from tests.stores.speaking import FULL, MD5, NOTHING, SHA256, opened, speaking

pytestmark = pytest.mark.usefixtures("s3_environment")


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
    with speaking(MD5) as (store, server):
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
    for dialect, signed in ((FULL, False), (SHA256, True), (NOTHING, False)):
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
