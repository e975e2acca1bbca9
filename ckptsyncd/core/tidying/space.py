"""Room on the trainer's disk: local copies of what is safe, the oldest first, only if asked for.

Never the newest of a series, never what a pointer names or what is not safe, and never before its
manifest and every object of it were seen in the store once more. What goes is the very files that
were committed; a file that is not as it was then stays, and so does everything beside them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ckptsyncd.core.messages import Discarded, ObjectSeen, RecordRead
from ckptsyncd.core.orders import Discard, Errand, GetSmall, Stat
from ckptsyncd.core.records import names
from ckptsyncd.core.records.manifest import Manifest, decode
from ckptsyncd.core.records.memory import SafeRow
from ckptsyncd.core.rules.policy import Policy
from ckptsyncd.core.seeing.eyes import Eyes
from ckptsyncd.core.sending.editions import Editions
from ckptsyncd.core.sending.pointing import target_of
from ckptsyncd.core.sending.runs import Runs
from ckptsyncd.core.turn import Notebook
from ckptsyncd.errors import CkptsyncdError

CONFIRM = "confirm copy"
CONFIRM_FILE = "confirm copied file"
DISCARD = "discard"


@dataclass(slots=True)
class Farewell:
    """One local copy on its way out: its manifest was read, so many of its files were seen."""

    row: SafeRow
    is_read: bool = False
    unseen: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Space:
    """One copy at a time. ``kept`` are those that turned out not to be removable, or are gone."""

    policy: Policy
    eyes: Eyes
    editions: Editions
    runs: Runs
    going: Farewell | None = None
    leaving: dict[Errand, SafeRow] = field(default_factory=dict)
    kept: set[tuple[str, int]] = field(default_factory=set)
    freed_bytes: int = 0

    def orders(self) -> Iterator[GetSmall | Stat]:
        """Yield what to ask the store about the copy that goes next."""
        if self.policy.local_bytes is None or self.leaving:
            return
        if self.going is None or not self._may_go(self.going.row):
            self.going = self._next()
        if self.going is None:
            return
        manifest = self.going.row.manifest
        if not self.going.is_read:
            key = names.manifest_key(manifest.checkpoint, manifest.edition)
            yield GetSmall(Errand(CONFIRM, manifest.checkpoint, index=manifest.edition), key)
            return
        for path, key in self.going.unseen.items():
            errand = Errand(CONFIRM_FILE, manifest.checkpoint, path=path, index=manifest.edition)
            yield Stat(errand, key, "", self.going.row.listing)

    def removals(self) -> Iterator[Discard]:
        """Yield the order to remove the copy of which everything was seen in the store."""
        going = self.going
        if going is not None and going.is_read and not going.unseen and self._may_go(going.row):
            manifest = going.row.manifest
            errand = Errand(DISCARD, manifest.checkpoint, index=manifest.edition)
            # From here on events of its removal come, so that nothing may wait for its answer.
            self.leaving[errand] = going.row
            yield Discard(errand, going.row.listing)

    def read(self, message: RecordRead, notes: Notebook) -> None:
        """Take in the manifest as it is in the store."""
        going = self._meant(message.errand)
        if going is None:
            return
        if not _is_same(message.data, going.row.manifest):
            self._keep(going.row, "its manifest in the store is another one", notes)
            return
        going.is_read = True
        files = (stored for stored in going.row.manifest.files if stored.kind == "file")
        going.unseen = {stored.path: stored.key for stored in files}

    def seen(self, message: ObjectSeen, notes: Notebook) -> None:
        """Take in one object as it is in the store."""
        going, path = self._meant(message.errand), message.errand.path
        if going is None or path not in going.unseen:
            return
        stored = next(one for one in going.row.manifest.files if one.path == path)
        fact = message.fact
        if (
            fact is None
            or fact.size != stored.size
            or fact.crc64nvme
            not in (
                None,
                stored.crc64nvme,
            )
        ):
            self._keep(going.row, f"{path} is not in the store as it should be", notes)
        else:
            del going.unseen[path]

    def discarded(self, message: Discarded, notes: Notebook) -> None:
        """Take in that a copy is gone from this disk, or why it stays."""
        row = self.leaving.pop(message.errand, None)
        if row is None:
            return
        if message.error:
            self._keep(row, message.error, notes)
            return
        self.going = None
        self.freed_bytes += row.listing.bytes
        manifest = row.manifest
        # The eyes hear of it a little later: until then it is not removed once more.
        self.kept.add((manifest.checkpoint, manifest.edition))
        notes.said(
            "local.removed",
            ("checkpoint", manifest.checkpoint),
            ("edition", manifest.edition),
            ("bytes", row.listing.bytes),
        )

    def _meant(self, errand: Errand) -> Farewell | None:
        going = self.going
        if going is None:
            return None
        manifest = going.row.manifest
        is_meant = (manifest.checkpoint, manifest.edition) == (errand.checkpoint, errand.index)
        return going if is_meant else None

    def _keep(self, row: SafeRow, reason: str, notes: Notebook) -> None:
        manifest = row.manifest
        self.kept.add((manifest.checkpoint, manifest.edition))
        self.going = None
        notes.said("local.kept", ("checkpoint", manifest.checkpoint), ("text", reason))

    def _next(self) -> Farewell | None:
        """Return the oldest copy that may go, if there is too much."""
        most = self.policy.local_bytes
        if most is None or self.eyes.bytes_on_disk() <= most:
            return None
        known = {(r.manifest.checkpoint, r.manifest.edition) for r in self.editions.safe.values()}
        self.kept &= known
        rows = sorted(self.editions.safe.values(), key=lambda row: row.manifest.committed_at)
        row = next((row for row in rows if self._may_go(row)), None)
        return None if row is None else Farewell(row)

    def _may_go(self, row: SafeRow) -> bool:
        manifest = row.manifest
        if (manifest.checkpoint, manifest.edition) in self.kept or manifest.checkpoint == ".":
            return False
        is_current = self.editions.safe.get(manifest.checkpoint) == row
        if not is_current or self.editions.of(manifest.checkpoint):
            return False
        if not self.eyes.is_as_committed(manifest.checkpoint, row.listing):
            return False
        return not self._is_newest(row) and not self._is_pointed_at(row)

    def _is_newest(self, row: SafeRow) -> bool:
        mine = row.manifest
        return not any(
            other.manifest.series == mine.series and other.manifest.rank() > mine.rank()
            for other in self.editions.safe.values()
        )

    def _is_pointed_at(self, row: SafeRow) -> bool:
        series = self.runs.of(row.manifest.series)
        known = [(m.checkpoint, m.step) for m in self.runs.committed.get(series.name, [])]
        pointed = {target_of(pointer, known) for pointer in series.pointers.values()}
        return row.manifest.checkpoint in pointed


def _is_same(data: bytes | None, manifest: Manifest) -> bool:
    try:
        return data is not None and decode(data) == manifest
    except CkptsyncdError:
        return False
