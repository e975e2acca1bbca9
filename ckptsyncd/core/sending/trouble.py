"""Failures of the store: how many in a row, since when, and when they are over."""

from __future__ import annotations

from dataclasses import dataclass

from ckptsyncd.core.messages import Failed
from ckptsyncd.core.moves import Complained, Recovered
from ckptsyncd.core.turn import Notebook


@dataclass(slots=True)
class Trouble:
    """Failures of the store in a row, and in total."""

    in_a_row: int = 0
    total: int = 0
    since_wall: float = 0.0
    text: str = ""
    kind: str = ""

    def failed(self, message: Failed, wall: float, notes: Notebook) -> None:
        """Take in one more failure."""
        if self.in_a_row == 0:
            self.since_wall = wall
        self.in_a_row += 1
        self.total += 1
        self.text, self.kind = message.text, message.kind
        notes.moves.append(Complained(message.text, message.hint, "store"))

    def ended(self, notes: Notebook) -> None:
        """Take in that what failed works again."""
        if self.in_a_row:
            notes.moves.append(Recovered("store", self.in_a_row))
            self.in_a_row = 0
