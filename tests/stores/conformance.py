"""What every store promises, as one suite: a store's own file brings a fixture and inherits it."""

from __future__ import annotations

import os
import random
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import Protocol

import pytest

from ckptsyncd.checksum import crc64nvme
from ckptsyncd.core.facts import (
    Begun,
    IfAbsent,
    IfMatches,
    Limits,
    ObjectFact,
    Piece,
    Receipt,
)
from ckptsyncd.core.ports import Store
from ckptsyncd.errors import Again, Gone, Lost, Missing, Never
from ckptsyncd.stores.memory import BytesBody

NONCE = "0123456789abcdef"

#: Names that trainers use or that stores were seen to break on, and the longest that fits S3.
ODD_KEYS = (
    "epoch=3-step=500.ckpt",
    "with space/and+plus",
    "percent%41/100%",
    "hash#mark/question?mark",
    "umlaut-ü/日本語/🚀",
    "quotes'\"/a&b;c:d@e,f$g!",
    "paren(1)[2]{3}~*|<>^`",
    ".hidden/-dash/_underscore",
    "/".join(["d" * 99] * 9),
)


class Behind(Protocol):
    """A look behind the store's back."""

    def __call__(self) -> Mapping[str, bytes]:
        """Return what is stored, key to bytes, without what is only begun."""
        ...


class LyingBody(BytesBody):
    """A body whose checksum is not that of its bytes."""

    def crc64nvme(self) -> int:
        """Return another checksum."""
        return super().crc64nvme() ^ 1


