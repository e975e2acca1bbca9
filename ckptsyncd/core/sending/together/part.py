"""One node's part of an edition that several machines store: written once, when all of it is there.

``decode`` trusts nothing, as the manifest's does.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from ckptsyncd.core.records.manifest import (
    MAX_FILES,
    MAX_MANIFEST_BYTES,
    StoredFile,
    as_int,
    as_list,
    as_number,
    as_object,
    as_text,
    decode_file,
    encode_file,
    parse_json,
    safe_checkpoint,
    safe_path,
)
from ckptsyncd.errors import Never


@dataclass(frozen=True, slots=True)
class Part:
    """What one node has stored of an edition, checked there, second look included.

    ``save_id`` is the claim's, ``content`` names what this node had. ``absent`` are the files that
    an index here names and that are not here: another node has to have them. ``named`` are all
    that it names, and ``loose`` files with data here that it does not name. ``nodes`` is 0 where
    nobody counted them.
    """

    checkpoint: str
    edition: int
    series: str
    node: int
    nodes: int
    save_id: str
    content: str
    step: int | None
    after_step: int
    layout: str
    evidence: str
    saved_at: float
    host: str
    nonce: str
    epoch: int
    late: bool
    files: tuple[StoredFile, ...]
    absent: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    loose: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()

    def sums(self) -> dict[str, int]:
        """Return the checksum of each regular file."""
        return {stored.path: stored.crc64nvme for stored in self.files if stored.kind == "file"}

    def encode(self) -> bytes:
        """Return the part as JSON."""
        names = [name for name in self.__slots__ if name != "files"]
        document: dict[str, Any] = {name: getattr(self, name) for name in names}
        document["files"] = [encode_file(stored) for stored in self.files]
        return json.dumps(document, ensure_ascii=True, separators=(",", ":")).encode()

    @classmethod
    def decode(cls, data: bytes) -> Part:
        """Return the part in ``data``; raises Never and PathRefused."""
        row = as_object(parse_json(data, MAX_MANIFEST_BYTES))
        rows = as_list(row.get("files"))
        if len(rows) > MAX_FILES:
            msg = f"a part with {len(rows)} files is refused"
            raise Never(msg)
        return cls(
            checkpoint=safe_checkpoint(row.get("checkpoint")),
            edition=as_int(row, "edition", 1),
            series=as_text(row, "series"),
            node=as_int(row, "node", 0),
            nodes=as_int(row, "nodes", 0),
            save_id=as_text(row, "save_id"),
            content=as_text(row, "content"),
            step=None if row.get("step") is None else as_int(row, "step", 0),
            after_step=as_int(row, "after_step", -1),
            layout=as_text(row, "layout"),
            evidence=as_text(row, "evidence"),
            saved_at=as_number(row, "saved_at"),
            host=as_text(row, "host"),
            nonce=as_text(row, "nonce"),
            epoch=as_int(row, "epoch", 0),
            late=row.get("late") is True,
            files=tuple(decode_file(as_object(item)) for item in rows),
            absent=tuple(safe_path(path) for path in as_list(row.get("absent", []))),
            named=tuple(safe_path(path) for path in as_list(row.get("named", []))),
            loose=tuple(safe_path(path) for path in as_list(row.get("loose", []))),
            stale=tuple(str(path) for path in as_list(row.get("stale", []))),
        )
