"""What is stored is what was sent, under exactly its name, or it is refused."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from ckptsyncd.checksum import crc64nvme
from ckptsyncd.core.facts import Piece, Receipt
from ckptsyncd.core.ports import Store
from ckptsyncd.errors import Again, Gone, Missing, Never
from ckptsyncd.stores.memory import BytesBody
from tests.stores.samples import (
    NONCE,
    ODD_KEYS,
    Behind,
    BrokenBody,
    LyingBody,
    Mark,
    piece_bytes_of,
    pieces_of,
    read,
    some_bytes,
    stored,
    upload,
)


class Storing:
    """Objects and records arrive whole, and nothing wrong is ever kept."""

    # Objects -----------------------------------------------------------------------------------

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

    @pytest.fixture
    def mark(self, store: Store) -> Mark:
        """Ask the store itself, where nothing else could be asked."""
        return lambda key: store.stat(key).nonce

    def test_an_object_carries_the_nonce_of_its_upload(self, store: Store, mark: Mark) -> None:
        """A plain client sees it beside the bytes, however they were sent, and none on a record."""
        store.put_whole("whole", BytesBody(b"bytes"), NONCE, create_only=True)
        stored(store, "pieces", b"bytes")
        store.put_small("record", b"bytes", None)
        assert (mark("whole"), mark("pieces"), mark("record")) == (NONCE, NONCE, None)

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

    # Nothing wrong is ever kept ----------------------------------------------------------------

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
