"""The small records beside the manifests: claims, latest, epochs, pointers.

Each has an ``encode`` method and a ``decode`` class method that raises Never on rubbish.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from ckptsyncd.core.records.manifest import (
    MAX_MANIFEST_BYTES,
    as_int,
    as_list,
    as_number,
    as_object,
    as_text,
    parse_json,
    safe_checkpoint,
    safe_path,
)

#: No record beside a manifest is larger (guessed; a claim of 100,000 keys stays below).
MAX_RECORD_BYTES = 32 * 1024 * 1024


def _dump(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode()


def _load(data: bytes) -> dict[str, Any]:
    return as_object(parse_json(data, MAX_RECORD_BYTES))


@dataclass(frozen=True, slots=True)
class Claim:
    """Who uploads one edition. Written create-only before the edition's first object is finished.

    ``save_id`` names the content: the same save joins the claim, any other takes the next edition.
    ``salt`` is the part of the data keys that tells this edition's objects from foreign ones.
    ``pruned_at``: the edition was committed and pruned at this time; its save, where it still lies
    on a disk, is not stored again. Several machines know by ``step``, ``saved_at`` and ``mark``
    that theirs is the same save (``together.saves``), and ``nodes`` is how many there are.
    """

    checkpoint: str
    edition: int
    series: str
    save_id: str
    nonce: str
    epoch: int
    node: int
    salt: str
    claimed_at: float
    pruned_at: float = 0.0
    step: int | None = None
    saved_at: float = 0.0
    mark: str = ""
    nodes: int = 1

    def encode(self) -> bytes:
        """Return the claim as JSON."""
        return _dump(asdict(self))

    @classmethod
    def decode(cls, data: bytes) -> Claim:
        """Return the claim in ``data``; raises Never."""
        row = _load(data)
        return cls(
            checkpoint=safe_checkpoint(row.get("checkpoint")),
            edition=as_int(row, "edition", 1),
            series=as_text(row, "series"),
            save_id=as_text(row, "save_id"),
            nonce=as_text(row, "nonce"),
            epoch=as_int(row, "epoch", 0),
            node=as_int(row, "node", 0),
            salt=as_text(row, "salt"),
            claimed_at=as_number(row, "claimed_at"),
            pruned_at=as_number({"pruned_at": 0.0} | row, "pruned_at"),
            step=None if row.get("step") is None else as_int(row, "step", 0),
            saved_at=as_number({"saved_at": 0.0} | row, "saved_at"),
            mark=as_text({"mark": ""} | row, "mark"),
            nodes=as_int(row, "nodes", 0, default=1),
        )


@dataclass(frozen=True, slots=True)
class Latest:
    """The hint to a series' newest edition, moved by compare-and-set; manifests are the truth.

    ``epochs`` maps each node to the run epoch of its newest daemon: a daemon that finds a higher
    one of its own node is fenced.
    """

    series: str
    checkpoint: str
    edition: int
    rank: tuple[int, int, float, int]
    epochs: tuple[tuple[int, int], ...]
    nonce: str
    moved_at: float
    step: int | None = None
    total_bytes: int = 0
    committed_at: float = 0.0

    def epoch_of(self, node: int) -> int:
        """Return the newest epoch known of a node, 0 where none."""
        return dict(self.epochs).get(node, 0)

    def encode(self) -> bytes:
        """Return the hint as JSON."""
        return _dump(asdict(self))

    @classmethod
    def decode(cls, data: bytes) -> Latest:
        """Return the hint in ``data``; raises Never."""
        row = _load(data)
        rank = as_list(row.get("rank"))
        if len(rank) != 4:  # noqa: PLR2004
            rank = [0, 0, 0, 0]
        named = {"lineage": rank[0], "step": rank[1], "saved_at": rank[2], "edition": rank[3]}
        pairs = [as_list(pair) for pair in as_list(row.get("epochs"))]
        return cls(
            series=as_text(row, "series"),
            checkpoint=safe_checkpoint(row.get("checkpoint")),
            edition=as_int(row, "edition", 1),
            rank=(
                as_int(named, "lineage", 0),
                as_int(named, "step", -1),
                as_number(named, "saved_at"),
                as_int(named, "edition", 0),
            ),
            epochs=tuple(
                (as_int({"n": pair[0]}, "n", 0), as_int({"e": pair[1]}, "e", 0))
                for pair in pairs
                if len(pair) == 2  # noqa: PLR2004
            ),
            nonce=as_text(row, "nonce"),
            moved_at=as_number(row, "moved_at"),
            step=None if row.get("step") is None else as_int(row, "step", 0),
            total_bytes=as_int(row, "total_bytes", 0, default=0),
            committed_at=as_number({"committed_at": 0.0} | row, "committed_at"),
        )


@dataclass(frozen=True, slots=True)
class Epoch:
    """The run epoch of one node of a series, raised by compare-and-set when a daemon takes over.

    ``start`` is the number of its holder's start (``Starts``): whoever started before it does not
    take the run from it. 0 where that is not known.
    """

    series: str
    node: int
    epoch: int
    nonce: str
    host: str
    taken_at: float
    start: int = 0

    def encode(self) -> bytes:
        """Return the epoch as JSON."""
        return _dump(asdict(self))

    @classmethod
    def decode(cls, data: bytes) -> Epoch:
        """Return the epoch in ``data``; raises Never."""
        row = _load(data)
        return cls(
            series=as_text(row, "series"),
            node=as_int(row, "node", 0),
            epoch=as_int(row, "epoch", 0),
            nonce=as_text(row, "nonce"),
            host=as_text(row, "host"),
            taken_at=as_number(row, "taken_at"),
            start=as_int(row, "start", 0, default=0),
        )


@dataclass(frozen=True, slots=True)
class Starts:
    """How many state directories were started anew for one node of a destination, by order."""

    node: int
    start: int
    nonce: str
    host: str
    started_at: float

    def encode(self) -> bytes:
        """Return the count as JSON."""
        return _dump(asdict(self))

    @classmethod
    def decode(cls, data: bytes) -> Starts:
        """Return the count in ``data``; raises Never."""
        row = _load(data)
        return cls(
            node=as_int(row, "node", 0),
            start=as_int(row, "start", 0),
            nonce=as_text(row, "nonce"),
            host=as_text(row, "host"),
            started_at=as_number(row, "started_at"),
        )


@dataclass(frozen=True, slots=True)
class Tombstone:
    """What is left of an edition whose manifest was pruned.

    Written before the manifest is removed: while that is there the edition exists, whatever a
    tombstone says. ``keys`` is the data that may go ``prune_grace`` after ``buried_at``, as far as
    no manifest names it; empty once it is gone.
    """

    checkpoint: str
    edition: int
    series: str
    total_bytes: int
    host: str
    reason: str
    buried_at: float
    keys: tuple[str, ...] = ()

    def encode(self) -> bytes:
        """Return the tombstone as JSON."""
        return _dump(asdict(self))

    @classmethod
    def decode(cls, data: bytes) -> Tombstone:
        """Return the tombstone in ``data``; raises Never and PathRefused."""
        row = as_object(parse_json(data, MAX_MANIFEST_BYTES))
        return cls(
            checkpoint=safe_checkpoint(row.get("checkpoint")),
            edition=as_int(row, "edition", 1),
            series=as_text(row, "series"),
            total_bytes=as_int(row, "total_bytes", 0),
            host=as_text(row, "host"),
            reason=as_text(row, "reason"),
            buried_at=as_number(row, "buried_at"),
            keys=tuple(safe_path(key) for key in as_list(row.get("keys"))),
        )


@dataclass(frozen=True, slots=True)
class Pointer:
    """A framework's own pointer as last seen: a small file's text, or a symlink's target."""

    path: str
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Pointers:
    """The pointers of a series, kept after the checkpoint that they name was safe."""

    series: str
    checkpoint: str
    edition: int
    pointers: tuple[Pointer, ...]

    def encode(self) -> bytes:
        """Return the pointers as JSON."""
        return _dump(asdict(self))

    @classmethod
    def decode(cls, data: bytes) -> Pointers:
        """Return the pointers in ``data``; raises Never."""
        row = _load(data)
        rows = [as_object(item) for item in as_list(row.get("pointers"))]
        return cls(
            series=as_text(row, "series"),
            checkpoint=safe_checkpoint(row.get("checkpoint")),
            edition=as_int(row, "edition", 1),
            pointers=tuple(
                Pointer(safe_path(item.get("path")), as_text(item, "kind"), as_text(item, "text"))
                for item in rows
            ),
        )


