"""How many reads are under way at once: as many as are of use, found out while it goes."""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable
from contextlib import ExitStack
from itertools import count

import pytest

from ckptsyncd.core.sending.crew import FIRST_HANDS, LEAST_HANDS
from ckptsyncd.recover.crew import each
from ckptsyncd.recover.readers import Readers

PIECE = 16 * 1024 * 1024


def far(readers: int) -> float:
    """Carry 8 MB/s for each reader, however many there are: a read takes two seconds."""
    del readers
    return PIECE / 8e6


def near(readers: int) -> float:
    """Carry 1.4 GB/s at once, however many share it; each reader costs a little."""
    return readers * PIECE / 1.4e9 * (1.0 + 0.02 * readers)


class Clock:
    """Monotonic seconds that pass only when they are told to."""

    def __init__(self) -> None:
        """Begin at nothing."""
        self.now = 0.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


def read(takes: Callable[[int], float], most: int, pieces: int) -> Readers:
    """Let as many as are wanted read so many pieces one after the other."""
    clock, under_way, numbers = Clock(), list[tuple[float, int, ExitStack]](), count()
    readers = Readers(most, clock)
    for _ in range(pieces):
        while len(under_way) < readers.wanted():
            number, begun = next(numbers), ExitStack()
            begun.enter_context(readers.reading(PIECE))
            seconds = takes(readers.wanted()) * (1.0 + number % 17 * 1e-3)
            heapq.heappush(under_way, (clock.now + seconds, number, begun))
        clock.now, _, ended = heapq.heappop(under_way)
        ended.close()
    return readers


@pytest.mark.parametrize("most", [8, 64])
def test_a_far_store_is_read_by_all(most: int) -> None:
    """Where each reader waits for itself all of them read after a few pieces, slow as they are."""
    assert read(far, most, pieces=4 * most).wanted() == most


def test_a_near_store_is_read_by_few() -> None:
    """Where readers share one processor the fewest are left."""
    assert read(near, 8, pieces=80).wanted() == LEAST_HANDS


def test_a_moment_decides_nothing() -> None:
    """What a few pieces take that come within a moment is no measurement of a store."""
    assert read(near, 8, pieces=10).wanted() == FIRST_HANDS


@pytest.mark.parametrize("most", range(1, FIRST_HANDS))
def test_what_a_user_asks_for_is_the_most(most: int) -> None:
    """A small number that somebody chose is never exceeded, whatever it would bring."""
    assert read(far, most, pieces=40).wanted() <= most


def test_a_read_that_fails_teaches_nothing() -> None:
    """It counts as under way while it lasts and not after, and is in no measurement."""
    clock = Clock()
    readers = Readers(8, clock)

    def broken() -> None:
        with readers.reading(PIECE):
            clock.now += 1.0
            raise TimeoutError

    for _ in range(100):
        with pytest.raises(TimeoutError):
            broken()
    assert readers.wanted() == FIRST_HANDS
    assert readers._busy == 0


def test_no_more_have_a_job_than_are_wanted() -> None:
    """Of many threads only the wanted number is ever at work, and every job is done."""
    lock, at_work, seen = threading.Lock(), set[int](), list[int]()

    def do(job: int) -> int:
        with lock:
            at_work.add(job)
            seen.append(len(at_work))
        with lock:
            at_work.remove(job)
        return job

    done = each(range(200), do, 8, threading.Event(), lambda: 2)
    assert sorted(done) == list(range(200))
    assert max(seen) <= 2
