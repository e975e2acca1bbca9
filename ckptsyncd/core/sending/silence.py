"""Answers that do not come: a disk or a store that hangs raises no error.

Whoever gave an order knows since when it is out, and how long such an order may take. What takes
longer is told like a failure, before somebody wonders where the last checkpoints are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from ckptsyncd.core.moves import Complained, Recovered
from ckptsyncd.core.orders import (
    Discard,
    Finish,
    HandOrder,
    ListKeys,
    ListUploads,
    Look,
    LookAgain,
    Pin,
    PutPiece,
    PutWhole,
    Scan,
    ScannerOrder,
    Stat,
    Sum,
    Unpin,
)
from ckptsyncd.core.sending.outstanding import Out
from ckptsyncd.core.turn import Notebook
from ckptsyncd.core.words import duration_words

#: Any answer may take so long (guessed: as long as one silent wait of an SDK).
SILENT_SECONDS = 60.0
#: The same for the disk when the program is to end: nobody may call a disk empty that hangs.
HASTY_SECONDS = 3.0
#: What nobody knows the size of: the first listing, a list of keys, a pin's removal (guessed).
UNKNOWN_SECONDS = 600.0
#: So many times as long as usual is still slow, and not silent (guessed).
SLOW_TIMES = 10.0
#: For each file of a checkpoint that is looked at or pinned (guessed: some answers of a far disk).
FILE_SECONDS = 0.01
#: A transfer is never slower than this where nothing was measured (guessed).
SLOWEST_BYTES_PER_SECOND = 64 * 1024
#: Turns are never so far apart while this program runs (guessed): after a suspension the answers
#: are there and wait to be read.
ASLEEP_SECONDS = 15.0
#: What goes on is told again so often.
REPEAT_SECONDS = 60.0

_DISK_HINT = "see whether 'ls' answers there; nothing new is seen until the disk answers"
_STORE_HINT = "see whether the destination answers; a mount that hangs ends with its server"


@dataclass(slots=True)
class Wait:
    """How long the oldest order of one kind has been the oldest. ``text`` is empty or tells."""

    who: str
    subject: str
    hint: str
    out: Out | None = None
    since: float = 0.0
    told_at: float = float("-inf")
    text: str = ""

    def watch(self, out: Out | None, now: float) -> float:
        """Follow the order that is the oldest now; return for how long it has been that."""
        if out is not self.out:
            self.out, self.since = out, now
        return now - self.since

    def tell(self, now: float, patience: float, notes: Notebook) -> None:
        """Say that no answer comes where patience is at its end, and that one came."""
        waited = now - self.since
        if self.out is None or waited <= patience:
            if self.text:
                notes.moves.append(Recovered(self.subject, 1))
            self.text, self.told_at = "", float("-inf")
            return
        errand = self.out.order.errand
        about = f"{errand.purpose} {errand.checkpoint or errand.path}".strip()
        self.text = f"{self.who} has not answered '{about}' for {duration_words(waited)}"
        if now >= self.told_at + REPEAT_SECONDS:
            self.told_at = now
            notes.moves.append(Complained(self.text, self.hint, self.subject))


@dataclass(slots=True)
class Silence:
    """Listens for the answers of disk and store.

    ``listing_seconds``: how long the last listing of everything took.
    """

    listing_seconds: float = UNKNOWN_SECONDS / SLOW_TIMES
    listened_at: float = float("-inf")
    disk: Wait = field(
        default_factory=lambda: Wait("the watch root's disk", "disk silent", _DISK_HINT)
    )
    store: Wait = field(default_factory=lambda: Wait("the store", "store silent", _STORE_HINT))

    def listen(
        self, outs: Collection[Out], hand: Callable[[], float], now: float, notes: Notebook, *,
        hasty: bool,
    ) -> None:  # fmt: skip
        """Look at what is out, the oldest first; to be called in every turn.

        ``hand``: bytes per second of one hand, 0 where that is not known.
        """
        if now - self.listened_at > ASLEEP_SECONDS:
            self.disk.since = self.store.since = now
        self.listened_at = now
        with_hands = (out for out in outs if isinstance(out.order, HandOrder))
        with_scanner = (out for out in outs if not isinstance(out.order, HandOrder))
        self._listen_to_disk(next(with_scanner, None), now)
        least = HASTY_SECONDS if hasty else SILENT_SECONDS
        self.disk.tell(now, max(least, self._patience_with_disk()), notes)
        out = next(with_hands, None)
        waited = self.store.watch(out, now)
        is_late = out is not None and waited > SILENT_SECONDS
        patience = _patience(out.order, hand()) if out is not None and is_late else 0.0
        self.store.tell(now, max(SILENT_SECONDS, patience), notes)

    def _listen_to_disk(self, out: Out | None, now: float) -> None:
        before, begun = self.disk.out, self.disk.since
        self.disk.watch(out, now)
        if before is None or before is out or not isinstance(before.order, Scan):
            return
        if before.order.path == "" and before.order.recursive:
            self.listing_seconds = now - begun

    def _patience_with_disk(self) -> float:
        order = None if self.disk.out is None else self.disk.out.order
        if isinstance(order, Scan):
            return SLOW_TIMES * self.listing_seconds
        if isinstance(order, Look):
            return len(order.closely) * FILE_SECONDS
        if isinstance(order, Pin | LookAgain | Discard):
            copied = order.listing.bytes if isinstance(order, Pin) and order.copy else 0
            return len(order.listing.files) * FILE_SECONDS + copied / SLOWEST_BYTES_PER_SECOND
        return UNKNOWN_SECONDS if isinstance(order, Unpin) else 0.0


def _patience(order: HandOrder | ScannerOrder, bytes_per_second: float) -> float:
    """Return how long a hand may take by the size of its order."""
    if isinstance(order, ListKeys | ListUploads):
        return UNKNOWN_SECONDS
    return _size(order) / (bytes_per_second / SLOW_TIMES or SLOWEST_BYTES_PER_SECOND)


def _size(order: HandOrder | ScannerOrder) -> int:
    """Return how many bytes of a checkpoint an order sends or has read, wherever."""
    if isinstance(order, PutPiece | PutWhole | Sum):
        return order.piece.length
    if isinstance(order, Finish):
        return order.begun.size
    if isinstance(order, Stat):
        whole = sum(receipt.length for receipt in order.receipts)
        return whole if order.piece is None else order.piece.length
    return 0
