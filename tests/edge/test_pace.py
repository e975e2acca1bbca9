"""The cap on bytes: exact in the long run, gone at once when lifted."""

from __future__ import annotations

import threading

from ckptsyncd.edge.clock import ticks
from ckptsyncd.edge.pace import BLOCK_BYTES, BURST_SECONDS, Pace, PacedBody
from ckptsyncd.stores.memory import BytesBody


class Watch:
    """A clock that stands still until it is asked, and then is a millisecond later."""

    def __init__(self) -> None:
        """Stand at zero."""
        self.now = 0.0

    def __call__(self) -> float:
        """Return the time and go on."""
        self.now += 0.001
        return self.now


def test_over_a_while_the_cap_is_exact() -> None:
    """A second of taking as fast as it goes take what the cap allows, within a burst."""
    watch = Watch()
    pace = Pace(watch)
    pace.set(10_000_000)
    taken = 0
    while watch.now < 1.0:
        pace.take(50_000)
        taken += 50_000
    assert abs(taken - 10_000_000) <= 10_000_000 * BURST_SECONDS + 100_000


def test_lifting_the_cap_wakes_who_waits() -> None:
    """A reader that would wait for an hour goes on at once when there is no cap any more."""
    pace = Pace(ticks)
    pace.set(1000)
    pace.take(3_600_000)
    went_on = threading.Event()

    def reader() -> None:
        pace.take(1)
        went_on.set()

    threading.Thread(target=reader, daemon=True).start()
    assert not went_on.wait(0.05)
    pace.set(None)
    assert went_on.wait(10.0)


def test_a_paced_body_gives_the_same_bytes() -> None:
    """What is read at a pace is what would be read without, and so is its checksum."""
    data = bytes(range(256)) * 1000
    pace = Pace(Watch())
    pace.set(50_000_000)
    body = PacedBody(BytesBody(data), pace)
    read = b""
    while block := bytes(body.read(1 << 20)):
        read += block
    assert read == data
    assert body.crc64nvme() == BytesBody(data).crc64nvme()


def test_a_capped_read_is_small_against_the_cap() -> None:
    """A wide cap is read up to in large blocks, a narrow one in small ones, none as it comes."""
    pace = Pace(ticks)
    assert pace.share(1 << 20) == 1 << 20
    pace.set(100_000_000)
    assert pace.share(1 << 20) == 500_000
    assert pace.share(1000) == 1000
    pace.set(1_000_000)
    assert pace.share(1 << 20) == BLOCK_BYTES
    pace.set(10**10)
    assert pace.share(1 << 20) == 1 << 20
