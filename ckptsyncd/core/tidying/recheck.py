"""Is what is called safe still there? Somebody may have pruned it, or emptied the bucket.

The manifests are listed again now and then; one that is missing is asked for by its key before it
counts as gone. The record of the last verification is read in the same round.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ckptsyncd.core.messages import KeysListed, RecordRead
from ckptsyncd.core.orders import Errand, GetSmall, ListKeys
from ckptsyncd.core.records import names
from ckptsyncd.core.records.documents import Verification
from ckptsyncd.core.rules.policy import Policy
from ckptsyncd.core.sending.editions import Editions
from ckptsyncd.core.sending.runs import Runs
from ckptsyncd.errors import CkptsyncdError

LIST = Errand("recheck")
VERIFIED = Errand("read verification")
MISSING = "recheck manifest"
READS = (VERIFIED.purpose, MISSING)


@dataclass(slots=True)
class Recheck:
    """Times are boot seconds. ``doubts``: manifests that a list did not show."""

    policy: Policy
    editions: Editions
    runs: Runs
    listed_at: float | None = None
    read_at: float | None = None
    doubts: dict[Errand, GetSmall] = field(default_factory=dict)
    verification: Verification | None = None

    def orders(self, now: float) -> Iterator[ListKeys | GetSmall]:
        """Yield what to ask the store now; the first round only reads the record."""
        if not self.policy.recheck_seconds:
            return
        yield from self.doubts.values()
        if self.read_at is None or now >= self._due(self.read_at):
            yield GetSmall(VERIFIED, names.VERIFIED)
        if self.listed_at is None:
            self.listed_at = now  # the catalogue of the start is as new
        if now >= self._due(self.listed_at):
            yield ListKeys(LIST, names.MANIFESTS)

    def next_alarm(self) -> float:
        """Return when the next round is due."""
        if not self.policy.recheck_seconds or self.listed_at is None:
            return float("inf")
        return self._due(self.listed_at)

    def listed(self, message: KeysListed, now: float) -> None:
        """Take in which manifests there are."""
        self.listed_at = now
        there = set(message.keys)
        for checkpoint, number in self._called_safe():
            key = names.manifest_key(checkpoint, number)
            if key not in there:
                errand = Errand(MISSING, checkpoint, index=number)
                self.doubts[errand] = GetSmall(errand, key)

    def _called_safe(self) -> Iterator[tuple[str, int]]:
        """Yield what is on this disk and safe, and every recovery point."""
        for row in self.editions.safe.values():
            yield row.manifest.checkpoint, row.manifest.edition
        for series in self.runs.known.values():
            for point in (series.best, series.latest):
                if point is not None:
                    yield point.checkpoint, point.edition

    def read(self, message: RecordRead, now: float) -> tuple[str, int] | None:
        """Take in a record; return the checkpoint and number that turned out to be gone."""
        if message.errand == VERIFIED:
            self.read_at = now
            self.verification = _decoded(message.data)
            return None
        is_asked = self.doubts.pop(message.errand, None) is not None
        if message.data is None and is_asked:
            return message.errand.checkpoint, message.errand.index
        return None

    def _due(self, before: float) -> float:
        return before + self.policy.recheck_seconds


def _decoded(data: bytes | None) -> Verification | None:
    """Return the record, or nothing where there is none that can be read."""
    try:
        return None if data is None else Verification.decode(data)
    except CkptsyncdError:
        return None
