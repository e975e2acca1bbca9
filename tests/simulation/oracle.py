"""The judge of a pretended night: looks behind everybody's back and knows what must never happen.

It sees every object that appears in the store, every turn of every mind, and what was really on the
disks. It never asks the program under test whether something is true.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ckptsyncd.checksum import crc64nvme
from ckptsyncd.core.brain import Brain
from ckptsyncd.core.records import names
from ckptsyncd.core.records.documents import Claim, Epoch, Latest, Pointers
from ckptsyncd.core.records.manifest import Manifest, StoredFile, decode
from ckptsyncd.core.records.memory import SafeRow
from ckptsyncd.stores.memory import MemoryStore
from tests.simulation.disk import PretendDisk


class Violation(AssertionError):
    """Something happened that must never happen."""


def check(fact: object, text: str) -> None:
    """Raise Violation where the fact is not true."""
    if not fact:
        raise Violation(text)


#: Records that are written again and again.
CHANGING = (names.LATEST, names.POINTERS, names.EPOCHS, names.COMPANIONS, names.STARTS)


@dataclass(slots=True)
class Oracle:
    """Judges everything that is seen. ``strict``: nothing hid the trainers from the daemons.

    ``has_conditions``: the store refuses what somebody else wrote first; without that there may
    be only one writer, and late requests may turn a hint back.
    """

    store: MemoryStore
    disks: list[PretendDisk] = field(default_factory=list)
    strict: bool = False
    has_conditions: bool = True
    objects: dict[str, bytes] = field(default_factory=dict)
    written: dict[str, int] = field(default_factory=dict)
    manifests: dict[str, Manifest] = field(default_factory=dict)
    latest: dict[str, Latest] = field(default_factory=dict)
    epochs: dict[tuple[str, int], dict[int, str]] = field(default_factory=dict)
    judged: dict[int, SafeRow] = field(default_factory=dict)
    told: dict[str, int] = field(default_factory=dict)
    writes: int = 0

    # The store ----------------------------------------------------------------------------------

    def look(self) -> None:
        """Judge what has changed in the store since the last look."""
        now = self.store.objects()
        before = self.objects
        self.objects = now
        check(len(now) >= len(before), "an object was removed")
        for key, data in now.items():
            old = before.get(key)
            if old is not data and old != data:
                self.writes += 1
                self._judge(key, old, data)

    def _judge(self, key: str, old: bytes | None, data: bytes) -> None:
        changing = key.startswith(CHANGING) or self._is_harmless(key, old, data)
        check(old is None or changing, f"{key} was written twice with other content")
        self.written.setdefault(key, self.writes)
        if key.startswith(names.MANIFESTS):
            self._manifest(key, decode(data))
        elif key.startswith(names.LATEST):
            self._latest(Latest.decode(data))
        elif key.startswith(names.EPOCHS):
            self._epoch(Epoch.decode(data))
        elif key.startswith(names.POINTERS):
            self._pointers(Pointers.decode(data))

    def _is_harmless(self, key: str, old: bytes | None, data: bytes) -> bool:
        """Return whether a record was put again where no condition forbids it, without harm."""
        if self.has_conditions or old is None:
            return False
        if key.startswith(names.CLAIMS):
            return key.replace(names.CLAIMS, names.MANIFESTS) not in self.objects
        if key.startswith(names.MANIFESTS):
            return decode(old).save_id == decode(data).save_id
        named = (file.key for manifest in self.manifests.values() for file in manifest.files)
        return key not in named

    def _manifest(self, key: str, manifest: Manifest) -> None:
        named = names.manifest_key(manifest.checkpoint, manifest.edition)
        check(key == named, f"the manifest at {key} says it is {named}")
        if self.has_conditions:
            self._not_again(manifest)
        self.manifests[key] = manifest
        self.restorable(manifest)
        self._claimed(manifest)

    def _not_again(self, manifest: Manifest) -> None:
        """Judge that nobody began to send a save again, unchanged, after it was told to be safe.

        Where another save of that name was committed in between, this one is new again: somebody
        touched the file, or put another there, and then brought back the old one with its times.
        """
        files = self.contents(manifest)
        claimed = self.written.get(names.claim_key(manifest.checkpoint, manifest.edition), 0)
        for key, other in self.manifests.items():
            is_same = (other.checkpoint, other.save_id) == (manifest.checkpoint, manifest.save_id)
            if (
                is_same
                and self.told.get(key, claimed) < claimed
                and not self._between(other, manifest)
            ):
                text = f"{manifest.checkpoint}@{manifest.edition} is {other.edition} once more"
                check(self.contents(other) != files, text)

    def _between(self, other: Manifest, manifest: Manifest) -> bool:
        """Return whether a save other than these was committed between the two editions."""
        return any(
            one.checkpoint == manifest.checkpoint
            and one.save_id != manifest.save_id
            and other.edition < one.edition < manifest.edition
            for one in self.manifests.values()
        )

    def restorable(self, manifest: Manifest) -> None:
        """Judge that a manifest restores to what really was on a disk, all at one moment."""
        files: dict[str, bytes] = {}
        for stored in manifest.files:
            if stored.kind == "file":
                files[stored.path] = self._content(manifest, stored)
        title = f"{manifest.checkpoint}@{manifest.edition} ({manifest.evidence})"
        was_there = any(disk.history.moments(manifest.checkpoint, files) for disk in self.disks)
        check(was_there, f"{title} never was on a disk like this")
        if self.strict:
            name = manifest.checkpoint
            whole = any(disk.history.finished_moments(name, files) for disk in self.disks)
            check(whole, f"{title} was being written or removed at every such moment")

    def _content(self, manifest: Manifest, stored: StoredFile) -> bytes:
        data = self.objects.get(stored.key)
        title = f"{stored.path} of {manifest.checkpoint}@{manifest.edition}"
        check(data is not None, f"{title}: {stored.key} is not in the store")
        assert data is not None
        check(len(data) == stored.size, f"{title} has {len(data)} bytes, not {stored.size}")
        check(crc64nvme(data) == stored.crc64nvme, f"{title} has another checksum")
        return data

    def _claimed(self, manifest: Manifest) -> None:
        key = names.claim_key(manifest.checkpoint, manifest.edition)
        title = f"{manifest.checkpoint}@{manifest.edition}"
        check(key in self.objects, f"{title} was committed without a claim")
        claim = Claim.decode(self.objects[key])
        check(claim.save_id == manifest.save_id, f"{title} is claimed by another save")
        place = f"{names.EDITIONS}{names.quoted(manifest.checkpoint)}/{manifest.edition}"
        for stored in manifest.files:
            plain = manifest.edition == 1 and stored.key == names.key_of_path(stored.path)
            own = plain or stored.key.startswith((place + "/", place + "-"))
            early = own and self.written[stored.key] < self.written[key]
            check(not early, f"{stored.key} was stored before {title} was claimed")

    def _latest(self, latest: Latest) -> None:
        before = self.latest.get(latest.series)
        self.latest[latest.series] = latest
        key = names.manifest_key(latest.checkpoint, latest.edition)
        check(key in self.objects, f"latest names {key}, which does not exist")
        check(self.manifests[key].rank() == latest.rank, f"latest has another rank than {key}")
        if before is None or not self.has_conditions:
            return
        check(latest.rank >= before.rank, f"latest went back from {before} to {latest}")
        for node, epoch in before.epochs:
            check(latest.epoch_of(node) >= epoch, f"latest lost epoch {epoch}")
        for node, epoch in latest.epochs:
            holder = self.epochs.get((latest.series, node), {}).get(epoch)
            text = f"latest of {latest.series} was moved by {latest.nonce}, epoch is {holder}'s"
            check(holder == latest.nonce, text)

    def _epoch(self, epoch: Epoch) -> None:
        taken = self.epochs.setdefault((epoch.series, epoch.node), {})
        if self.has_conditions:
            check(epoch.epoch not in taken, f"epoch {epoch.epoch} was taken twice")
            check(epoch.epoch > max(taken, default=0), f"the epoch went back to {epoch.epoch}")
        taken[epoch.epoch] = epoch.nonce

    def _pointers(self, pointers: Pointers) -> None:
        key = names.manifest_key(pointers.checkpoint, pointers.edition)
        check(key in self.objects, f"pointers name {key}, which does not exist")

    # The minds ----------------------------------------------------------------------------------

    def hear(self, brain: Brain) -> None:
        """Judge what a mind calls safe."""
        for row in brain.editions.safe.values():
            if id(row) not in self.judged:
                self._safe(row)
                self.judged[id(row)] = row

    def _safe(self, row: SafeRow) -> None:
        key = names.manifest_key(row.manifest.checkpoint, row.manifest.edition)
        check(self.manifests.get(key) == row.manifest, f"{key} is called safe and is not there")
        self.told.setdefault(key, self.writes)
        stored = {file.path: file for file in row.manifest.files}
        for fact in row.listing.files:
            check(fact.path in stored, f"{fact.path} is called safe and is in no manifest")
            if fact.kind != "file":
                continue
            data = self.objects[stored[fact.path].key]
            identity = (fact.device, fact.inode, fact.size, fact.mtime_ns)
            known = self._identities(identity)
            check(data in known, f"{fact.path} is called safe with other content than the store's")

    def _identities(self, identity: tuple[int, int, int, int]) -> set[bytes]:
        for disk in self.disks:
            if disk.device == identity[0]:
                return disk.history.identities.get(identity, set())
        return set()

    def forget(self) -> None:
        """Take in that somebody emptied the bucket."""
        self.objects, self.written, self.manifests = {}, {}, {}
        self.latest, self.epochs, self.judged, self.told = {}, {}, {}, {}

    def all_restorable(self) -> None:
        """Judge every manifest once more."""
        for manifest in self.manifests.values():
            self.restorable(manifest)

    def contents(self, manifest: Manifest) -> Mapping[str, bytes]:
        """Return what restoring it would bring."""
        return {
            stored.path: self.objects.get(stored.key, b"")
            for stored in manifest.files
            if stored.kind == "file"
        }

    def newest(self, series: str) -> Manifest | None:
        """Return the manifest of the highest rank in a series."""
        found = [m for m in self.manifests.values() if m.series == series]
        return max(found, key=Manifest.rank, default=None)
