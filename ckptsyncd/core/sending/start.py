"""In which order daemons were started as one node: so that an old one does not fence its heir.

Epochs are taken at the first commit. A machine that never committed would take the run after its
replacement had, and look newer. So every state directory gets a number once, by compare-and-set,
when a daemon starts with it for the first time, and keeps it; an epoch carries its holder's, and
nobody takes an epoch from who started later. No clock is compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ckptsyncd.core.facts import IfAbsent, IfMatches, Instant, Limits
from ckptsyncd.core.messages import RecordPut, RecordRead
from ckptsyncd.core.orders import Errand, GetSmall, PutSmall
from ckptsyncd.core.records import memory, names
from ckptsyncd.core.records.documents import Starts
from ckptsyncd.core.turn import Notebook
from ckptsyncd.errors import CkptsyncdError

#: Where the ledger keeps the number.
ROW = "start"


@dataclass(slots=True)
class Start:
    """Our number, 0 until there is one. ``is_read``: the store's count is known as it was."""

    number: int = 0
    is_known: bool = False
    is_read: bool = False
    version: str | None = None
    wanted: int = 0

    @classmethod
    def recalled(cls, daemon: dict[str, str]) -> Start:
        """Return what the ledger knows of it."""
        text = daemon.get(ROW, "")
        return cls(int(text) if text.isascii() and text.isdecimal() else 0)

    def missing(
        self, limits: Limits, node: int, who: tuple[str, str], now: Instant
    ) -> Iterator[GetSmall | PutSmall]:
        """Yield what is to be asked of the store once per start; nothing without conditions."""
        if self.is_known or not limits.compare_and_set:
            return
        key = names.start_key(node)
        if not self.is_read:
            yield GetSmall(Errand("read starts"), key)
            return
        record = Starts(node, self.wanted, who[1], who[0], now.wall)
        condition = IfAbsent() if self.version is None else IfMatches(self.version)
        yield PutSmall(Errand("take start"), key, record.encode(), condition)

    def is_settled(self, limits: Limits) -> bool:
        """Return whether an epoch may be taken as far as this is concerned."""
        return self.is_known or not limits.compare_and_set

    def hear(self, message: RecordRead | RecordPut, nonce: str, notes: Notebook) -> bool:
        """Take in an answer; return whether it was one to these questions."""
        if message.errand.purpose == "take start":
            self._take(self.wanted, notes)
        elif message.errand.purpose == "read starts" and isinstance(message, RecordRead):
            self._read(message, nonce, notes)
        else:
            return False
        return True

    def _read(self, message: RecordRead, nonce: str, notes: Notebook) -> None:
        found, writer = 0, ""
        if message.data is not None:
            try:
                record = Starts.decode(message.data)
                found, writer = record.start, record.nonce
            except CkptsyncdError as error:
                notes.said("starts.bad", ("text", str(error)))
        self.is_read = True
        self.version = message.version if message.data is not None else None
        if self.number and self.number <= found:
            self.is_known = True
        elif writer == nonce:
            self._take(found, notes)
        else:
            # Somebody emptied the bucket: the number that the ledger knows still counts.
            self.wanted = max(found + 1, self.number)

    def _take(self, number: int, notes: Notebook) -> None:
        self.is_known = True
        if self.number != number:
            self.number = number
            notes.ledger.append(memory.daemon_row(ROW, str(number)))

    def failed(self) -> None:
        """Take in that the count may have been changed by somebody, perhaps by us."""
        self.is_read = False
