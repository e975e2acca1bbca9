"""All editions: what is on its way, what is safe, and which numbers are taken.

The half of the mind that moves bytes. It takes what the eyes saw, follows every edition through its
lifecycle, and never calls one safe before its manifest was written or seen in the store.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ckptsyncd.core.facts import Begun, Instant, Listing
from ckptsyncd.core.lifecycle import State
from ckptsyncd.core.orders import Begin, Errand, Order, Unpin
from ckptsyncd.core.records import memory
from ckptsyncd.core.records.manifest import Manifest, StoredFile
from ckptsyncd.core.records.memory import EditionRow, Recalled, SafeRow
from ckptsyncd.core.rules.policy import Policy
from ckptsyncd.core.sending import progress
from ckptsyncd.core.sending.catalog import Catalog
from ckptsyncd.core.sending.edition import Edition, is_overwritten
from ckptsyncd.core.sending.giving_way import outrun
from ckptsyncd.core.sending.leftovers import Leftovers
from ckptsyncd.core.sending.rivals import rivals_of
from ckptsyncd.core.sending.scene import Scene
from ckptsyncd.core.sending.together.joint import Joint
from ckptsyncd.core.sightings import Settled
from ckptsyncd.core.turn import Notebook

#: So many editions that were superseded or vanished are kept for status (guessed).
KEPT_FOR_STATUS = 20


@dataclass(slots=True)
class Editions:
    """Every edition the mind knows, by (checkpoint, save id)."""

    policy: Policy
    nonce: str
    recalled: Recalled
    open: dict[tuple[str, str], Edition] = field(default_factory=dict)
    safe: dict[str, SafeRow] = field(default_factory=dict)
    safe_since: dict[str, float] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    catalog: Catalog = field(default_factory=Catalog)
    aside: list[Edition] = field(default_factory=list)
    #: Whether a plan says what is sent: then nothing gives way unasked.
    is_planned: bool = False
    leftovers: Leftovers = field(default_factory=Leftovers)
    unpins: dict[Errand, Unpin] = field(default_factory=dict)
    void: list[str] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)
    committed: list[tuple[Manifest, Listing]] = field(default_factory=list)
    #: Why this daemon is to be fenced, as the store told beside an edition.
    overtaken: list[str] = field(default_factory=list)
    uploads_begun: int = 0

    # What the eyes saw --------------------------------------------------------------------------

    def take(self, settled: Settled, now: Instant, notes: Notebook) -> None:
        """Take in a whole checkpoint: known already, or a new edition that wants to be stored."""
        safe = self.safe.get(settled.checkpoint)
        if safe is not None and safe.listing == settled.listing:
            self.committed.append((safe.manifest, safe.listing))
            return
        expected = self.next_number(settled.checkpoint)
        edition = Edition(settled, settled.listing.save_id(), now.boot, expected=expected)
        if not self._replaces(edition, notes):
            return
        edition.rivals = self._rivals(edition)
        # The same files may be about to be let go for an edition that ended: they stay pinned.
        for checkpoint in (edition.checkpoint, ""):
            self.unpins.pop(Errand("unpin", checkpoint, edition.save_id), None)
        self.open[(edition.checkpoint, edition.save_id)] = edition
        edition.state = "writing"
        notes.moved(edition, "settled", f"whole: {settled.evidence}")
        if edition.save_id not in self.recalled.editions:
            notes.ledger.append(memory.settled_row(edition.save_id, settled))
        if self.policy.backlog == "newest" and not (settled.found or self.is_planned):
            for other, reason in list(outrun(self.open.values(), edition.series, now.boot)):
                self._drop(other, notes, "superseded", reason)

    def call_back(self, edition: Edition, now: float, notes: Notebook) -> None:
        """Take up again what gave way, as if it had settled now, if it is still there."""
        self.aside = [other for other in self.aside if other is not edition]
        self.take(edition.settled, Instant(now, 0.0), notes)

    def _replaces(self, edition: Edition, notes: Notebook) -> bool:
        """Make room for a new content of the same name; return whether it is new at all."""
        for other in self.of(edition.checkpoint):
            if other.save_id == edition.save_id and other.listing == edition.listing:
                return False
            if not other.began or other.save_id == edition.save_id or other.state == "parked":
                self._drop(other, notes, "superseded", "written again before it was uploaded")
            elif is_overwritten(other, edition):
                self.voided(other, "written again in place while it was uploaded", notes)
        return True

    def _rivals(self, edition: Edition) -> tuple[int, ...]:
        committed = self.catalog.of(edition.checkpoint)
        row, safe = self._row(edition), self.safe.get(edition.checkpoint)
        return rivals_of(edition.save_id, committed, row, safe)

    def series_of(self, errand: Errand) -> str:
        """Return the series that an order works for, or nothing."""
        edition = self.open.get((errand.checkpoint, errand.save_id))
        return "" if edition is None else edition.series

    def of(self, checkpoint: str) -> list[Edition]:
        """Return the open editions of one name."""
        return [edition for edition in self.open.values() if edition.checkpoint == checkpoint]

    # Numbers and files --------------------------------------------------------------------------

    def number(self, edition: Edition, notes: Notebook) -> None:
        """Choose the edition's number: what a former daemon had, else the next free one."""
        row = self._row(edition)
        if row is None and edition.save_id in self.recalled.editions:
            # The same sizes and times, and other files: nothing that was stored of them counts.
            self._forget_row(edition.save_id, notes)
        # Of several machines one claims it: the others ask first, and write nothing in vain.
        is_asked = row is not None or self.policy.is_joint
        edition.claimed = "doubt" if is_asked else edition.claimed
        edition.number = self.next_number(edition.checkpoint) if row is None else row.number
        self.numbers[edition.checkpoint] = max(
            self.numbers.get(edition.checkpoint, 0), edition.number
        )
        row_order = memory.edition_row(edition.save_id, edition.number, edition.settled)
        notes.ledger.append(row_order)

    def next_number(self, checkpoint: str) -> int:
        """Return the lowest edition number of a name that nobody is known to have."""
        taken = max(self.catalog.of(checkpoint), default=0)
        return max(self.numbers.get(checkpoint, 0), taken) + 1

    def _row(self, edition: Edition) -> EditionRow | None:
        row = self.recalled.editions.get(edition.save_id)
        known = row is not None and row.number and row.settled.listing == edition.listing
        return row if known else None

    def renumber(self, edition: Edition, notes: Notebook) -> None:
        """Take the next number: this one belongs to another save."""
        self.numbers[edition.checkpoint] = max(
            self.numbers.get(edition.checkpoint, 0), edition.number
        )
        edition.claimed = "no"
        edition.looked = False
        edition.sealed = "no"
        edition.source = 0
        edition.joint = Joint()
        self._abandon_uploads(edition, notes)
        edition.begin_anew()
        self._forget_row(edition.save_id, notes)
        self.number(edition, notes)

    def claimed(self, edition: Edition, scene: Scene) -> None:
        """Lay out the files once the number is certain, with what is in the store already.

        Where files of the last safe edition could be shared, that is first looked after: somebody
        may have pruned it. From the claim on its data is not removed.
        """
        safe = self.safe.get(edition.checkpoint)
        if safe is not None and self._unchanged(edition):
            edition.source = safe.manifest.edition
        else:
            self.lay_out(edition, scene, {})

    def confirmed(self, edition: Edition, scene: Scene, *, is_there: bool) -> None:
        """Lay out the files, shared with the last safe edition if that is still there."""
        safe = self.safe.get(edition.checkpoint)
        same = safe is not None and safe.manifest.edition == edition.source
        edition.source = 0
        self.lay_out(edition, scene, self._unchanged(edition) if is_there and same else {})

    def lay_out(self, edition: Edition, scene: Scene, shared: dict[str, StoredFile]) -> None:
        """Plan what must be stored; what a former daemon had done is gone on with."""
        row = self._row(edition)
        self.recalled.editions.pop(edition.save_id, None)
        progress.plan_files(edition, scene, shared, row)
        for waiting in edition.files.values():
            if not waiting.nonce:
                waiting.nonce = self.next_nonce()

    def unclaimed(self, edition: Edition, notes: Notebook) -> None:
        """Believe nothing that the ledger says is stored: the claim came before, and is gone.

        Somebody emptied the bucket.
        """
        row = self.recalled.editions.get(edition.save_id)
        if row is not None:
            row.objects.clear()
            notes.ledger.append(memory.forget_objects(edition.save_id))

    def _unchanged(self, edition: Edition) -> dict[str, StoredFile]:
        """Return the files that the last safe edition has in the store with the same facts."""
        safe = self.safe.get(edition.checkpoint)
        if safe is None:
            return {}
        before = {fact.path: fact for fact in safe.listing.files if fact.kind == "file"}
        same = {fact.path for fact in edition.listing.files if before.get(fact.path) == fact}
        return {stored.path: stored for stored in safe.manifest.files if stored.path in same}

    def next_nonce(self) -> str:
        """Return a name for one upload that nobody else uses."""
        self.uploads_begun += 1
        return f"{self.nonce}.{self.uploads_begun}"

    # Ends ---------------------------------------------------------------------------------------

    def became_safe(self, edition: Edition, manifest: Manifest, notes: Notebook) -> None:
        """Note that the edition's manifest is in the store: the only way to ``safe``."""
        edition.number = manifest.edition
        edition.manifest = manifest
        self.catalog.add(edition.checkpoint, manifest.edition)
        self._forget(edition, notes)
        if edition.settled_at >= self.safe_since.get(edition.checkpoint, float("-inf")):
            self.safe[edition.checkpoint] = SafeRow(manifest, edition.listing)
            self.safe_since[edition.checkpoint] = edition.settled_at
            notes.ledger.append(memory.safe_row(manifest, edition.listing))
        self._close(edition)
        notes.moved(edition, "safe")
        self.committed.append((manifest, self.safe[edition.checkpoint].listing))
        self._outdate(edition, notes)

    def _outdate(self, newer: Edition, notes: Notebook) -> None:
        """Give up what settled earlier under the same name: it would be safe for nothing."""
        for other in self.of(newer.checkpoint):
            if other.settled_at <= newer.settled_at and self.policy.backlog == "newest":
                self._drop(other, notes, "superseded", "a newer save of it is safe")
        # What is in the store of it stays there for the others to complete.
        for other in [edition for edition in self.open.values() if edition.joint.is_waiting]:
            if other.series == newer.series and newer.is_newer_than(other):
                self._drop(other, notes, "superseded", f"{newer.checkpoint} is safe")

    def voided(self, edition: Edition, reason: str, notes: Notebook) -> None:
        """Give up an edition whose content changed under us; the eyes look for the next one."""
        self.void.append(edition.checkpoint)
        self._drop(edition, notes, "writing", reason)

    def unpinnable(self, edition: Edition, reason: str, notes: Notebook) -> None:
        """Give up an edition that could not be pinned; the eyes look again."""
        self.refused.append((edition.checkpoint, reason))
        self._drop(edition, notes, "writing", reason)

    def parked(self, edition: Edition, reason: str, until: float, notes: Notebook) -> None:
        """Give an edition up until a time (boot seconds), saying why."""
        edition.parked_until = until
        notes.moved(edition, "parked", reason)

    def _drop(self, edition: Edition, notes: Notebook, state: State, reason: str) -> None:
        notes.moved(edition, state, reason)
        self._forget(edition, notes)
        self._close(edition)
        if state != "writing":
            self.aside = [*self.aside[1 - KEPT_FOR_STATUS :], edition]

    def _forget(self, edition: Edition, notes: Notebook) -> None:
        self._forget_row(edition.save_id, notes)
        self._abandon_uploads(edition, notes)

    def _forget_row(self, save_id: str, notes: Notebook) -> None:
        """Forget what the ledger knows of an edition, and drop what a former daemon had begun."""
        notes.ledger.append(memory.forget_edition(save_id))
        row = self.recalled.editions.pop(save_id, None)
        if row is None:
            return
        for begun in row.uploads.values():
            self.leftovers.abandon(begun, notes)
        for path, (key, _) in row.intents.items():
            if path not in row.uploads:
                self.leftovers.look_for_stray(key, notes)

    def _close(self, edition: Edition) -> None:
        del self.open[(edition.checkpoint, edition.save_id)]
        errand = Errand("unpin", edition.checkpoint, edition.save_id)
        self.unpins[errand] = Unpin(errand)

    def _abandon_uploads(self, edition: Edition, notes: Notebook) -> None:
        for waiting in edition.files.values():
            if waiting.is_beginning:
                self.leftovers.await_begun(waiting.key, notes)
            if waiting.has_stray:
                self.leftovers.look_for_stray(waiting.key, notes)
            if waiting.begun is not None:
                self.leftovers.abandon(waiting.begun, notes)
                notes.ledger.append(memory.forget_upload(edition.save_id, waiting.fact.path))
                waiting.restart()

    def pruned_before(self, edition: Edition, notes: Notebook) -> None:
        """Give up a save that was stored and pruned: it would only be pruned again."""
        self._drop(edition, notes, "superseded", "it was pruned from the store")

    def pruned(self, checkpoint: str, number: int, notes: Notebook) -> None:
        """Note that an edition does not exist in the store any more: it is not safe there."""
        self.catalog.discard(checkpoint, number)
        self.numbers[checkpoint] = max(self.numbers.get(checkpoint, 0), number)
        row = self.safe.get(checkpoint)
        if row is not None and row.manifest.edition == number:
            self._no_longer_safe(checkpoint, notes)

    def removed(self, checkpoint: str, notes: Notebook) -> None:
        """Note that the trainer removed a checkpoint: what is in the store or pinned stays."""
        for edition in self.of(checkpoint):
            if not edition.pinned:
                self._drop(edition, notes, "vanished", "removed before it could be pinned")
        self._no_longer_safe(checkpoint, notes)

    def lost(self, edition: Edition, reason: str, notes: Notebook) -> None:
        """Note that what the trainer removed cannot be kept until it is safe."""
        self._drop(edition, notes, "vanished", reason)

    def _no_longer_safe(self, checkpoint: str, notes: Notebook) -> None:
        self.safe_since.pop(checkpoint, None)
        if self.safe.pop(checkpoint, None) is not None:
            notes.ledger.append(memory.forget_safe(checkpoint))

    # Orders beside the editions' own ------------------------------------------------------------

    def before(self, order: Order, edition: Edition, notes: Notebook) -> None:
        """Note what must be remembered before an order goes out."""
        edition.began = True
        if isinstance(order, Begin):
            path = order.errand.path
            self.leftovers.asked(edition.files.get(path), order.key, notes)
            row = memory.intent_row(edition.save_id, path, order.key, order.nonce)
            notes.ledger.append(row)

    # Start --------------------------------------------------------------------------------------

    def list_catalog(self, keys: tuple[str, ...], notes: Notebook) -> None:
        """Take in which manifests exist: nothing else is safe, whatever the ledger says."""
        for checkpoint in self.catalog.take(keys, self.recalled.safe):
            notes.ledger.append(memory.forget_safe(checkpoint))
        self._reconcile_all(notes)

    def confirm_safe(self, checkpoint: str, data: bytes | None, notes: Notebook) -> None:
        """Take in a manifest that the ledger knows: safe is what it says, if it says the same."""
        recalled = self.recalled.safe.get(checkpoint)
        row = self.catalog.read(checkpoint, data)
        if row is None:
            notes.ledger.append(memory.forget_safe(checkpoint))
        else:
            self.safe[checkpoint] = row
            self.committed.append((row.manifest, row.listing))
            if row != recalled:
                notes.ledger.append(memory.safe_row(row.manifest, row.listing))
        self._reconcile_all(notes)

    def _reconcile_all(self, notes: Notebook) -> None:
        if self.catalog.is_known:
            for edition in list(self.open.values()):
                self._reconcile(edition, notes)

    def _reconcile(self, edition: Edition, notes: Notebook) -> None:
        """Decide what a content that settled before the store answered is to the store."""
        row = self.safe.get(edition.checkpoint)
        if row is None or row.listing != edition.listing:
            edition.rivals = self._rivals(edition)
            return
        edition.number = row.manifest.edition
        notes.ledger.append(memory.forget_edition(edition.save_id))
        self._close(edition)
        notes.moved(edition, "safe", "committed before")

    def revive(self, held: tuple[str, ...], now: Instant, notes: Notebook) -> None:
        """Go on with what a former daemon had pinned, and let go of pins that nothing needs.

        The trainer may have removed such a checkpoint while no daemon ran.
        """
        for save_id in held:
            row = self.recalled.editions.get(save_id)
            if row is not None:
                self.take(row.settled, now, notes)
            else:
                errand = Errand("unpin", save_id=save_id)
                self.unpins[errand] = Unpin(errand)

    def drop_strays(self, uploads: Iterable[Begun], key: str, notes: Notebook) -> None:
        """Drop what was begun under one of our keys without anybody being told."""
        known = {
            waiting.begun.token
            for edition in self.open.values()
            for waiting in edition.files.values()
            if waiting.begun is not None
        }
        self.leftovers.drop_strays(uploads, key, known, notes)

    def drop_recalled(self, awaited: set[str], notes: Notebook) -> None:
        """Drop what was begun for checkpoints that are gone and cannot settle (``awaited``)."""
        for save_id, row in list(self.recalled.editions.items()):
            checkpoint = row.settled.checkpoint
            if checkpoint in awaited or (checkpoint, save_id) in self.open:
                continue
            self._forget_row(save_id, notes)
            errand = Errand("unpin", checkpoint, save_id)
            self.unpins[errand] = Unpin(errand)
