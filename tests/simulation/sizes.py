"""A store that keeps records and the sizes of objects, and refuses what a store refuses.

An upload must be begun, its pieces must be there, a condition must hold. Nothing torn is committed.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ckptsyncd.core import orders
from ckptsyncd.core.facts import (
    Begun,
    FileFact,
    IfAbsent,
    IfMatches,
    Limits,
    ObjectFact,
    Receipt,
)
from ckptsyncd.core.messages import (
    Deleted,
    Failed,
    KeysListed,
    Message,
    ObjectSeen,
    ObjectStored,
    PieceStored,
    Probed,
    RecordPut,
    RecordRead,
    UploadAbandoned,
    UploadBegun,
    UploadsListed,
)
from ckptsyncd.core.records.manifest import Manifest, decode
from ckptsyncd.core.records.names import MANIFESTS

#: Every content has this checksum: nothing is really sent.
CHECKSUM = 7


@dataclass
class SizeStore:
    """Answers orders at once. ``files`` is what lies on the disk, to judge what is committed."""

    limits: Limits
    files: Mapping[str, FileFact]
    records: dict[str, tuple[bytes, str]] = field(default_factory=dict)
    objects: dict[str, ObjectFact] = field(default_factory=dict)
    begun: dict[str, dict[int, Receipt]] = field(default_factory=dict)
    committed: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Start with nothing."""
        self.count = itertools.count(1)
        self.doers: dict[type, Callable[[Any, float], Message]] = {
            orders.Probe: lambda o, _: Probed(o.errand, self.limits, "pretended"),
            orders.ListKeys: self._list,
            orders.ListUploads: lambda o, _: UploadsListed(o.errand, ()),
            orders.Begin: self._begin,
            orders.PutPiece: self._put_piece,
            orders.Finish: self._finish,
            orders.PutWhole: self._put_whole,
            orders.PutSmall: self._put_small,
            orders.GetSmall: self._get_small,
            orders.Stat: lambda o, _: ObjectSeen(o.errand, self.objects.get(o.key), CHECKSUM),
            orders.Abandon: self._abandon,
        }

    def answer(self, order: orders.HandOrder, seconds: float) -> Message:
        """Do one order, which took so long, and return its answer."""
        doer = self.doers.get(type(order))
        return Deleted(order.errand) if doer is None else doer(order, seconds)

    def _list(self, order: orders.ListKeys, _: float) -> Message:
        keys = tuple(key for key in self.records if key.startswith(order.prefix))
        return KeysListed(order.errand, keys)

    def _begin(self, order: orders.Begin, _: float) -> Message:
        token = f"token-{next(self.count)}"
        self.begun[token] = {}
        begun = Begun(order.key, token, order.nonce, order.size, order.piece_bytes)
        return UploadBegun(order.errand, begun)

    def _put_piece(self, order: orders.PutPiece, seconds: float) -> Message:
        if order.begun.token not in self.begun:
            return Failed(order.errand, "gone", "no such upload")
        receipt = Receipt(order.piece.index, order.piece.length, CHECKSUM, "etag")
        self.begun[order.begun.token][order.piece.index] = receipt
        return PieceStored(order.errand, receipt, seconds)

    def _finish(self, order: orders.Finish, seconds: float) -> Message:
        begun = order.begun
        pieces = self.begun.pop(begun.token, None)
        if pieces is None:
            return Failed(order.errand, "gone", "no such upload")
        assert [pieces[r.index] for r in order.receipts] == list(order.receipts)
        assert sum(receipt.length for receipt in order.receipts) == begun.size
        return self._stored(order.errand, begun.key, begun.size, begun.nonce, seconds)

    def _put_whole(self, order: orders.PutWhole, seconds: float) -> Message:
        if order.key in self.objects:
            return Failed(order.errand, "lost", "somebody was faster")
        return self._stored(order.errand, order.key, order.piece.length, order.nonce, seconds)

    def _stored(
        self, errand: orders.Errand, key: str, size: int, nonce: str, seconds: float
    ) -> Message:
        fact = ObjectFact(key, size, "v", CHECKSUM, nonce, "crc64nvme")
        self.objects[key] = fact
        return ObjectStored(errand, fact, CHECKSUM, seconds)

    def _get_small(self, order: orders.GetSmall, _: float) -> Message:
        data, version = self.records.get(order.key, (None, ""))
        return RecordRead(order.errand, data, version)

    def _put_small(self, order: orders.PutSmall, _: float) -> Message:
        version = self.records[order.key][1] if order.key in self.records else None
        condition = order.condition
        is_taken = isinstance(condition, IfAbsent) and version is not None
        is_other = isinstance(condition, IfMatches) and version != condition.version
        if is_taken or is_other:
            return Failed(order.errand, "lost", "somebody was faster")
        made = f"v{next(self.count)}"
        self.records[order.key] = (order.data, made)
        if order.key.startswith(MANIFESTS):
            self._judge(decode(order.data))
        return RecordPut(order.errand, made)

    def _abandon(self, order: orders.Abandon, _: float) -> Message:
        self.begun.pop(order.begun.token, None)
        return UploadAbandoned(order.errand)

    def _judge(self, manifest: Manifest) -> None:
        """Judge that nothing torn is ever committed."""
        for stored in manifest.files:
            fact = self.objects.get(stored.key)
            assert fact is not None, f"{stored.key} is named by a manifest and is not there"
            assert fact.size == stored.size == self.files[stored.path].size
        self.committed.append(manifest.checkpoint)
