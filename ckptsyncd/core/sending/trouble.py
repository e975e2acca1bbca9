"""Failures of the store: how many in a row, since when, and when they are over."""

from __future__ import annotations

from dataclasses import dataclass, field

from ckptsyncd.core.messages import Failed
from ckptsyncd.core.moves import Complained, Recovered
from ckptsyncd.core.turn import Notebook
from ckptsyncd.core.words import duration_words

#: A single pass gives up after so many failures in a row before the store ever answered (guessed:
#: with the first pauses of ``retry`` that is some 15 s).
HOPELESS_FAILURES = 6


#: A clock that is so far off is worth a word; stores refuse what is signed 15 minutes off.
CLOCK_SECONDS = 60.0


@dataclass(slots=True)
class Trouble:
    """Failures of the store in a row, and in total.

    What is refused is complained about by itself: waiting mends a store, and no refusal.
    """

    in_a_row: int = 0
    total: int = 0
    since_wall: float = 0.0
    text: str = ""
    kind: str = ""
    counts: dict[str, int] = field(default_factory=dict)
    clock_ahead: float = 0.0

    @property
    def is_hopeless(self) -> bool:
        """Whether a store that never answered probably never will."""
        return self.in_a_row >= HOPELESS_FAILURES

    @property
    def clock_warning(self) -> str:
        """Say that this machine's clock is not the store's, if it is far enough from it."""
        off = abs(self.clock_ahead)
        if off < CLOCK_SECONDS:
            return ""
        way = "ahead of" if self.clock_ahead > 0 else "behind"
        return f"this machine's clock is {duration_words(off)} {way} the store's; set it"

    def failed(self, message: Failed, wall: float, notes: Notebook) -> None:
        """Take in one more failure.

        What never works with one checkpoint (a name too long, a size over the limit) is that
        checkpoint's trouble, and no sign that the store fails.
        """
        self.total += 1
        if message.kind == "never" and message.errand.checkpoint:
            notes.moves.append(Complained(message.text, message.hint, "checkpoint"))
            return
        if self.in_a_row == 0:
            self.since_wall = wall
        self.in_a_row += 1
        self.text, self.kind = message.text, message.kind
        subject = "access" if message.kind == "refused" else "store"
        self.counts[subject] = self.counts.get(subject, 0) + 1
        notes.moves.append(Complained(message.text, message.hint, subject))

    def ended(self, notes: Notebook) -> None:
        """Take in that what failed works again."""
        notes.moves += [Recovered(subject, count) for subject, count in self.counts.items()]
        self.in_a_row, self.counts = 0, {}
