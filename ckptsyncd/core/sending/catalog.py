"""Which manifests the store holds, and whether what the ledger calls safe is among them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ckptsyncd.core.orders import Errand, GetSmall
from ckptsyncd.core.records import names
from ckptsyncd.core.records.manifest import Manifest, decode
from ckptsyncd.core.records.memory import SafeRow
from ckptsyncd.core.sending.compare import same_outline, same_sums
from ckptsyncd.errors import CkptsyncdError

PURPOSE = "confirm safe"


@dataclass(slots=True)
class Catalog:
    """The committed numbers of every name, by the store's own listing at the start.

    ``unconfirmed`` is what the ledger calls safe and whose number is committed, until its manifest
    was read: somebody may have emptied the bucket and another machine used the number since.
    """

    numbers: dict[str, set[int]] = field(default_factory=dict)
    unconfirmed: dict[str, SafeRow] = field(default_factory=dict)
    is_listed: bool = False

    @property
    def is_known(self) -> bool:
        """Whether the store was listed and all that the ledger calls safe was looked at."""
        return self.is_listed and not self.unconfirmed

    def of(self, checkpoint: str) -> set[int]:
        """Return the committed numbers of one name."""
        return self.numbers.get(names.quoted(checkpoint), set())

    def add(self, checkpoint: str, number: int) -> None:
        """Note a commit."""
        self.numbers.setdefault(names.quoted(checkpoint), set()).add(number)

    def discard(self, checkpoint: str, number: int) -> None:
        """Note that a commit was pruned."""
        self.of(checkpoint).discard(number)

    def take(self, keys: tuple[str, ...], recalled: dict[str, SafeRow]) -> list[str]:
        """Take in the listing; return the names that the ledger calls safe and that are not."""
        for key in keys:
            parsed = names.parse_manifest_key(key)
            if parsed is not None:
                self.numbers.setdefault(parsed[0], set()).add(parsed[1])
        self.is_listed = True
        for checkpoint, row in recalled.items():
            if row.manifest.edition in self.of(checkpoint):
                self.unconfirmed[checkpoint] = row
        return [checkpoint for checkpoint in recalled if checkpoint not in self.unconfirmed]

    def orders(self) -> Iterator[GetSmall]:
        """Yield the reading of every manifest that a row of the ledger stands for."""
        for checkpoint, row in self.unconfirmed.items():
            number = row.manifest.edition
            key = names.manifest_key(checkpoint, number)
            yield GetSmall(Errand(PURPOSE, checkpoint, index=number), key)

    def read(self, checkpoint: str, data: bytes | None) -> SafeRow | None:
        """Take in such a manifest; return what is safe by it, if it is the same content.

        The same save may have been committed again under other keys: then by the new manifest.
        """
        row = self.unconfirmed.pop(checkpoint, None)
        manifest = None if data is None else _decoded(data)
        if row is None or manifest is None:
            return None
        if manifest == row.manifest:
            return row
        sums = {stored.path: stored.crc64nvme for stored in row.manifest.files}
        is_same = same_outline(row.listing, manifest) and same_sums(sums, manifest)
        return SafeRow(manifest, row.listing) if is_same else None


def _decoded(data: bytes) -> Manifest | None:
    """Return a manifest, or nothing for a tombstone and for what nobody can read."""
    try:
        return decode(data)
    except CkptsyncdError:
        return None
