"""Which pins are let go of where the disk becomes too full, or pins hold too much of it.

Only what the trainer has removed takes space. What has not begun goes before what is on its way,
the older before the newer: giving up what is nearly there, again and again, would let nothing
arrive.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ckptsyncd.core.messages import PinsWeighed
from ckptsyncd.core.sending.edition import Edition
from ckptsyncd.core.sending.editions import Editions
from ckptsyncd.core.sending.series import Rank
from ckptsyncd.core.turn import Notebook
from ckptsyncd.core.words import size_words


@dataclass(slots=True)
class Crowding:
    """Follows what pins hold, and says so where it is too much."""

    editions: Editions
    rank_of: Callable[[Edition], Rank]
    warning: str = ""

    def hear(self, weighed: PinsWeighed, notes: Notebook) -> None:
        """Let go of as many pins as it takes, and no more."""
        reason = too_much(weighed)
        self.warning = f"{reason}: what the trainer removes is not kept" if reason else ""
        held = dict(weighed.pins)
        known = {edition.save_id: edition for edition in self.editions.open.values()}
        # What nobody needs any more is being let go of already.
        left = excess(weighed) - sum(size for pin, size in held.items() if pin not in known)
        for edition in sorted((known[pin] for pin in held if pin in known), key=self._worth):
            if left <= 0:
                return
            left -= held[edition.save_id]
            self._let_go(edition, f"not kept: {reason}", notes)

    def _worth(self, edition: Edition) -> tuple[float, Rank]:
        """Order editions by what would be lost with them."""
        share = edition.bytes_stored / max(edition.bytes, 1)
        return (share if edition.began else -1.0, self.rank_of(edition))

    def _let_go(self, edition: Edition, reason: str, notes: Notebook) -> None:
        if edition.settled.copy:
            self.editions.unpinnable(edition, reason, notes)
        else:
            self.editions.lost(edition, reason, notes)


def excess(weighed: PinsWeighed) -> int:
    """Return how many bytes too much pins hold."""
    held = sum(size for _, size in weighed.pins)
    return max(weighed.floor_bytes - weighed.free_bytes, held - weighed.most_bytes, 0)


def too_much(weighed: PinsWeighed) -> str:
    """Return what there is too little of, with the setting that says so, or nothing."""
    held = sum(size for _, size in weighed.pins)
    if weighed.free_bytes < weighed.floor_bytes:
        free, floor = size_words(weighed.free_bytes), size_words(weighed.floor_bytes)
        return f"{free} are free on the watch root's disk, less than pins_floor_bytes ({floor})"
    if held > weighed.most_bytes:
        size, most = size_words(held), size_words(weighed.most_bytes)
        return f"pins hold {size}, more than pins_most_bytes ({most})"
    return ""
