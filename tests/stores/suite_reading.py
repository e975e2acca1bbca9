"""What is read, listed and deleted is what is there."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from ckptsyncd.core.ports import Store
from ckptsyncd.errors import Missing, Never
from ckptsyncd.stores.memory import BytesBody
from tests.stores.samples import NONCE, answered, some_bytes


def _read(store: Store, key: str, offset: int, length: int) -> bytes:
    return b"".join(store.read_range(key, offset, length))


class Reading:
    """Reading tells the truth."""

    # Reading -----------------------------------------------------------------------------------

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
            read = answered(partial(_read, store, "range", offset, length))
            assert read == data[offset : offset + length]
        assert answered(partial(_read, store, "range", 10, 0)) == b""
        for offset, length in ((4999, 2), (5000, 1), (9000, 5)):
            with pytest.raises(Never):
                answered(partial(_read, store, "range", offset, length))

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