class BrokenBody(BytesBody):
    """A body whose file becomes shorter while it is read."""

    def read(self, most_bytes: int) -> bytes:
        """Return the first half, then fail as a file would."""
        if self._at >= self.length // 2:
            raise OSError(5, "the file became shorter")
        return super().read(min(most_bytes, max(self.length // 2 - self._at, 1)))


def piece_bytes_of(limits: Limits) -> int:
    """Return the smallest pieces that the store takes, or 1,000 bytes."""
    least = max(limits.min_piece_bytes, 1000)
    return -(-least // limits.piece_multiple) * limits.piece_multiple


def some_bytes(count: int, seed: int = 1) -> bytes:
    """Return bytes that no two pieces of a file share."""
    return random.Random(seed).randbytes(count)


def pieces_of(data: bytes, piece_bytes: int) -> list[tuple[Piece, bytes]]:
    """Cut data into its pieces."""
    return [
        (Piece(index, offset, len(data[offset : offset + piece_bytes])),
         data[offset : offset + piece_bytes])
        for index, offset in enumerate(range(0, len(data), piece_bytes))
    ]  # fmt: skip


def upload(store: Store, begun: Begun, data: bytes) -> list[Receipt]:
    """Send every piece, in order."""
    pieces = pieces_of(data, begun.piece_bytes)
    return [store.put_piece(begun, piece, BytesBody(part)) for piece, part in pieces]


def stored(store: Store, key: str, data: bytes, *, create_only: bool = True) -> ObjectFact:
    """Store data as one object in pieces."""
    begun = store.begin(key, len(data), piece_bytes_of(store.limits), NONCE)
    return store.finish(begun, upload(store, begun, data), crc64nvme(data), create_only=create_only)


def read(store: Store, key: str, size: int) -> bytes:
    """Read an object through."""
    return b"".join(store.read_range(key, 0, size))


class Conformance:
    """The suite. ``store`` is empty and fresh, ``behind`` looks past it."""

    # Objects ------------------------------------------------------------------------------------

    @pytest.mark.parametrize("size", [0, 1, 4096])
    def test_a_small_file_is_stored_whole(self, store: Store, behind: Behind, size: int) -> None:
        """put_whole keeps every byte, and stat tells size, checksum and nonce."""
        data = some_bytes(size)
        put = store.put_whole("dir/small", BytesBody(data), NONCE, create_only=True)
        assert behind() == {"dir/small": data}
        assert (put.key, put.size, put.crc64nvme) == ("dir/small", size, crc64nvme(data))
        assert put.checked in ("crc64nvme", "crc32c", "sha256", "md5", "read back")
        seen = store.stat("dir/small")
        assert (seen.size, seen.crc64nvme, seen.nonce) == (size, crc64nvme(data), NONCE)
        assert seen.version == put.version
        assert read(store, "dir/small", size) == data

    @pytest.mark.parametrize("over", [-1, 0, 1])
    def test_sizes_around_a_piece_are_stored_whole(
        self, store: Store, behind: Behind, over: int
    ) -> None:
        """One byte less than a piece, exactly one, and one byte more all arrive whole."""
        data = some_bytes(piece_bytes_of(store.limits) + over)
        put = stored(store, "boundary", data)
        assert behind() == {"boundary": data}
        seen = store.stat("boundary")
        assert (seen.size, seen.crc64nvme, seen.nonce) == (len(data), crc64nvme(data), NONCE)
        assert seen.version == put.version

    @pytest.mark.parametrize("size", [0, 1])
    def test_the_smallest_files_can_be_uploaded_in_pieces(
        self, store: Store, behind: Behind, size: int
    ) -> None:
        """An upload of no piece and one of a single byte become objects as well."""
        data = some_bytes(size)
        stored(store, "tiny", data)
        assert behind() == {"tiny": data}

    def test_pieces_arrive_in_any_order_and_again(self, store: Store, behind: Behind) -> None:
        """Pieces out of order, and one sent twice with other bytes first, become one object."""
        if not store.limits.pieces_in_parallel:
            pytest.skip("this store takes pieces in order only")
        piece_bytes = piece_bytes_of(store.limits)
        data = some_bytes(2 * piece_bytes + 7)
        begun = store.begin("multi", len(data), piece_bytes, NONCE)
        first, second, third = pieces_of(data, piece_bytes)
        receipts = [store.put_piece(begun, third[0], BytesBody(third[1]))]
        store.put_piece(begun, first[0], BytesBody(some_bytes(piece_bytes, seed=2)))
        receipts += [
            store.put_piece(begun, piece, BytesBody(part)) for piece, part in (second, first)
        ]
        assert behind() == {}
        put = store.finish(begun, receipts, crc64nvme(data), create_only=True)
        assert behind() == {"multi": data}
        assert (put.size, put.crc64nvme, put.nonce) == (len(data), crc64nvme(data), NONCE)

    def test_pieces_arrive_from_several_threads(self, store: Store, behind: Behind) -> None:
        """Several hands may work on one upload at once."""
        if not store.limits.pieces_in_parallel:
            pytest.skip("this store takes pieces in order only")
        piece_bytes = piece_bytes_of(store.limits)
        data = some_bytes(3 * piece_bytes)
        begun = store.begin("threads", len(data), piece_bytes, NONCE)

        def put(pair: tuple[Piece, bytes]) -> Receipt:
            return store.put_piece(begun, pair[0], BytesBody(pair[1]))

        with ThreadPoolExecutor(3) as pool:
            receipts = list(pool.map(put, pieces_of(data, piece_bytes)))
        store.finish(begun, receipts, crc64nvme(data), create_only=True)
        assert behind() == {"threads": data}

    def test_odd_names_come_back_as_they_were(self, store: Store, behind: Behind) -> None:
        """A key is stored, listed, read and deleted under exactly its name."""
        for key in ODD_KEYS:
            store.put_whole(key, BytesBody(b"x"), NONCE, create_only=True)
            assert behind() == {key: b"x"}
            assert [fact.key for fact in store.list("")] == [key]
            assert read(store, key, 1) == b"x"
            assert store.stat(key).key == key
            store.delete(key)
            assert behind() == {}

    def test_keys_that_could_lead_elsewhere_are_refused(self, store: Store) -> None:
        """A key that is empty, leaves the prefix or is no text is refused, whatever is asked."""
        for key in ("", "/a", "a//b", "a/", "a/../b", "..", ".", "a\0b", "\udcff"):
            with pytest.raises(Never):
                store.begin(key, 1, 1, NONCE)
            with pytest.raises(Never):
                store.put_whole(key, BytesBody(b"x"), NONCE, create_only=True)
            with pytest.raises(Never):
                store.put_small(key, b"x", None)
            with pytest.raises((Never, Missing)):
                store.stat(key)

    def test_a_key_over_the_limit_is_refused(self, store: Store) -> None:
        """The limit itself fits as far as the store says, one byte more is refused by us."""
        with pytest.raises(Never):
            store.put_small("k" * (store.limits.max_key_bytes + 1), b"x", None)

    def test_an_impossible_plan_is_refused(self, store: Store) -> None:
        """Too large an object, too many pieces and pieces too large are refused before any byte."""
        limits = store.limits
        for size, piece_bytes in (
            (limits.max_object_bytes + 1, limits.max_piece_bytes),
            (limits.max_pieces * limits.min_piece_bytes + 1, limits.min_piece_bytes),
            (10, limits.max_piece_bytes + 1),
            (10, 0),
        ):
            with pytest.raises(Never):
                store.begin("plan", size, piece_bytes, NONCE)

    # Nothing wrong is ever kept -----------------------------------------------------------------

    def test_a_small_file_with_a_wrong_checksum_is_not_kept(
        self, store: Store, behind: Behind
    ) -> None:
        """put_whole with a body that is not what its checksum says fails and leaves nothing."""
        with pytest.raises(Again):
            store.put_whole("lie", LyingBody(some_bytes(5000)), NONCE, create_only=True)
        assert behind() == {}

    def test_a_piece_with_a_wrong_checksum_is_refused_and_can_be_sent_again(
        self, store: Store, behind: Behind
    ) -> None:
        """A lying piece fails, nothing becomes visible, and the right one then makes the object."""
        data = some_bytes(piece_bytes_of(store.limits))
        begun = store.begin("lie", len(data), len(data), NONCE)
        with pytest.raises(Again):
            store.put_piece(begun, Piece(0, 0, len(data)), LyingBody(data))
        assert behind() == {}
        store.finish(begun, upload(store, begun, data), crc64nvme(data), create_only=True)
        assert behind() == {"lie": data}

    def test_a_wrong_checksum_of_the_whole_drops_the_upload(
        self, store: Store, behind: Behind
    ) -> None:
        """Pieces that do not add up are Gone: the object never appears, and a new upload may."""
        data = some_bytes(3000)
        begun = store.begin("whole", len(data), piece_bytes_of(store.limits), NONCE)
        receipts = upload(store, begun, data)
        with pytest.raises(Gone):
            store.finish(begun, receipts, crc64nvme(data) ^ 1, create_only=True)
        assert behind() == {}
        assert list(store.uploads("whole")) == []
        stored(store, "whole", data)
        assert behind() == {"whole": data}

    def test_a_body_that_ends_early_passes_its_own_error(
        self, store: Store, behind: Behind
    ) -> None:
        """What the local file raises is no store error: the store is not to blame."""
        data = some_bytes(piece_bytes_of(store.limits))
        begun = store.begin("short", len(data), len(data), NONCE)
        with pytest.raises(OSError, match="became shorter"):
            store.put_piece(begun, Piece(0, 0, len(data)), BrokenBody(data))
        with pytest.raises(OSError, match="became shorter"):
            store.put_whole("short", BrokenBody(data), NONCE, create_only=True)
        assert behind() == {}
        store.abandon(begun)

    def test_pieces_that_are_missing_or_misplaced_are_refused(self, store: Store) -> None:
        """A finish without every piece, and a piece that is not where it belongs, are refused."""
        piece_bytes = piece_bytes_of(store.limits)
        begun = store.begin("gap", 2 * piece_bytes, piece_bytes, NONCE)
        data = some_bytes(piece_bytes)
        receipt = store.put_piece(begun, Piece(0, 0, piece_bytes), BytesBody(data))
        with pytest.raises(Never):
            store.finish(begun, [receipt], crc64nvme(data), create_only=True)
        with pytest.raises(Never):
            store.put_piece(begun, Piece(1, 5, piece_bytes), BytesBody(data))
        with pytest.raises(Never):
            store.put_piece(begun, Piece(1, piece_bytes, 3), BytesBody(b"abc"))
        store.abandon(begun)

    # Who wins -----------------------------------------------------------------------------------

    def test_create_only_refuses_the_second(self, store: Store, behind: Behind) -> None:
        """A key that is taken is Lost to both ways of storing, and its bytes stay."""
        if not store.limits.create_only_finish:
            pytest.skip("this store cannot refuse a second finish")
        store.put_whole("taken", BytesBody(b"first"), NONCE, create_only=True)
        with pytest.raises(Lost):
            store.put_whole("taken", BytesBody(b"second"), "other", create_only=True)
        with pytest.raises(Lost):
            stored(store, "taken", b"second", create_only=True)
        assert behind() == {"taken": b"first"}
        assert store.stat("taken").nonce == NONCE
        for begun in store.uploads("taken"):
            abandoned(store, begun)

    def test_without_create_only_the_last_one_wins(self, store: Store, behind: Behind) -> None:
        """Companions are overwritten in place, by both ways of storing."""
        store.put_whole("log", BytesBody(b"first"), NONCE, create_only=False)
        store.put_whole("log", BytesBody(b"second"), "other", create_only=False)
        assert behind() == {"log": b"second"}
        assert store.stat("log").nonce == "other"
        stored(store, "log", b"third", create_only=False)
        assert behind() == {"log": b"third"}

    def test_one_of_many_creators_wins(self, store: Store, behind: Behind) -> None:
        """Of several that create one record at once exactly one wins, and it is the one stored."""
        if not store.limits.compare_and_set:
            pytest.skip("this store has one writer only")

        def create(number: int) -> int | None:
            try:
                store.put_small("race", b"%d" % number, IfAbsent())
            except (Lost, Again):
                return None
            return number

        with ThreadPoolExecutor(6) as pool:
            winners = [won for won in pool.map(create, range(6)) if won is not None]
        assert behind() == {"race": b"%d" % winners[0]}
        assert len(winners) == 1

    def test_compare_and_set_loses_cleanly(self, store: Store, behind: Behind) -> None:
        """Over the version that it names a record is replaced; over any other it is Lost."""
        if not store.limits.compare_and_set:
            pytest.skip("this store has one writer only")
        first = store.put_small("latest", b"1", IfAbsent())
        with pytest.raises(Lost):
            store.put_small("latest", b"x", IfAbsent())
        second = store.put_small("latest", b"2", IfMatches(first))
        assert second != first
        with pytest.raises(Lost):
            store.put_small("latest", b"3", IfMatches(first))
        assert behind() == {"latest": b"2"}
        assert store.get_small("latest", 100) == (b"2", second)
        with pytest.raises(Lost):
            store.put_small("absent", b"1", IfMatches(first))
        assert store.put_small("latest", b"4", None)
        assert behind() == {"latest": b"4"}

    # Uploads that do not end well ---------------------------------------------------------------

    def test_a_begun_upload_is_found_again(self, store: Store, behind: Behind) -> None:
        """uploads() names what was begun below a prefix, and nothing is visible as an object."""
        begun = store.begin("run/a", 2000, piece_bytes_of(store.limits), NONCE)
        other = store.begin("other/b", 2000, piece_bytes_of(store.limits), NONCE)
        found = list(store.uploads("run/"))
        assert [(one.key, one.token) for one in found] == [(begun.key, begun.token)]
        assert {one.token for one in store.uploads("")} == {begun.token, other.token}
        assert list(store.list("run/")) == []
        assert behind() == {}
        abandoned(store, begun)
        abandoned(store, other)

    def test_an_upload_is_resumed_from_its_token(self, store: Store, behind: Behind) -> None:
        """What a restarted daemon has in its ledger, a begun upload and receipts, is enough."""
        piece_bytes = piece_bytes_of(store.limits)
        data = some_bytes(piece_bytes + 9)
        begun = store.begin("resumed", len(data), piece_bytes, NONCE)
        first, second = pieces_of(data, piece_bytes)
        receipt = store.put_piece(begun, first[0], BytesBody(first[1]))
        again = self.reopened(store)
        kept = Begun(begun.key, begun.token, begun.nonce, begun.size, begun.piece_bytes)
        rest = again.put_piece(kept, second[0], BytesBody(second[1]))
        again.finish(kept, [replace(receipt), rest], crc64nvme(data), create_only=True)
        assert behind() == {"resumed": data}

    def reopened(self, store: Store) -> Store:
        """Return the store as another process would open it."""
        return store

    def test_abandon_leaves_nothing(self, store: Store, behind: Behind) -> None:
        """An abandoned upload is not listed, its pieces are gone; abandoning again is fine."""
        if not store.limits.can_abandon:
            pytest.skip("this store has no way to abandon")
        data = some_bytes(3000)
        begun = store.begin("dropped", len(data), piece_bytes_of(store.limits), NONCE)
        upload(store, begun, data)
        abandoned(store, begun)
        assert list(store.uploads("")) == []
        assert behind() == {}
        store.abandon(begun)

    def test_an_abandoned_upload_is_gone(self, store: Store) -> None:
        """Pieces and finish of an upload that was abandoned are answered with Gone."""
        if not store.limits.can_abandon:
            pytest.skip("this store has no way to abandon")
        data = some_bytes(3000)
        begun = store.begin("gone", len(data), store.limits.max_piece_bytes, NONCE)
        receipts = upload(store, begun, data)
        abandoned(store, begun)
        with pytest.raises(Gone):
            store.put_piece(begun, Piece(0, 0, len(data)), BytesBody(data))
        with pytest.raises(Gone):
            store.finish(begun, receipts, crc64nvme(data), create_only=True)

    def test_finishing_twice_leaves_one_object(self, store: Store, behind: Behind) -> None:
        """The second finish succeeds, is Gone or is Lost; the object is ours and whole."""
        data = some_bytes(3000)
        begun = store.begin("twice", len(data), piece_bytes_of(store.limits), NONCE)
        receipts = upload(store, begun, data)
        store.finish(begun, receipts, crc64nvme(data), create_only=True)
        with suppress(Gone, Lost):
            store.finish(begun, receipts, crc64nvme(data), create_only=True)
        assert behind() == {"twice": data}
        seen = store.stat("twice")
        assert (seen.size, seen.crc64nvme, seen.nonce) == (len(data), crc64nvme(data), NONCE)
        assert list(store.uploads("")) == []

    # Reading ------------------------------------------------------------------------------------

    def test_what_is_missing_is_said_to_be_missing(self, store: Store) -> None:
        """stat, get_small and read_range raise Missing, and delete succeeds."""
        store.put_small("there", b"x", None)
        with pytest.raises(Missing):
            store.stat("nowhere")
        with pytest.raises(Missing):
            store.get_small("nowhere/deep", 10)
        with pytest.raises(Missing):
            list(store.read_range("nowhere", 0, 1))
        store.delete("nowhere")
        store.delete("nowhere/deep/down")
        store.delete("there")
        store.delete("there")
        with pytest.raises(Missing):
            store.stat("there")

    def test_an_empty_store_reads_as_empty(self, store: Store) -> None:
        """Before anything was written there is nothing, and that is no error."""
        assert list(store.list("")) == []
        assert list(store.uploads("")) == []
        with pytest.raises(Missing):
            store.get_small("x", 10)

    def test_ranges_are_exact(self, store: Store) -> None:
        """read_range yields exactly what was asked for, and refuses what is not there."""
        data = some_bytes(5000)
        store.put_whole("range", BytesBody(data), NONCE, create_only=True)
        for offset, length in ((0, 5000), (0, 1), (4999, 1), (17, 1234)):
            blocks = store.read_range("range", offset, length)
            assert b"".join(blocks) == data[offset : offset + length]
        assert b"".join(store.read_range("range", 10, 0)) == b""
        for offset, length in ((4999, 2), (5000, 1), (9000, 5)):
            with pytest.raises(Never):
                list(store.read_range("range", offset, length))

    def test_a_record_over_its_size_is_refused(self, store: Store) -> None:
        """get_small does not load more than it was told to."""
        store.put_small("record", b"12345", None)
        assert store.get_small("record", 5)[0] == b"12345"
        with pytest.raises(Never):
            store.get_small("record", 4)

    def test_lists_are_bounded_by_the_prefix(self, store: Store) -> None:
        """A list yields every key below a prefix of any length, sorted where the store sorts."""
        keys = ["a/b/1", "a/b/2", "a.b", "a-b", "a/c", "b", "ab/c", "a/b.x"]
        for key in keys:
            store.put_small(key, b"x" * len(key), None)
        for prefix in ("", "a", "a/", "a/b", "a/b/", "a/b/1", "zz"):
            found = list(store.list(prefix))
            found = found if self.sorts else sorted(found, key=lambda fact: fact.key)
            expected = sorted(key for key in keys if key.startswith(prefix))
            assert [fact.key for fact in found] == expected
            assert [fact.size for fact in found] == [len(key) for key in expected]

    #: Whether this store lists in the order of keys.
    sorts = True

    def test_long_lists_come_page_by_page(self, store: Store) -> None:
        """More keys than one page holds are all listed, once."""
        keys = [f"page/{number:04}" for number in range(self.many)]
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda key: store.put_small(key, b"x", None), keys))
        assert [fact.key for fact in store.list("page/")] == keys

    #: Keys of the paging test: more than one page of this store.
    many = 1001

    def test_it_describes_itself(self, store: Store) -> None:
        """The description tells in one line what was found out, and no secret."""
        assert store.limits.checksum
        said = store.describe()
        assert "\n" not in said
        assert os.environ.get("AWS_SECRET_ACCESS_KEY", "?") not in said


def abandoned(store: Store, begun: Begun) -> None:
    """Abandon an upload as the brain does: again, when the store says Again."""
    for _ in range(3):
        try:
            store.abandon(begun)
        except Again:
            continue
        return
    msg = "the upload could not be abandoned"
    raise AssertionError(msg)
