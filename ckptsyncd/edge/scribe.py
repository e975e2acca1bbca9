"""Write the ledger, and write later what could not be written now.

A ledger that cannot be written (a disk that is full, mostly, or hangs) stops nothing. But a row
that stays unwritten misleads the next daemon: one that does not know the epoch that this one took
believes itself replaced. So rows that failed are kept, in their order, and go first the next time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ckptsyncd.core.moves import Complained, Move, Recovered
from ckptsyncd.core.orders import LedgerOrder
from ckptsyncd.edge.aside import Late

#: So many rows are kept at most, the newest (guessed: some ten megabytes).
MOST_KEPT = 100_000

#: A disk that takes less is slow, and nobody is told (guessed).
LATE_SECONDS = 10.0

_GOES_ON = "uploads go on, a restart may repeat some"
_HINT = f"free space in the state directory; {_GOES_ON}"
_LATE_HINT = f"see whether the state directory's disk answers; {_GOES_ON}"


class WritesRows(Protocol):
    """Whoever keeps the ledger's rows."""

    def apply(self, orders: Sequence[LedgerOrder]) -> None:
        """Write the rows in one transaction; OSError, and then nothing is written."""
        ...


@dataclass(slots=True)
class Scribe:
    """Writes into one ledger. ``kept`` are the rows that could not be written yet."""

    ledger: WritesRows
    kept: list[LedgerOrder] = field(default_factory=list)
    failures: int = 0

    def write(self, rows: Sequence[LedgerOrder]) -> list[Move]:
        """Write what failed before and these rows; return what is worth a line.

        To be called in every turn, also without rows: a quiet daemon tries again too.
        """
        self.kept += rows
        if not self.kept:
            return []
        try:
            self.ledger.apply(self.kept)
        except OSError as error:
            del self.kept[:-MOST_KEPT]
            return self._failed(error, is_asked=bool(rows))
        self.kept = []
        count, self.failures = self.failures, 0
        return [Recovered("ledger", count)] if count else []

    def _failed(self, error: OSError, *, is_asked: bool) -> list[Move]:
        is_late = isinstance(error, Late)
        if isinstance(error, Late) and error.seconds < LATE_SECONDS:
            return []
        self.failures += 1
        if not is_asked and not (is_late and self.failures == 1):
            return []
        text = f"the ledger cannot be written: {error.strerror or error}"
        return [Complained(text, _LATE_HINT if is_late else _HINT, "ledger")]
