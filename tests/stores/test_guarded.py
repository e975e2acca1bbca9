"""No call goes through before the place is known, and none after it is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from ckptsyncd.core.facts import IfAbsent, ObjectFact
from ckptsyncd.core.ports import Body
from ckptsyncd.core.rules.bucket import BucketRule, Location
from ckptsyncd.errors import Again, Never, PolicyRefused, Refused, StoreError
from ckptsyncd.stores.guarded import GuardedStore
from ckptsyncd.stores.memory import BytesBody, MemoryStore

HERE = Location("aws", ("ca-central-1",), "ca-central-1")
ELSEWHERE = Location("aws", ("us-east-1",), "us-east-1")


@dataclass
class Somewhere(MemoryStore):
    """A store in memory that says where it lies; a call may fail, asking may fail."""

    places: list[Location | StoreError] = field(default_factory=lambda: [HERE])
    fails: bool = False
    asked: int = 0

    def __post_init__(self) -> None:
        """Be empty."""
        super().__init__()

    def situation(self) -> Somewhere:
        """Answer for itself."""
        return self

    def location(self) -> Location:
        """Return the next place, the last one for ever."""
        self.asked += 1
        place = self.places.pop(0) if len(self.places) > 1 else self.places[0]
        if isinstance(place, StoreError):
            raise place
        return place

    def rules(self) -> tuple[BucketRule, ...]:
        """Return none."""
        return ()

    def server_wall(self) -> float | None:
        """Return none."""
        return None

    def key_id(self) -> str:
        """Return none."""
        return ""

    def put_whole(self, key: str, body: Body, nonce: str, *, create_only: bool) -> ObjectFact:
        """Store, or break off."""
        if self.fails:
            msg = "the connection broke"
            raise Again(msg)
        return super().put_whole(key, body, nonce, create_only=create_only)


def guard(store: Somewhere | MemoryStore) -> tuple[GuardedStore, list[PolicyRefused]]:
    """Guard a store: only Canada is allowed."""
    told: list[PolicyRefused] = []
    judge: Callable[[Location], str] = lambda place: "" if place == HERE else "not in Canada"  # noqa: E731
    return GuardedStore(store, judge, told.append), told


def put(store: GuardedStore) -> None:
    """Store something."""
    store.put_whole("a", BytesBody(b"data"), "n", create_only=False)


def test_the_place_is_asked_once() -> None:
    """It is known from the first call on."""
    inner = Somewhere()
    store, told = guard(inner)
    put(store)
    store.put_small("b", b"x", IfAbsent())
    assert [fact.key for fact in store.list("")] == ["a", "b"]
    assert (inner.asked, told) == (1, [])


def test_nothing_goes_to_a_place_that_is_refused() -> None:
    """Every call raises, the store behind stays empty, and whoever must know is told."""
    inner = Somewhere(places=[ELSEWHERE])
    store, told = guard(inner)
    with pytest.raises(PolicyRefused, match="not in Canada"):
        put(store)
    with pytest.raises(PolicyRefused):
        list(store.list(""))
    assert list(inner.list("")) == []
    assert len(told) == 2


def test_after_a_failed_call_it_is_asked_again() -> None:
    """Behind the same name may be another bucket by then."""
    inner = Somewhere(places=[HERE, ELSEWHERE], fails=True)
    store, told = guard(inner)
    with pytest.raises(Again):
        put(store)
    inner.fails = False
    with pytest.raises(PolicyRefused):
        put(store)
    assert list(inner.list("")) == []
    assert len(told) == 1


@pytest.mark.parametrize("error", [Again("down"), Refused("no right to know")])
def test_a_place_that_cannot_be_asked_is_no_allowed_one(error: StoreError) -> None:
    """What asking raised is raised, nothing goes through, and it is asked again."""
    inner = Somewhere(places=[error, HERE])
    store, told = guard(inner)
    with pytest.raises(type(error)):
        put(store)
    assert list(inner.list("")) == []
    put(store)
    assert (inner.asked, told) == (2, [])


def test_a_store_that_tells_nothing_is_refused() -> None:
    """A kind of store without a place passes no rule."""
    store, told = guard(MemoryStore())
    with pytest.raises(PolicyRefused):
        put(store)
    with pytest.raises(Never):
        store.situation()
    assert len(told) == 1


def test_a_stream_that_breaks_is_asked_after() -> None:
    """A read that breaks half-way counts as a lost connection too."""

    class Breaking(Somewhere):
        """Breaks in the middle of a list."""

        def list(self, prefix: str) -> Iterator[ObjectFact]:
            """Yield one and break."""
            yield from super().list(prefix)
            msg = "broke"
            raise Again(msg)

    inner = Breaking()
    store, _ = guard(inner)
    put(store)
    with pytest.raises(Again):
        list(store.list(""))
    put(store)
    assert inner.asked == 2
