"""The commit record of one edition, written last: the only thing that makes a checkpoint exist.

``encode`` and ``decode`` are exact inverses. ``decode`` trusts nothing: it refuses wrong types,
absurd sizes and every name that would leave the root, because the store may be hostile.
Readers accept every older format version; fields that they do not know are ignored.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ckptsyncd.core.facts import FileFact, Kind
from ckptsyncd.errors import Never, PathRefused

FORMAT_VERSION = 1

#: No manifest is larger (guessed: 100,000 files of 400 bytes each are 40 MB).
MAX_MANIFEST_BYTES = 128 * 1024 * 1024
_CHECKSUM_DIGITS = 16
_HEX = frozenset("0123456789abcdefABCDEF")
#: No checkpoint has more files (guessed, ten times the load test).
MAX_FILES = 1_000_000
_JSON = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class StoredFile:
    """One file of a committed edition and where its bytes lie.

    ``path`` is relative to the watch root; ``key`` is empty for symlinks and directories.
    ``checked`` names what the store compared before this file was called safe. ``node`` had it, and
    ``also`` had the same content under the same name. ``twin``: the path of the same file under
    another name (a hard link), if it had one. ``piece_sums`` are the CRC64-NVME of its pieces of
    ``piece_bytes`` each (the last may be shorter), where it was sent in pieces: a part of it can be
    read back and compared.
    """

    path: str
    kind: Kind
    size: int
    mode: int
    mtime_ns: int
    key: str = ""
    crc64nvme: int = 0
    checked: str = ""
    target: str | None = None
    node: int = 0
    also: tuple[int, ...] = ()
    twin: str | None = None
    piece_bytes: int = 0
    piece_sums: tuple[int, ...] = ()


def stored_file(fact: FileFact, key: str, crc64nvme: int, checked: str, node: int) -> StoredFile:
    """Return the manifest's row for a file whose bytes are in the store."""
    return StoredFile(
        path=fact.path,
        kind=fact.kind,
        size=fact.size if fact.kind == "file" else 0,
        mode=fact.mode,
        mtime_ns=fact.mtime_ns,
        key=key,
        crc64nvme=crc64nvme,
        checked=checked,
        target=fact.target,
        node=node,
    )


@dataclass(frozen=True, slots=True)
class Writer:
    """Who committed: one process on one machine; ``nonce`` tells two of them apart."""

    host: str
    epoch: int
    nonce: str
    version: str
    node: int = 0


@dataclass(frozen=True, slots=True)
class Manifest:
    """One edition of one checkpoint, whole in the store. Times are seconds since the epoch."""

    checkpoint: str
    edition: int
    series: str
    step: int | None
    after_step: int
    lineage: int
    layout: str
    evidence: str
    save_id: str
    saved_at: float
    committed_at: float
    files: tuple[StoredFile, ...]
    writer: Writer
    stale: tuple[str, ...] = ()
    nodes: tuple[int, ...] = (0,)
    late: bool = False
    format: int = field(default=FORMAT_VERSION)

    @property
    def bytes(self) -> int:
        """How many bytes its regular files hold together."""
        return sum(stored.size for stored in self.files if stored.kind == "file")

    def rank(self) -> tuple[int, int, float, int]:
        """Order manifests of one series: lineage, then step, then save time, then edition.

        A checkpoint whose name has no step counts as saved after the highest step that its writer
        had seen (``after_step``), so ``last.ckpt`` beside numbered ones is ordered rightly.
        """
        step = self.after_step if self.step is None else self.step
        return (self.lineage, step, self.saved_at, self.edition)


def safe_path(path: object) -> str:
    """Return the path if it stays below its root, else raise PathRefused."""
    if not isinstance(path, str) or not path or "\0" in path or not _is_name(path):
        msg = f"not a usable path: {path!r:.80}"
        raise PathRefused(msg)
    parts = path.split("/")
    if path.startswith("/") or any(part in ("", ".", "..") for part in parts):
        msg = f"a path that leaves its directory is refused: {path!r:.200}"
        raise PathRefused(msg)
    return path


def safe_checkpoint(name: object) -> str:
    """Return a checkpoint's name: a safe path, or ``.`` for the watch root itself."""
    return "." if name == "." else safe_path(name)


def _is_name(text: str) -> bool:
    """Return whether a text can be a name on disk: a lone surrogate may stand for one byte only."""
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return True


