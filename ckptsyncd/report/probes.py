"""Whether the program lives, could write, and is not behind: what orchestrators ask.

A tap keeps the newest snapshot and since when each series is behind; the answers are functions of
that and of the clock, the same for HTTP, for the socket and for metrics.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ckptsyncd.core.facts import Instant
from ckptsyncd.core.moves import Move
from ckptsyncd.core.snapshot import Snapshot
from ckptsyncd.core.words import duration_words, printable, redacted

#: The loop turns at least every 5 s; a disk or a ledger that hangs for longer than some of these
#: is not healthy any more (guessed).
HEALTHY_SECONDS = 30.0

NAMES = ("healthz", "readyz", "synced")


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer to a probe, and why in one line."""

    is_good: bool
    text: str


class Probes:
    """Answers probes from any thread; ``turn`` is the tap, called by the thread that turns.

    A series is *behind* while a finished checkpoint newer than its recovery point is not safe:
    since the first such checkpoint was written, also where newer ones have taken its place since.
    """

    def __init__(self, now: Callable[[], Instant], synced_seconds: float) -> None:
        """Begin without a turn; ``synced`` is good below so many seconds behind."""
        self._now = now
        self.synced_seconds = synced_seconds
        self._turned_at = float("-inf")
        self._seen: Snapshot | None = None
        self._behind: dict[str, float] = {}

    def turn(self, moves: Sequence[Move], now: Instant, snapshot: Snapshot) -> None:
        """Note that the loop turned, and what it showed."""
        del moves
        self._turned_at = now.boot
        if snapshot is not self._seen:
            self._seen, self._behind = snapshot, _behind(snapshot, self._behind)

    def behind(self) -> Mapping[str, float]:
        """Return since when (wall time) each series that is behind is so."""
        return self._behind

    def ask(self, name: str) -> Verdict | None:
        """Return the answer to the probe of this name, ``None`` where there is none."""
        known = {"healthz": self.healthz, "readyz": self.readyz, "synced": self.synced}
        return known[name]() if name in known else None

    def healthz(self) -> Verdict:
        """Whether the loop turned lately: if not, a restart is the only help."""
        if self._seen is None:
            return Verdict(is_good=False, text="the loop has not turned yet")
        age = self._age()
        return Verdict(age < HEALTHY_SECONDS, f"the loop turned {duration_words(age)} ago")

    def _age(self) -> float:
        return self._now().boot - self._turned_at

    def readyz(self) -> Verdict:
        """Whether a checkpoint that is finished now would be uploaded."""
        seen = self._seen
        if seen is None or seen.state == "starting":
            return Verdict(is_good=False, text="the store has not answered yet")
        if self._age() >= HEALTHY_SECONDS:
            return self.healthz()
        if seen.state == "fenced":
            return Verdict(is_good=False, text=f"fenced: {_line(seen.reason)}")
        if seen.disk_failing:
            return Verdict(is_good=False, text=_line(seen.disk_failing))
        if seen.store_failing:
            return Verdict(is_good=False, text=f"the store fails: {_line(seen.store_failing)}")
        return Verdict(is_good=True, text="the store can be written")

    def synced(self) -> Verdict:
        """Whether no series is behind for longer than the limit; not known is not good."""
        if self._seen is None or self._seen.state == "starting":
            return Verdict(is_good=False, text="not known yet what is finished and not safe")
        if not self._behind and self._age() >= HEALTHY_SECONDS:
            return Verdict(is_good=False, text=f"not known: {self.healthz().text}")
        if not self._behind and self._seen.disk_failing:
            return Verdict(is_good=False, text=f"not known: {_line(self._seen.disk_failing)}")
        if not self._behind:
            return Verdict(is_good=True, text="nothing newer than the recovery points is finished")
        age = max(self._now().wall - min(self._behind.values()), 0.0)
        name = min(self._behind, key=lambda series: self._behind[series])
        text = f"{_line(name) or 'the watch root'} is behind for {duration_words(age)}"
        return Verdict(age < self.synced_seconds, text)


def _behind(snapshot: Snapshot, before: Mapping[str, float]) -> dict[str, float]:
    found: dict[str, float] = {}
    for view in snapshot.checkpoints:
        if view.is_ahead:
            written = snapshot.taken_at if view.saved_at is None else view.saved_at
            earlier = found.get(view.series, before.get(view.series, snapshot.taken_at))
            found[view.series] = min(earlier, written)
    return found


def _line(text: str) -> str:
    return printable(redacted(text))
