"""Who wins a name, and what becomes of uploads that do not end well."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace

import pytest

from ckptsyncd.checksum import crc64nvme
from ckptsyncd.core.facts import Begun, IfAbsent, IfMatches, Piece
from ckptsyncd.core.ports import Store
from ckptsyncd.errors import Again, Gone, Lost
from ckptsyncd.stores.memory import BytesBody
from tests.stores.samples import (
    NONCE,
    Behind,
    abandoned,
    piece_bytes_of,
    pieces_of,
    some_bytes,
    stored,
    upload,
)


class Ending:
    """Conditions are kept, and uploads end as they should."""

    # Who wins ----------------------------------------------------------------------------------

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

    # Uploads that do not end well --------------------------------------------------------------

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
