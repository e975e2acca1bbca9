"""What was asked of a store is counted by class and direction, and priced as the user says."""

from __future__ import annotations

import pytest

from ckptsyncd.core.snapshot import StoreCalls
from ckptsyncd.report.usage import Prices, Whereabouts, document, lines, usage

GIB = 2**30
CALLS = (
    StoreCalls("put_piece", "done", 1000, 2 * GIB, 1.0),
    StoreCalls("put_small", "lost", 500, 0, 1.0),
    StoreCalls("list", "done", 500, 0, 1.0),
    StoreCalls("stat", "missing", 3000, 0, 1.0),
    StoreCalls("read_range", "done", 1000, GIB, 1.0),
    StoreCalls("delete", "done", 7, 0, 1.0),
)
WHERE = Whereabouts("s3://b/run", "b", "eu-west-1", "https://s3", "AKIA", "", "S3")


def test_requests_are_counted_as_they_are_billed() -> None:
    """What writes or lists, what reads, what is free; also what was refused."""
    used = usage(CALLS, Prices())
    assert (used.write, used.read, used.free) == (2000, 4000, 7)
    assert (used.bytes_sent, used.bytes_received) == (2 * GIB, GIB)


def test_without_prices_nothing_is_estimated() -> None:
    """Nobody is told that it costs nothing."""
    assert usage(CALLS, Prices(currency="USD")).cost is None
    assert "not estimated" in lines(document(WHERE, usage(CALLS, Prices())))[-1]


def test_the_users_prices_make_the_estimate() -> None:
    """Thousands of requests and GiB, each at its own price."""
    prices = Prices(writes=0.005, reads=0.0004, sent=0.02, received=0.09, currency="USD")
    used = usage(CALLS, prices)
    assert used.cost == pytest.approx(2 * 0.005 + 4 * 0.0004 + 2 * 0.02 + 0.09)
    assert lines(document(WHERE, used))[-1] == "cost: about 0.1416 USD"


def test_what_nobody_tells_is_said() -> None:
    """An empty storage class is no class."""
    assert "storage class: not told" in lines(document(WHERE, usage((), Prices())))
