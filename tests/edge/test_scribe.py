"""The scribe: rows that could not be written are written later, in their order."""

from __future__ import annotations

import errno
from collections.abc import Sequence

from ckptsyncd.core.moves import Complained, Recovered
from ckptsyncd.core.orders import Forget, LedgerOrder, Remember
from ckptsyncd.edge.scribe import Scribe


class SmallDisk:
    """A ledger on a disk that is full while ``is_full``."""

    def __init__(self) -> None:
        """Begin with an empty ledger and room."""
        self.is_full = False
        self.rows: list[LedgerOrder] = []

    def apply(self, orders: Sequence[LedgerOrder]) -> None:
        """Write everything or nothing."""
        if self.is_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.rows += orders


def test_rows_that_failed_go_first_the_next_time() -> None:
    """Nothing that the mind wanted to remember is forgotten because the disk was full."""
    disk = SmallDisk()
    scribe = Scribe(disk)
    first, second, third = Remember("epoch", "run", "1"), Forget("safe", "a"), Forget("safe", "b")
    disk.is_full = True
    assert [type(move) for move in scribe.write([first])] == [Complained]
    assert [type(move) for move in scribe.write([second])] == [Complained]
    disk.is_full = False
    assert scribe.write([third]) == [Recovered("ledger", 2)]
    assert disk.rows == [first, second, third]
    assert scribe.kept == []


def test_a_quiet_turn_tries_again_and_does_not_complain() -> None:
    """What failed is written as soon as there is room, though nothing new is to be written."""
    disk = SmallDisk()
    scribe = Scribe(disk)
    assert scribe.write([]) == []
    disk.is_full = True
    scribe.write([Forget("safe", "a")])
    assert scribe.write([]) == []
    disk.is_full = False
    assert scribe.write([]) == [Recovered("ledger", 2)]
    assert disk.rows == [Forget("safe", "a")]
