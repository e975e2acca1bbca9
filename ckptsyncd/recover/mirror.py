"""A second destination: every checkpoint that is committed in the first, its manifest last.

It is read back from the first destination and checked while it is read, so that nothing is called
safe there that could not be restored here. Keys and numbers are the same in both. What somebody
pruned from the second stays pruned; nothing is removed from either.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from ckptsyncd.checksum import BytesBody
from ckptsyncd.core.facts import Begun, IfAbsent, ObjectFact, Piece, Receipt
from ckptsyncd.core.ports import Store
from ckptsyncd.core.records import names
from ckptsyncd.core.records.documents import MAX_RECORD_BYTES
from ckptsyncd.core.records.manifest import Manifest, StoredFile, encode
from ckptsyncd.core.sending.pieces import cut, piece_bytes
from ckptsyncd.errors import (
    Again,
    CkptsyncdError,
    Lost,
    Missing,
    Never,
    PathRefused,
    Postponed,
    StoreError,
)
from ckptsyncd.recover.catalog import Catalog, Entry, read_catalog, read_manifest
from ckptsyncd.recover.patience import Pace, not_given, patiently
from ckptsyncd.recover.request import PIECE_BYTES, Skipped
from ckptsyncd.recover.stream import OTHER_CONTENT, Fault, Gap, Reader, Span, fault_of


@dataclass(frozen=True, slots=True)
class Mirrored:
    """What came over, newest first; what cannot, and why; how many are still to come."""

    copied: tuple[str, ...] = ()
    bytes: int = 0
    skipped: tuple[Skipped, ...] = ()
    behind: int = 0


def mirror(source: Store, target: Store, nonce: str, pace: Pace) -> Mirrored:
    """Copy every commit that the second destination lacks, the newest first.

    ``nonce`` marks what is written. Ends early where ``pace`` is stopped, between two pieces.
    Raises StoreError where one of the two does not answer after bounded retries.
    """
    return _Mirror(source, target, nonce, pace).run()


class _Mirror:
    """One run."""

    def __init__(self, source: Store, target: Store, nonce: str, pace: Pace) -> None:
        self._source = source
        self._target = target
        self._nonce = nonce
        self._pace = pace
        self._reader = Reader(source, pace, self._count)
        self._bytes = self._begun = 0

    def _count(self, length: int) -> None:
        self._bytes += length

    def run(self) -> Mirrored:
        """Do it."""
        catalog = read_catalog(self._source, self._pace)
        lacking = self._lacking(catalog)
        copied: list[str] = []
        skipped: list[Skipped] = []
        for entry in lacking:
            if self._pace.stop.is_set():
                break
            why = self._tried(entry)
            if why is not None:
                skipped += [Skipped(entry.title, why)] if why else []
            else:
                copied.append(entry.title)
        if not self._pace.stop.is_set():
            self._point(catalog)
        behind = len(lacking) - len(copied) - len(skipped)
        return Mirrored(tuple(copied), self._bytes, tuple(skipped), behind)

    def _lacking(self, catalog: Catalog) -> list[Entry]:
        """Return what was committed in the first and never in the second, newest first."""
        there = patiently(lambda: {f.key for f in self._target.list(names.MANIFESTS)}, self._pace)
        stones = patiently(lambda: {f.key for f in self._target.list(names.TOMBSTONES)}, self._pace)
        pruned = {names.MANIFESTS + key[len(names.TOMBSTONES) :] for key in stones}
        known = there | pruned
        lacking = [entry for entry in catalog.entries if entry.key not in known]
        return sorted(lacking, key=lambda entry: -entry.committed_at)

    def _tried(self, entry: Entry) -> str | None:
        """Copy one; return why that cannot be, nothing (empty) where it gave way."""
        try:
            self._copy(entry)
        except (Missing, Never, Lost, PathRefused) as error:
            return str(error)
        except Postponed:
            return ""
        return None

    def _copy(self, entry: Entry) -> None:
        manifest = read_manifest(self._source, entry.key, self._pace)
        self._claim(manifest)
        stored = tuple(self._file(row) for row in manifest.files)
        data = encode(replace(manifest, files=stored))
        self._record(entry.key, data)

    def _claim(self, manifest: Manifest) -> None:
        """Claim it as it was claimed in the first: so a later prune knows whose it is."""
        key = names.claim_key(manifest.checkpoint, manifest.edition)
        try:
            data, _ = patiently(lambda: self._source.get_small(key, MAX_RECORD_BYTES), self._pace)
            self._record(key, data)
        except (Missing, Lost):
            return  # without one a prune makes it anew; with one it was begun before

    def _record(self, key: str, data: bytes) -> None:
        """Create a record; success where the very same is there."""
        condition = IfAbsent() if self._target.limits.compare_and_set else None
        try:
            patiently(lambda: self._target.put_small(key, data, condition), self._pace)
        except Lost:
            there, _ = patiently(lambda: self._target.get_small(key, len(data) + 1), self._pace)
            if there != data:
                raise

    def _file(self, stored: StoredFile) -> StoredFile:
        """Bring one object over unless it is there; return how the second checked it."""
        if stored.kind != "file" or fault_of(self._target, stored, self._pace) is None:
            return stored
        self._begun += 1
        size = piece_bytes(stored.size, self._target.limits, PIECE_BYTES)
        try:
            fact = self._whole(stored) if stored.size <= size else self._pieces(stored, size)
        except Lost:
            # An answer of ours may have been lost before; whatever else is there is not ours.
            if fault_of(self._target, stored, self._pace) is not None:
                raise
            return stored
        return replace(stored, checked=fact.checked)

    def _whole(self, stored: StoredFile) -> ObjectFact:
        body = self._read(stored, Gap(0, stored.size))
        if body.crc64nvme() != stored.crc64nvme:
            msg = f"{stored.path!r}: {OTHER_CONTENT}"
            raise Never(msg)
        put, only = self._target.put_whole, self._target.limits.create_only_finish
        nonce = f"{self._nonce}.{self._begun}"
        return patiently(lambda: put(stored.key, body, nonce, create_only=only), self._pace)

    def _pieces(self, stored: StoredFile, size: int) -> ObjectFact:
        """Send a large file piece by piece; what was begun in vain is dropped."""
        target, nonce = self._target, f"{self._nonce}.{self._begun}"
        begun = patiently(lambda: target.begin(stored.key, stored.size, size, nonce), self._pace)
        try:
            receipts = [self._piece(stored, begun, piece) for piece in cut(stored.size, size)]
            only = target.limits.create_only_finish
            return patiently(
                lambda: target.finish(begun, receipts, stored.crc64nvme, create_only=only),
                self._pace,
            )
        except CkptsyncdError:
            with suppress(StoreError):
                target.abandon(begun)
            raise

    def _piece(self, stored: StoredFile, begun: Begun, piece: Piece) -> Receipt:
        body = self._read(stored, Gap(piece.offset, piece.length))
        return patiently(lambda: self._target.put_piece(begun, piece, body), self._pace)

    def _read(self, stored: StoredFile, gap: Gap) -> BytesBody:
        """Return a piece of a file of the first; Never where it is broken there, or not given."""
        blocks: list[bytes] = []
        found: Span | Fault
        try:
            found = self._reader.read(stored, gap, lambda _, data: blocks.append(data))
        except Again as error:
            fault = fault_of(self._source, stored, self._pace)  # raises where all is silent
            found = fault or Fault(stored.path, not_given(error))
        if self._pace.stop.is_set():
            msg = "something more urgent has come"
            raise Postponed(msg)
        if isinstance(found, Fault):
            msg = f"{stored.path!r}: {found.reason}"
            raise Never(msg)
        return BytesBody(b"".join(blocks), found.crc64nvme)

    def _point(self, catalog: Catalog) -> None:
        """Copy the hint and the pointers of each series; both are only hints."""
        for series in catalog.series:
            for key in (names.latest_key(series.name), names.pointers_key(series.name)):
                data = self._small(self._source, key)
                if data is not None and data != self._small(self._target, key):
                    patiently(partial(self._target.put_small, key, data, None), self._pace)

    def _small(self, store: Store, key: str) -> bytes | None:
        try:
            return patiently(lambda: store.get_small(key, MAX_RECORD_BYTES), self._pace)[0]
        except (Missing, Never):
            return None
