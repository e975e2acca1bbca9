"""A pretended ledger: rows in memory, and what of them a power cut would leave."""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ckptsyncd.core.orders import Forget, LedgerOrder, Remember
from ckptsyncd.core.records.memory import TABLES, Recalled, recall

Rows = dict[tuple[str, str], str]


@dataclass(slots=True)
class PretendLedger:
    """Applies each turn's orders at once; ``synced`` is what is on the disk for certain."""

    is_full: Callable[[], bool] = lambda: False
    rows: Rows = field(default_factory=dict)
    synced: Rows = field(default_factory=dict)

    def apply(self, orders: Sequence[LedgerOrder]) -> None:
        """Carry out all orders; a durable one among them brings everything to the disk."""
        if self.is_full():
            raise OSError(errno.ENOSPC, "No space left on device")
        for order in orders:
            if isinstance(order, Remember):
                self.rows[order.table, order.key] = order.value
            elif isinstance(order, Forget):
                self.rows.pop((order.table, order.key), None)
            else:
                gone = [
                    (table, key)
                    for table, key in self.rows
                    if table in order.tables and key.startswith(order.prefix)
                ]
                for row in gone:
                    del self.rows[row]
        if any(isinstance(order, Remember) and order.durable for order in orders):
            self.synced = dict(self.rows)

    def power_cut(self) -> None:
        """Lose what was not on the disk yet."""
        self.rows = dict(self.synced)

    def lose(self) -> None:
        """Lose everything: the state directory was on a disk that is gone."""
        self.rows = {}
        self.synced = {}

    def recalled(self) -> Recalled:
        """Return what a new daemon knows."""
        tables = {
            table: sorted((key, value) for (name, key), value in self.rows.items() if name == table)
            for table in TABLES
        }
        return recall(tables)

    def on_its_way(self) -> list[tuple[str, str]]:
        """Return the rows that should be gone once everything is safe."""
        passing = ("garbage", "edition", "intent", "upload", "piece", "object")
        return [row for row in self.rows if row[0] in passing]
