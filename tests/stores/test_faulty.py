"""A store with weather: faults come where they are chosen, before or after the act."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ckptsyncd.core.facts import IfAbsent, Piece
from ckptsyncd.errors import Again, Lost, Never
from ckptsyncd.stores.faulty import Fault, FaultyStore
from ckptsyncd.stores.memory import ROOMY, BytesBody, MemoryStore
from tests.stores.conformance import Conformance
from tests.stores.samples import Behind, some_bytes, stored


class TestFaultyWithoutFaults(Conformance):
    """The suite on a store whose owner never chooses a fault."""

    @pytest.fixture
    def inner(self) -> MemoryStore:
        """Return the store behind."""
        return MemoryStore()

    @pytest.fixture
    def store(self, inner: MemoryStore) -> FaultyStore:
        """Return the store before it."""
        return FaultyStore(inner, lambda _verb, _key: None)

    @pytest.fixture
    def behind(self, inner: MemoryStore) -> Behind:
        """Look into the store behind."""
        return inner.objects


def test_a_fault_before_leaves_no_trace() -> None:
    """The store behind is not asked at all."""
    inner = MemoryStore()
    store = FaultyStore(inner, lambda verb, _: Fault(Again("no")) if verb == "put_small" else None)
    with pytest.raises(Again):
        store.put_small("x", b"1", None)
    assert inner.objects() == {}


def test_a_fault_after_is_a_lost_answer() -> None:
    """The store behind has acted, and only the answer is an error."""
    inner = MemoryStore()
    faults = [Fault(Again("lost", ambiguous=True), after=True)]
    store = FaultyStore(inner, lambda _verb, _key: faults.pop() if faults else None)
    with pytest.raises(Again):
        store.put_small("x", b"1", IfAbsent())
    assert inner.objects() == {"x": b"1"}
    with pytest.raises(Lost):
        store.put_small("x", b"1", IfAbsent())


def test_a_list_fails_at_its_start_or_at_its_end() -> None:
    """A stream's fault comes before the first item, or after the last."""
    inner = MemoryStore()
    inner.put_small("x", b"1", None)
    for after in (False, True):
        fault = Fault(Again("no"), after=after)
        store = FaultyStore(inner, lambda _verb, _key, fault=fault: fault)  # type: ignore[misc]
        found: list[str] = []
        with pytest.raises(Again):
            found.extend(fact.key for fact in store.list(""))
        with pytest.raises(Again):
            list(store.read_range("x", 0, 1))


def test_the_chooser_is_told_verb_and_key() -> None:
    """Every method asks once, with its own name and the key or prefix."""
    asked: list[tuple[str, str]] = []

    def choose(verb: str, key: str) -> None:
        asked.append((verb, key))

    store = FaultyStore(MemoryStore(), choose)
    stored(store, "big", some_bytes(1500))
    begun = store.begin("left", 1, 1, "n")
    store.abandon(begun)
    store.put_whole("small", BytesBody(b"x"), "n", create_only=True)
    store.put_small("rec", b"1", None)
    store.get_small("rec", 9)
    store.stat("rec")
    list(store.read_range("rec", 0, 1))
    list(store.list("r"))
    list(store.uploads(""))
    store.delete("rec")
    assert asked == [
        ("begin", "big"),
        ("put_piece", "big"),
        ("put_piece", "big"),
        ("finish", "big"),
        ("begin", "left"),
        ("abandon", "left"),
        ("put_whole", "small"),
        ("put_small", "rec"),
        ("get_small", "rec"),
        ("stat", "rec"),
        ("read_range", "rec"),
        ("list", "r"),
        ("uploads", ""),
        ("delete", "rec"),
    ]


# A store in memory does what its limits say, no more -------------------------------------------


def test_where_create_only_is_not_promised_the_second_wins() -> None:
    """Whoever relies on a promise that the limits do not make is found out."""
    store = MemoryStore(replace(ROOMY, create_only_finish=False))
    stored(store, "x", b"first")
    stored(store, "x", b"second")
    assert store.objects() == {"x": b"second"}


def test_where_abandon_is_not_promised_the_upload_stays() -> None:
    """As on Azure, nothing drops what was begun."""
    store = MemoryStore(replace(ROOMY, can_abandon=False))
    begun = store.begin("x", 1, 1, "n")
    store.abandon(begun)
    assert list(store.uploads("")) == [begun]


def test_where_pieces_come_in_order_others_are_refused() -> None:
    """As in one resumable stream, a piece before its predecessor is refused."""
    store = MemoryStore(replace(ROOMY, pieces_in_parallel=False))
    begun = store.begin("x", 2000, 1000, "n")
    with pytest.raises(Never):
        store.put_piece(begun, Piece(1, 1000, 1000), BytesBody(some_bytes(1000)))
    store.put_piece(begun, Piece(0, 0, 1000), BytesBody(some_bytes(1000)))
    store.put_piece(begun, Piece(1, 1000, 1000), BytesBody(some_bytes(1000)))
