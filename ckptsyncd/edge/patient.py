"""A ledger whose disk may hang: the loop waits for it a little, and then goes on without it.

Uploads need no ledger. What is not written costs the next start some questions to the store, but a
loop that stands loses the newest checkpoint.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from functools import partial

from ckptsyncd.core.orders import LedgerOrder
from ckptsyncd.edge.aside import Aside, Late
from ckptsyncd.edge.ledger import Ledger

#: An order waits so long for the row that it stands on (guessed: a slow network disk's flush, and
#: no more than a deadline can spare).
PATIENCE_SECONDS = 1.0
#: So long is waited at the end: whoever ends us does not wait long after the deadline (guessed).
LAST_SECONDS = 0.3


class PatientLedger:
    """Reads as the ledger does, and writes in a thread of its own. For one caller at a time."""

    def __init__(self, ledger: Ledger, seconds: float = PATIENCE_SECONDS) -> None:
        """Wait for the disk for so long."""
        self._ledger = ledger
        self._seconds = seconds
        self._aside = Aside("ledger")
        self._out: tuple[LedgerOrder, ...] = ()
        self.opened = ledger.opened

    def rows(self, table: str) -> list[tuple[str, str]]:
        """Return all rows of a table, however long that takes."""
        return self._ledger.rows(table)

    def apply(self, orders: Sequence[LedgerOrder]) -> None:
        """Write as the ledger does; Late where the disk does not answer soon.

        Then these rows are under way, and to be given again as the first ones of the next time:
        those that have been written by then are not written again. Until then nothing else is.
        """
        self._wait(0.0)
        done, self._out = self._out, ()
        rest = tuple(orders)
        if rest[: len(done)] == done:
            rest = rest[len(done) :]
        if rest:
            self._aside.begin(partial(self._ledger.apply, rest))
            self._out = rest
            self._wait(self._seconds)
            self._out = ()

    def close(self, orders: Sequence[LedgerOrder]) -> None:
        """Write what could not be written yet and close, as far as the disk answers in a moment."""
        with contextlib.suppress(OSError):
            self._wait(LAST_SECONDS)
            self.apply(orders)
        with contextlib.suppress(Late):
            self._aside.begin(self._ledger.close)
            self._aside.wait(LAST_SECONDS)

    def _wait(self, seconds: float) -> None:
        try:
            self._aside.wait(seconds)
        except Late:
            raise
        except BaseException:
            self._out = ()
            raise