def encode(manifest: Manifest) -> bytes:
    """Return the manifest as JSON (UTF-8; bytes of names that are not UTF-8 as escapes)."""
    return b"".join(encoded(manifest))


def encoded(manifest: Manifest) -> Iterator[bytes]:
    """Yield the same in small parts: a hundred thousand files as objects take 45 MB more."""
    yield (_JSON.encode(_head(manifest)).removesuffix("}") + ',"files":[').encode()
    comma = ""
    for stored in manifest.files:
        yield (comma + _JSON.encode(encode_file(stored))).encode()
        comma = ","
    yield b"]}"


def _head(manifest: Manifest) -> dict[str, Any]:
    """Return everything but the files."""
    return {
        "format": manifest.format,
        "checkpoint": manifest.checkpoint,
        "edition": manifest.edition,
        "series": manifest.series,
        "step": manifest.step,
        "after_step": manifest.after_step,
        "lineage": manifest.lineage,
        "layout": manifest.layout,
        "evidence": manifest.evidence,
        "save_id": manifest.save_id,
        "saved_at": manifest.saved_at,
        "committed_at": manifest.committed_at,
        "late": manifest.late,
        "stale": list(manifest.stale),
        "nodes": list(manifest.nodes),
        "writer": {
            "host": manifest.writer.host,
            "epoch": manifest.writer.epoch,
            "nonce": manifest.writer.nonce,
            "version": manifest.writer.version,
            "node": manifest.writer.node,
        },
    }


def encode_file(stored: StoredFile) -> dict[str, Any]:
    """Return one file's row as a JSON object."""
    row: dict[str, Any] = {
        "path": stored.path,
        "kind": stored.kind,
        "size": stored.size,
        "mode": stored.mode,
        "mtime_ns": stored.mtime_ns,
    }
    if stored.kind == "file":
        row |= {
            "key": stored.key,
            "crc64nvme": f"{stored.crc64nvme:016x}",
            "checked": stored.checked,
        }
    if stored.target is not None:
        row["target"] = stored.target
    if stored.node:
        row["node"] = stored.node
    if stored.also:
        row["also"] = list(stored.also)
    if stored.twin is not None:
        row["twin"] = stored.twin
    if stored.piece_sums:
        row["piece_bytes"] = stored.piece_bytes
        row["piece_sums"] = "".join(f"{crc:016x}" for crc in stored.piece_sums)
    return row


def decode(data: bytes) -> Manifest:
    """Return the manifest in ``data``.

    Raises Never where it is no manifest that this version can read, PathRefused where a name in
    it would leave the root.
    """
    document = as_object(parse_json(data, MAX_MANIFEST_BYTES))
    version = as_int(document, "format", 1)
    if version > FORMAT_VERSION:
        msg = f"the manifest has format {version}, this program reads up to {FORMAT_VERSION}"
        raise Never(msg, hint="install a newer ckptsyncd")
    writer = as_object(document.get("writer"))
    return Manifest(
        checkpoint=safe_checkpoint(document.get("checkpoint")),
        edition=as_int(document, "edition", 1),
        series=_as_name(document, "series"),
        step=None if document.get("step") is None else as_int(document, "step", 0),
        after_step=as_int(document, "after_step", -1, default=-1),
        lineage=as_int(document, "lineage", 0, default=0),
        layout=as_text(document, "layout"),
        evidence=as_text(document, "evidence"),
        save_id=as_text(document, "save_id"),
        saved_at=as_number(document, "saved_at"),
        committed_at=as_number(document, "committed_at"),
        files=_decode_files(document.get("files")),
        writer=Writer(
            host=as_text(writer, "host"),
            epoch=as_int(writer, "epoch", 0),
            nonce=as_text(writer, "nonce"),
            version=as_text(writer, "version"),
            node=as_int(writer, "node", 0, default=0),
        ),
        stale=tuple(str(item) for item in as_list(document.get("stale", []))),
        nodes=tuple(item for item in as_list(document.get("nodes", [0])) if isinstance(item, int)),
        late=document.get("late") is True,
        format=version,
    )


def _decode_files(rows: object) -> tuple[StoredFile, ...]:
    listed = as_list(rows)
    if not 0 < len(listed) <= MAX_FILES:
        msg = f"a manifest with {len(listed)} files is refused"
        raise Never(msg)
    files = tuple(decode_file(as_object(row)) for row in listed)
    if len({stored.path for stored in files}) != len(files):
        msg = "a manifest that names a path twice is refused"
        raise PathRefused(msg)
    return files


