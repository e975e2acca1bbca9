"""The counting store keeps every promise of the store behind it, and counts what was asked."""

from __future__ import annotations

import pytest

from ckptsyncd.core.facts import IfAbsent, Piece
from ckptsyncd.core.snapshot import StoreCalls
from ckptsyncd.edge.clock import ticks
from ckptsyncd.errors import Again, Lost
from ckptsyncd.stores.counted import CountedStore
from ckptsyncd.stores.faulty import Fault, FaultyStore
from ckptsyncd.stores.memory import BytesBody, MemoryStore
from tests.stores.conformance import Conformance
from tests.stores.samples import Behind


class TestCounted(Conformance):
    """The suite on a store in memory behind the counter."""

    @pytest.fixture
    def memory(self) -> MemoryStore:
        """Return an empty store."""
        return MemoryStore()

    @pytest.fixture
    def store(self, memory: MemoryStore) -> CountedStore:
        """Return the counter before it."""
        return CountedStore(memory, ticks)

    @pytest.fixture
    def behind(self, memory: MemoryStore) -> Behind:
        """Look at its dictionary."""
        return memory.objects


def counts(store: CountedStore) -> dict[tuple[str, str], tuple[int, int]]:
    """Return count and bytes by verb and outcome."""
    return {(row.verb, row.outcome): (row.count, row.bytes) for row in store.calls()}


def test_bytes_count_when_they_arrived() -> None:
    """Pieces, small files and records that were done count with their bytes; lists when read."""
    store = CountedStore(MemoryStore(), ticks)
    begun = store.begin("a", 10, 5, "n")
    for index in range(2):
        store.put_piece(begun, Piece(index, index * 5, 5), BytesBody(b"12345"))
    store.put_small("r", b"123", IfAbsent())
    with pytest.raises(Lost):
        store.put_small("r", b"1234567", IfAbsent())
    assert [fact.key for fact in store.list("")] == ["r"]
    assert b"".join(store.read_range("r", 1, 2)) == b"23"
    assert counts(store) == {
        ("begin", "done"): (1, 0),
        ("put_piece", "done"): (2, 10),
        ("put_small", "done"): (1, 3),
        ("put_small", "lost"): (1, 0),
        ("list", "done"): (1, 0),
        ("read_range", "done"): (1, 2),
    }


def test_failures_count_by_their_kind() -> None:
    """Each error passes through unchanged and is counted under its kind."""
    error = Again("HTTP 503")
    store = CountedStore(FaultyStore(MemoryStore(), lambda *_: Fault(error)), lambda: 7.0)
    with pytest.raises(Again) as caught:
        store.stat("a")
    assert caught.value is error
    assert store.calls() == (StoreCalls("stat", "again", 1, 0, 0.0),)


def test_progress_moves_with_bytes_and_answers() -> None:
    """Progress grows while a body is read, and with every call that ends, however badly."""
    store = CountedStore(FaultyStore(MemoryStore(), lambda *_: None), ticks)
    seen = [store.progress()]

    class Watched(BytesBody):
        """A body that looks at the progress between two reads."""

        def read(self, most_bytes: int) -> bytes:
            """Read one byte."""
            seen.append(store.progress())
            return bytes(super().read(min(most_bytes, 1)))

    store.put_whole("a", Watched(b"123"), "n", create_only=True)
    assert seen == sorted(seen)
    assert seen[-1] == 3
    assert store.progress() > 3
