"""Whose turn it is to upload: nobody compares clocks, and two never think that it is theirs."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

import pytest

from ckptsyncd.core.facts import IfAbsent, IfMatches, Instant
from ckptsyncd.core.messages import Failed, Message, RecordPut, RecordRead
from ckptsyncd.core.orders import GetSmall, HandOrder, PutSmall
from ckptsyncd.core.sending.together.lease import Held, Lease
from ckptsyncd.errors import CkptsyncdError

SECONDS = 12.0


@dataclass
class Shelf:
    """One record with a version, as a store keeps it."""

    data: bytes | None = None
    version: int = 0
    takers: list[str] = field(default_factory=list)

    def answer(self, order: HandOrder) -> Message:
        """Carry an order out."""
        if isinstance(order, GetSmall):
            version = str(self.version) if self.data is not None else ""
            return RecordRead(order.errand, self.data, version)
        assert isinstance(order, PutSmall)
        wanted = order.condition
        assert isinstance(wanted, IfAbsent | IfMatches)
        there = None if self.data is None else str(self.version)
        if there != (None if isinstance(wanted, IfAbsent) else wanted.version):
            return Failed(order.errand, "lost", "the condition failed")
        self.data, self.version = order.data, self.version + 1
        self.takers.append(Held.decode(order.data).nonce)
        return RecordPut(order.errand, str(self.version))


def at(seconds: float) -> Instant:
    """Return a moment."""
    return Instant(seconds, 0.0)


def live(leases: list[Lease], shelf: Shelf, seconds: float, seed: int) -> list[int]:
    """Let daemons ask the store for a while, some stopped or cut off; count whose turn it is."""
    chance = Random(seed)
    clocks = [(chance.uniform(0.0, 1000.0), chance.uniform(0.97, 1.03)) for _ in leases]
    stopped = [0.0 for _ in leases]
    posts: list[tuple[float, int, HandOrder | Message]] = []
    counts = []
    now = 0.0
    while now < seconds:
        now += 0.25
        for due, number, what in [post for post in posts if post[0] <= now]:
            posts.remove((due, number, what))
            if isinstance(what, GetSmall | PutSmall):
                answer: Message = shelf.answer(what)
                if chance.random() < 0.1:
                    answer = Failed(what.errand, "again", "the answer was lost", ambiguous=True)
                posts.append((now + chance.uniform(0.0, 2.0), number, answer))
            elif stopped[number] > now:
                posts.append((stopped[number], number, what))
            else:
                offset, rate = clocks[number]
                leases[number].hear(what, at(offset + now * rate))  # type: ignore[arg-type]
        for number, lease in enumerate(leases):
            if stopped[number] > now:
                continue
            if chance.random() < 0.002:
                stopped[number] = now + chance.uniform(1.0, 40.0)
            offset, rate = clocks[number]
            posts += [
                (now + chance.uniform(0.0, 2.0), number, order)
                for order in lease.orders(at(offset + now * rate))
            ]
        whose = [
            number
            for number, lease in enumerate(leases)
            if stopped[number] <= now and lease.is_ours(clocks[number][0] + now * clocks[number][1])
        ]
        counts.append(len(whose))
    return counts


@pytest.mark.parametrize("seed", range(30))
def test_it_is_never_the_turn_of_two(seed: int) -> None:
    """Clocks differ, answers are lost, daemons are stopped: one at a time, and mostly one."""
    leases = [Lease(f"host{n}", f"nonce{n}", SECONDS) for n in range(3)]
    counts = live(leases, Shelf(), 600.0, seed)
    assert max(counts) == 1
    assert counts.count(1) > len(counts) / 2


def test_a_holder_that_is_silent_is_followed() -> None:
    """The others wait until it cannot trust itself any more, by their own clock, and take over."""
    shelf = Shelf()
    first, second = Lease("a", "1", SECONDS), Lease("b", "2", SECONDS)
    for _ in range(2):
        for order in first.orders(at(0.0)):
            first.hear(shelf.answer(order), at(0.0))
    assert first.is_ours(11.9)
    assert not first.is_ours(12.0)
    now = 5.0
    while not second.is_ours(now) and now < 60.0:
        for order in second.orders(at(now)):
            second.hear(shelf.answer(order), at(now))
        now += 0.5
    assert second.holder() == "b"
    assert 5.0 + SECONDS * 1.25 <= now < 5.0 + SECONDS * 2.0
    assert shelf.takers == ["1", "2"]


def test_a_lease_that_nobody_of_ours_wrote_is_taken() -> None:
    """What cannot be read is nobody's; decoding it raises an error of ours."""
    for text in (b"", b"[]", b'{"nonce": 1}'):
        with pytest.raises(CkptsyncdError):
            Held.decode(text)
    shelf, lease = Shelf(b"rubbish", 1), Lease("a", "1", SECONDS)
    for _ in range(2):
        for order in lease.orders(at(0.0)):
            lease.hear(shelf.answer(order), at(0.0))
    assert lease.is_ours(1.0)