def decode_file(row: dict[str, Any]) -> StoredFile:
    """Return the file in a row; raises Never and PathRefused as ``decode`` does."""
    kind = row.get("kind")
    if kind not in ("file", "symlink", "directory"):
        msg = f"unknown kind of file in a manifest: {kind!r:.40}"
        raise Never(msg)
    target = _as_name(row, "target") if kind == "symlink" else None
    key = safe_path(row.get("key")) if kind == "file" else ""
    piece_bytes, piece_sums = _decode_pieces(row) if kind == "file" else (0, ())
    return StoredFile(
        path=safe_path(row.get("path")),
        kind=kind,
        size=as_int(row, "size", 0),
        mode=as_int(row, "mode", 0) & 0o7777,
        mtime_ns=as_int(row, "mtime_ns", -(2**63)),
        key=key,
        crc64nvme=_as_checksum(row) if kind == "file" else 0,
        checked=str(row.get("checked", "")),
        target=target,
        node=as_int(row, "node", 0, default=0),
        also=tuple(item for item in as_list(row.get("also", [])) if isinstance(item, int)),
        twin=safe_path(row["twin"]) if row.get("twin") is not None and kind == "file" else None,
        piece_bytes=piece_bytes,
        piece_sums=piece_sums,
    )


def _decode_pieces(row: dict[str, Any]) -> tuple[int, tuple[int, ...]]:
    """Return the size and the checksums of the pieces; Never where they do not cover the file."""
    if row.get("piece_sums") is None:
        return 0, ()
    size, piece_bytes = as_int(row, "size", 0), as_int(row, "piece_bytes", 1)
    text = as_text(row, "piece_sums")
    count = -(-size // piece_bytes)
    if len(text) != count * _CHECKSUM_DIGITS:
        msg = f"{len(text)} digits are no checksums of {count} pieces"
        raise Never(msg)
    starts = range(0, len(text), _CHECKSUM_DIGITS)
    return piece_bytes, tuple(_checksum(text[at : at + _CHECKSUM_DIGITS]) for at in starts)


def _as_checksum(row: dict[str, Any]) -> int:
    return _checksum(as_text(row, "crc64nvme"))


def _checksum(text: str) -> int:
    if len(text) != _CHECKSUM_DIGITS or not _HEX.issuperset(text):
        msg = f"not a CRC64-NVME checksum: {text!r:.40}"
        raise Never(msg)
    return int(text, 16)


def parse_json(data: bytes, most_bytes: int) -> object:
    """Return what the JSON text holds; Never where it is too large, too deep or no JSON."""
    if len(data) > most_bytes:
        msg = f"a document of {len(data)} bytes is refused (at most {most_bytes})"
        raise Never(msg)
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        msg = f"not a JSON document: {error}"
        raise Never(msg) from None


def as_object(value: object) -> dict[str, Any]:
    """Return the value if it is a JSON object, else raise Never."""
    if not isinstance(value, dict):
        msg = f"expected a JSON object, found {type(value).__name__}"
        raise Never(msg)
    return value


def as_list(value: object) -> list[Any]:
    """Return the value if it is a JSON array, else raise Never."""
    if not isinstance(value, list):
        msg = f"expected a JSON array, found {type(value).__name__}"
        raise Never(msg)
    return value


def as_text(row: dict[str, Any], key: str) -> str:
    """Return the text under a key, else raise Never."""
    value = row.get(key)
    if not isinstance(value, str):
        msg = f"expected text under {key!r}, found {type(value).__name__}"
        raise Never(msg)
    return value


def _as_name(row: dict[str, Any], key: str) -> str:
    """Return the text under a key if it can be a name on disk; raises Never, PathRefused."""
    text = as_text(row, key)
    if "\0" in text or not _is_name(text):
        msg = f"not a usable name under {key!r}: {text!r:.80}"
        raise PathRefused(msg)
    return text


def as_int(row: dict[str, Any], key: str, least: int, *, default: int | None = None) -> int:
    """Return the whole number under a key, at least ``least`` and below 2**63, else raise Never."""
    value = row.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value < 2**63:
        msg = f"expected a whole number from {least} under {key!r}, found {value!r:.40}"
        raise Never(msg)
    return value


def as_number(row: dict[str, Any], key: str) -> float:
    """Return the finite number under a key, else raise Never."""
    value = row.get(key)
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not abs(value) < 2**63:
        msg = f"expected a number under {key!r}, found {value!r:.40}"
        raise Never(msg)
    return float(value)
