"""What one turn of the mind produces beside its orders to hands and scanner."""

from __future__ import annotations

from dataclasses import dataclass, field

from ckptsyncd.core.lifecycle import State
from ckptsyncd.core.moves import Move, Moved, Said
from ckptsyncd.core.orders import LedgerOrder, Order
from ckptsyncd.core.sending.edition import Edition


@dataclass(frozen=True, slots=True)
class Turn:
    """The answer to one message: orders (ledger first) and what changed, for those who watch."""

    orders: tuple[Order, ...]
    moves: tuple[Move, ...]


@dataclass(slots=True)
class Notebook:
    """Collects a turn's ledger rows and moves while the message is thought through."""

    ledger: list[LedgerOrder] = field(default_factory=list)
    moves: list[Move] = field(default_factory=list)

    def moved(self, edition: Edition, state: State, reason: str = "") -> None:
        """Move an edition and note it; a move to the same state only changes the reason."""
        old = edition.move(state, reason)
        if old == state:
            return
        self.moves.append(
            Moved(
                checkpoint=edition.checkpoint,
                series=edition.series,
                edition=edition.number or edition.expected,
                old=old,
                new=state,
                reason=reason,
                bytes=edition.bytes,
                step=edition.settled.step,
            )
        )

    def said(self, event: str, *fields: tuple[str, str | int | float | bool | None]) -> None:
        """Note anything else that is worth a line."""
        self.moves.append(Said(event, fields))