@dataclass(frozen=True, slots=True)
class Restored:
    """What was restored into a watch root, one row per series; the daemon reads it at start.

    ``lineage`` is the one to commit with from now on: the manifest's own where the newest
    checkpoint of the series was restored, the highest of the series plus one otherwise, so that
    lower steps may become latest again. ``partial``: only some files were asked for; what lies
    there is no checkpoint to go on from. The file is ``.ckptsyncd/restored.json``::

        {"format": 1, "restored": [{"checkpoint": "run/checkpoint-500", "edition": 1,
         "series": "run", "lineage": 0, "step": 500, "save_id": "...", "partial": false}]}
    """

    checkpoint: str
    edition: int
    series: str
    lineage: int
    step: int | None
    save_id: str
    partial: bool = False


@dataclass(frozen=True, slots=True)
class Restorations:
    """The content of ``.ckptsyncd/restored.json``: the last restore of each series."""

    rows: tuple[Restored, ...] = ()

    def of(self, series: str) -> Restored | None:
        """Return the last restore of a series, ``None`` where there was none."""
        return next((row for row in self.rows if row.series == series), None)

    def with_row(self, row: Restored) -> Restorations:
        """Return the same with this row in the place of its series'."""
        others = tuple(other for other in self.rows if other.series != row.series)
        return Restorations((*others, row))

    def encode(self) -> bytes:
        """Return the rows as JSON."""
        return _dump({"format": 1, "restored": [asdict(row) for row in self.rows]})

    @classmethod
    def decode(cls, data: bytes) -> Restorations:
        """Return the rows in ``data``; raises Never."""
        rows = [as_object(item) for item in as_list(_load(data).get("restored"))]
        return cls(
            tuple(
                Restored(
                    checkpoint=safe_checkpoint(row.get("checkpoint")),
                    edition=as_int(row, "edition", 1),
                    series=as_text(row, "series"),
                    lineage=as_int(row, "lineage", 0),
                    step=None if row.get("step") is None else as_int(row, "step", 0),
                    save_id=as_text(row, "save_id"),
                    partial=row.get("partial") is True,
                )
                for row in rows
            )
        )


@dataclass(frozen=True, slots=True)
class Verification:
    """What the last verification of everything found, and when (wall time).

    ``level`` as in ``ckptsyncd verify``; so many checkpoints were ``whole`` and ``broken``.
    """

    level: str
    verified_at: float
    whole: int
    broken: int
    host: str = ""

    def encode(self) -> bytes:
        """Return the record as JSON."""
        return _dump(asdict(self))

    @classmethod
    def decode(cls, data: bytes) -> Verification:
        """Return the record in ``data``; raises Never."""
        row = _load(data)
        return cls(
            level=as_text(row, "level"),
            verified_at=as_number(row, "verified_at"),
            whole=as_int(row, "whole", 0),
            broken=as_int(row, "broken", 0),
            host=as_text(row, "host"),
        )
