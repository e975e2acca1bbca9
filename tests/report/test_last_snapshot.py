"""The last snapshot: it is in the ledger when the daemon is dead, and seldom written before."""

from __future__ import annotations

import errno
import json
from collections.abc import Sequence
from dataclasses import replace

from ckptsyncd.core.facts import Instant
from ckptsyncd.core.moves import DaemonMoved
from ckptsyncd.core.orders import LedgerOrder, Remember
from ckptsyncd.report.last_snapshot import LastSnapshot
from ckptsyncd.report.status_read import from_json
from tests.report.examples import BUSY, CALM, DAEMON, NOW


class Rows:
    """A ledger in memory that can be full."""

    def __init__(self) -> None:
        """Begin empty."""
        self.written: list[str] = []
        self.is_full = False

    def apply(self, orders: Sequence[LedgerOrder]) -> None:
        """Keep the rows, or refuse."""
        if self.is_full:
            raise OSError(errno.ENOSPC, "full")
        self.written += [order.value for order in orders if isinstance(order, Remember)]


def at(seconds: float) -> Instant:
    """Return a moment so many seconds after the first."""
    return Instant(100.0 + seconds, NOW + seconds)


def test_it_is_the_whole_snapshot() -> None:
    """What is kept reads back as the snapshot and the process it came from."""
    rows = Rows()
    LastSnapshot(rows.apply, DAEMON).turn([], at(0), BUSY)
    (text,) = rows.written
    assert from_json(json.loads(text)) == (BUSY, DAEMON)


def test_it_is_written_seldom() -> None:
    """Moves are kept within half a second, anything else within five, and nothing twice."""
    rows = Rows()
    tap = LastSnapshot(rows.apply, DAEMON)
    move = DaemonMoved("running", "draining", "spot")
    written = []
    for seconds, moves, snapshot in (
        (0.0, [], CALM),
        (0.1, [move], BUSY),
        (0.4, [], BUSY),
        (0.5, [], BUSY),
        (1.5, [], replace(BUSY, retries=1)),
        (5.4, [], replace(BUSY, retries=2)),
        (5.6, [], replace(BUSY, retries=3)),
    ):
        tap.turn(moves, at(seconds), snapshot)
        written.append(len(rows.written))
    assert written == [1, 1, 1, 2, 2, 2, 3]


def test_at_rest_it_is_written_once_a_minute() -> None:
    """Where only time passes and sweeps find nothing, the row that is there says the same."""
    rows = Rows()
    tap = LastSnapshot(rows.apply, DAEMON)
    written = []
    for seconds in range(0, 130, 5):
        calm = replace(CALM, taken_at=NOW + seconds, rescans=CALM.rescans + seconds // 60)
        tap.turn([], at(seconds), calm)
        written.append(len(rows.written))
    assert written == [1] * 12 + [2] * 12 + [3] * 2
    tap.turn([], at(131), replace(CALM, taken_at=NOW + 131, retries=CALM.retries + 1))
    assert len(rows.written) == 4


def test_a_full_disk_is_no_harm() -> None:
    """A row that cannot be written stops nothing, and the next one is."""
    rows = Rows()
    tap = LastSnapshot(rows.apply, DAEMON)
    rows.is_full = True
    tap.turn([], at(0), CALM)
    rows.is_full = False
    tap.turn([], at(6), CALM)
    assert len(rows.written) == 1
