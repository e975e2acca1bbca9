"""All series: run epochs, the hints to the newest, and what the frameworks' pointers name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ckptsyncd.core.facts import Instant, Limits
from ckptsyncd.core.messages import Failed, RecordPut, RecordRead
from ckptsyncd.core.orders import Errand, GetSmall, PutSmall
from ckptsyncd.core.records import memory
from ckptsyncd.core.records.documents import Epoch, Latest, Pointer, Pointers
from ckptsyncd.core.records.manifest import Manifest
from ckptsyncd.core.records.memory import Recalled
from ckptsyncd.core.rules.policy import Policy
from ckptsyncd.core.sending import series as single
from ckptsyncd.core.sending.edition import Edition
from ckptsyncd.core.sending.pointing import target_of
from ckptsyncd.core.sending.series import Rank, Series
from ckptsyncd.core.sending.start import Start
from ckptsyncd.core.sending.together.patience import latest_delay
from ckptsyncd.core.turn import Notebook
from ckptsyncd.errors import CkptsyncdError


@dataclass(slots=True)
class Runs:
    """Every series the mind knows. ``fenced`` says why nothing is made latest any more."""

    policy: Policy
    host: str
    nonce: str
    epochs: dict[str, tuple[int, tuple[str, ...]]]
    lineages: dict[str, int]
    known: dict[str, Series] = field(default_factory=dict)
    fenced: str = ""
    warnings: dict[str, str] = field(default_factory=dict)
    committed: dict[str, list[Manifest]] = field(default_factory=dict)
    start: Start = field(default_factory=Start)

    @classmethod
    def remembered(
        cls, policy: Policy, who: tuple[str, str], recalled: Recalled, lineages: dict[str, int]
    ) -> Runs:
        """Return what the ledger knows; ``who`` is (host, process nonce).

        Who is told to take a run over forgets that it was fenced, and by whom.
        """
        epochs = {} if policy.take_over else recalled.epochs
        fenced = "" if policy.take_over else recalled.daemon.get("fenced", "")
        start = Start.recalled(recalled.daemon)
        return cls(policy, *who, epochs, lineages, fenced=fenced, start=start)

    def of(self, name: str) -> Series:
        """Return the series of this name, known from now on."""
        if name not in self.known:
            lineage = self.lineages.get(name, 0)
            series = Series(name, lineage=lineage, announced=self.policy.is_joint)
            if name in self.epochs:
                series.last_epoch, series.last_nonces = self.epochs[name]
            self.known[name] = series
        return self.known[name]

    def rank_of(self, edition: Edition) -> Rank:
        """Order editions as their manifests will be ordered."""
        series = self.of(edition.series)
        return edition.rank(series.lineage, series.after_step)

    def missing(
        self, limits: Limits, now: Instant, *, hasty: bool
    ) -> Iterator[GetSmall | PutSmall]:
        """Yield the record orders that any series needs now; none that write when fenced."""
        who = (self.host, self.nonce)
        if not self.fenced:
            yield from self.start.missing(limits, self.policy.node, who, now)
        start = self.start.number if self.start.is_settled(limits) else None
        for series in self.known.values():
            if self.fenced and series.latest_known:
                continue
            yield from single.missing(
                series, limits, self.policy, who, now, hasty=hasty, start=start
            )

    def due(self, now: float, *, hasty: bool) -> float:
        """Return when the next hint may be written (boot seconds)."""
        if self.fenced:
            return float("inf")
        dues = (
            single.latest_due(series, self.policy, now, hasty=hasty)
            for series in self.known.values()
        )
        return min(dues, default=float("inf"))

    def is_settled(self) -> bool:
        """Return whether every hint and every pointer is as it should be."""
        return bool(self.fenced) or not any(
            single.wants_latest(series)
            or series.pointers_wanted not in (None, series.pointers_stored)
            for series in self.known.values()
        )

    # Commits ------------------------------------------------------------------------------------

    def saw_commit(self, manifest: Manifest, notes: Notebook, now: float = 0.0) -> None:
        """Take in a committed edition: perhaps the newest of its series, perhaps a step back."""
        series = self.of(manifest.series)
        if self.policy.is_joint and manifest.writer.nonce != self.nonce:
            # Who committed moves the hint: a thousand nodes that did would be in each other's way.
            trusts_until = now + latest_delay(self.policy.node, self.nonce)
            series.latest_known, series.trusts_until = False, trusts_until
        self._warn_of_step_back(series, manifest, notes)
        series.after_step = max(series.after_step, -1 if manifest.step is None else manifest.step)
        series.lineage = max(series.lineage, manifest.lineage)  # another machine may have begun one
        if series.best is None or manifest.rank() > series.best.rank():
            series.best = manifest
        self._remember(manifest)
        self._point(series)

    def _remember(self, manifest: Manifest) -> None:
        """Keep the newest commit of every name, for pointers (bounded by the names on disk)."""
        others = self.committed.get(manifest.series, [])
        kept = [other for other in others if other.checkpoint != manifest.checkpoint]
        self.committed[manifest.series] = [*kept, manifest]

    def forgot(self, checkpoint: str) -> None:
        """Take in that a checkpoint is not on this disk any more."""
        for name, manifests in self.committed.items():
            if any(manifest.checkpoint == checkpoint for manifest in manifests):
                self.committed[name] = [m for m in manifests if m.checkpoint != checkpoint]

    def _warn_of_step_back(self, series: Series, manifest: Manifest, notes: Notebook) -> None:
        current = single.highest_rank(series)
        if current is None or manifest.late:
            return
        if manifest.lineage == current[0] and went_back(manifest.step, manifest.saved_at, current):
            text = f"step went back {current[1]} -> {manifest.step} in {series.name}"
            if self.warnings.get(series.name) != text:
                notes.said("series.step_back", ("series", series.name), ("text", text))
            self.warnings[series.name] = text
        elif manifest.rank() > current:
            self.warnings.pop(series.name, None)

    def lineage_for(self, series: Series, step: int | None, saved_at: float) -> int:
        """Return the lineage to commit with: a new one after a step back that is allowed."""
        current = single.highest_rank(series)
        if self.policy.allow_step_back and current is not None and series.lineage == current[0]:
            series.lineage += went_back(step, saved_at, current)
        return series.lineage

    # Pointers -----------------------------------------------------------------------------------

    def saw_pointer(self, name: str, path: str, kind: str, text: str | None) -> None:
        """Take in what a framework's pointer says now; it is kept once its target is safe."""
        series = self.of(name)
        if text is None:
            series.pointers.pop(path, None)
        else:
            series.pointers[path] = Pointer(path, kind, text)
        self._point(series)

    def _point(self, series: Series) -> None:
        """Want the pointers stored whose target is safe, together with what they name."""
        manifests = self.committed.get(series.name, [])
        candidates = [(manifest.checkpoint, manifest.step) for manifest in manifests]
        found = {
            path: target
            for path, pointer in series.pointers.items()
            if (target := target_of(pointer, candidates)) is not None
        }
        if not found:
            return
        by_name = {manifest.checkpoint: manifest for manifest in manifests}
        newest = max((by_name[target] for target in found.values()), key=Manifest.rank)
        pointers = tuple(series.pointers[path] for path in sorted(found))
        series.pointers_wanted = Pointers(series.name, newest.checkpoint, newest.edition, pointers)

    # Answers ------------------------------------------------------------------------------------

    def hear(
        self, message: RecordRead | RecordPut, data: bytes, now: Instant, notes: Notebook
    ) -> None:
        """Take in the answer to one of the series' own orders; ``data`` is what was written."""
        if self.start.hear(message, self.nonce, notes):
            return
        series = self.of(message.errand.checkpoint)
        purpose = message.errand.purpose
        if isinstance(message, RecordRead):
            if purpose == "read latest":
                self._latest_read(series, message, notes)
            elif purpose == "read epoch":
                self._epoch_read(series, message, notes)
        elif purpose == "take epoch":
            series.epoch_taken = "yes"
            notes.said("series.epoch", ("series", series.name), ("epoch", series.epoch))
        elif purpose == "move latest":
            single.latest_written(series, Latest.decode(data), message.version, now.boot)
        elif purpose == "pointers":
            series.pointers_stored = Pointers.decode(data)

    def _latest_read(self, series: Series, message: RecordRead, notes: Notebook) -> None:
        latest = None
        if message.data is not None:
            try:
                latest = Latest.decode(message.data)
            except CkptsyncdError as error:
                # A hint that cannot be read is overwritten: the manifests are the truth.
                notes.said("series.bad_latest", ("series", series.name), ("text", str(error)))
        newer = single.latest_seen(series, latest, message.version, self.policy.node)
        # A thousand nodes do not announce themselves in one record: each looks at its own epoch.
        series.announced |= self.policy.is_joint
        if message.data is not None and latest is None:
            series.latest_version = message.version
        if newer:
            self.fence(f"a newer daemon writes {series.name}", notes)

    def _epoch_read(self, series: Series, message: RecordRead, notes: Notebook) -> None:
        record = None
        if message.data is not None:
            try:
                record = Epoch.decode(message.data)
            except CkptsyncdError as error:
                notes.said("series.bad_epoch", ("series", series.name), ("text", str(error)))
        start = self.start.number
        taken_over = single.epoch_seen(series, record, message.version, self.nonce, start)
        if message.data is not None and record is None:
            series.epoch_version = message.version
        if taken_over and not self.policy.take_over:
            host = "" if record is None else record.host
            self.fence(f"a newer daemon on {host} has taken {series.name} over", notes)
        elif series.epoch_taken != "yes":
            nonces = (*series.last_nonces, self.nonce)
            notes.ledger.append(memory.epoch_row(series.name, series.epoch, nonces))

    def failed(self, failed: Failed) -> None:
        """Take in that one of the series' own orders failed: what was conditional is read again."""
        unsure = failed.ambiguous or failed.kind == "lost"
        if failed.errand.purpose == "take start":
            if unsure:
                self.start.failed()
            return
        series = self.of(failed.errand.checkpoint)
        if failed.errand.purpose == "take epoch" and unsure:
            series.epoch_read = False
        elif failed.errand.purpose == "move latest" and unsure:
            series.latest_known = False

    def came_late(self, errand: Errand) -> None:
        """Take in that a record was written, or may have been, by an order that was given up.

        Where the store has no conditions it may have replaced what was written since.
        """
        if errand.purpose == "move latest":
            self.of(errand.checkpoint).latest_known = False
        elif errand.purpose == "pointers":
            self.of(errand.checkpoint).pointers_stored = None

    def fence(self, reason: str, notes: Notebook) -> None:
        """Make nothing latest any more: a newer daemon has taken over. Remembered for ever."""
        if not self.fenced:
            self.fenced = reason
            notes.ledger.append(memory.daemon_row("fenced", reason))


def went_back(step: int | None, saved_at: float, current: Rank) -> bool:
    """Return whether a save came after the newest one known and has a lower step.

    Two checkpoints that merely finish their uploads in the other order did not go back.
    """
    return step is not None and step < current[1] and saved_at > current[2]
