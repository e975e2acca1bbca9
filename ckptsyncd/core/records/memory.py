"""What survives a restart: the ledger's rows, written as orders and read back at start.

The ledger only saves time. Whatever it says is believed no further than the disk (the listing must
still be equal) and the store (the manifest must be there) confirm it; a lost or damaged ledger
costs a comparison of checksums, never a checkpoint.

Tables: ``edition`` (number and listing of what is on its way), ``intent`` (an upload is about to
be begun), ``upload`` (a begun upload), ``piece`` (a stored piece), ``object`` (a stored file),
``garbage`` (a begun upload that is to be dropped), ``safe`` (a committed edition as it lies on this
disk), ``epoch``, ``daemon``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from ckptsyncd.core.facts import Begun, FileFact, Listing, Receipt
from ckptsyncd.core.orders import Forget, ForgetBelow, Remember
from ckptsyncd.core.records import names
from ckptsyncd.core.records.manifest import (
    Manifest,
    StoredFile,
    as_int,
    as_list,
    as_object,
    as_text,
    decode,
    decode_file,
    encode,
    encode_file,
    encoded,
    parse_json,
)
from ckptsyncd.core.records.packing import MANY, opened, packed, squeezed, unpacked
from ckptsyncd.core.sightings import Settled
from ckptsyncd.errors import CkptsyncdError

#: No row is larger, nor what is packed in it (guessed: 100,000 files are 30 MB in a manifest).
MAX_ROW_BYTES = 256 * 1024 * 1024


#: So many former processes are remembered (guessed: no request is on its way for that many lives).
MOST_NONCES = 16

#: Rows of the table ``daemon`` about notices that were outlived start with this.
HANDLED = "notice "

#: In the order in which they are read back: files belong to editions that must be known.
TABLES = ("daemon", "safe", "epoch", "garbage", "edition", "intent", "upload", "piece", "object")


@dataclass(frozen=True, slots=True)
class SafeRow:
    """A committed edition and the listing that it has on this disk."""

    manifest: Manifest
    listing: Listing


@dataclass(slots=True)
class EditionRow:
    """An edition that was on its way when the last daemon ended; number 0: it had none yet."""

    settled: Settled
    number: int
    intents: dict[str, tuple[str, str]] = field(default_factory=dict)
    uploads: dict[str, Begun] = field(default_factory=dict)
    pieces: dict[str, dict[int, tuple[str, Receipt]]] = field(default_factory=dict)
    objects: dict[str, StoredFile] = field(default_factory=dict)


@dataclass(slots=True)
class Recalled:
    """Everything that the ledger knew at start. ``damaged`` counts rows that made no sense."""

    safe: dict[str, SafeRow] = field(default_factory=dict)
    editions: dict[str, EditionRow] = field(default_factory=dict)
    epochs: dict[str, tuple[int, tuple[str, ...]]] = field(default_factory=dict)
    daemon: dict[str, str] = field(default_factory=dict)
    garbage: list[Begun] = field(default_factory=list)
    damaged: int = 0


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"))


def _row(text: str) -> dict[str, Any]:
    return as_object(parse_json(text.encode(), MAX_ROW_BYTES))


def _facts(files: Iterable[FileFact]) -> list[dict[str, Any]] | list[str]:
    return packed(
        {
            "path": fact.path,
            "kind": fact.kind,
            "device": fact.device,
            "inode": fact.inode,
            "size": fact.size,
            "mtime_ns": fact.mtime_ns,
            "target": fact.target,
            "mode": fact.mode,
            "ctime_ns": fact.ctime_ns,
        }
        for fact in files
    )


def _listing(rows: object, folders: object = None) -> Listing:
    return Listing(tuple(_recalled(rows)), tuple(_recalled([] if folders is None else folders)))


def _recalled(rows: object) -> Iterator[FileFact]:
    return (_fact(as_object(row)) for row in unpacked(rows, MAX_ROW_BYTES))


def _fact(row: dict[str, Any]) -> FileFact:
    kind = row.get("kind")
    assert kind in ("file", "symlink", "directory")  # noqa: S101 - damaged rows are caught below
    return FileFact(
        path=as_text(row, "path"),
        kind=kind,
        device=as_int(row, "device", 0),
        inode=as_int(row, "inode", 0),
        size=as_int(row, "size", 0),
        mtime_ns=as_int(row, "mtime_ns", -(2**63)),
        target=None if row.get("target") is None else as_text(row, "target"),
        mode=as_int(row, "mode", 0),
        ctime_ns=as_int(row, "ctime_ns", -(2**63)),
    )


def _address(save_id: str, path: str) -> str:
    # A path holds no empty component, so no other address starts with this one.
    return f"{save_id}/{names.key_of_path(path)}//"


# Rows as orders ---------------------------------------------------------------------------------


def edition_row(save_id: str, number: int, settled: Settled) -> Remember:
    """Return the order to remember an edition's number and what settled."""
    value = {
        "checkpoint": settled.checkpoint,
        "series": settled.series,
        "step": settled.step,
        "layout": settled.layout,
        "evidence": settled.evidence,
        "stale": list(settled.stale),
        "named": list(settled.named),
        "absent": list(settled.absent),
        "loose": list(settled.loose),
        "copy": settled.copy,
        "number": number,
        "listing": _facts(settled.listing.files),
        "folders": _facts(settled.listing.folders),
    }
    return Remember("edition", save_id, _text(value), durable=True)


def settled_row(save_id: str, settled: Settled) -> Remember:
    """Return the order to remember what settled, before it has a number and before it is pinned.

    The links of a pin move ctimes: after a kill the same could not be judged again.
    """
    return replace(edition_row(save_id, 0, settled), durable=False)


def intent_row(save_id: str, path: str, key: str, nonce: str) -> Remember:
    """Return the order to remember that an upload is about to be begun."""
    value = {"path": path, "key": key, "nonce": nonce}
    return Remember("intent", _address(save_id, path), _text(value), durable=True)


def upload_row(save_id: str, path: str, begun: Begun) -> Remember:
    """Return the order to remember a begun upload."""
    value = asdict(begun) | {"path": path}
    return Remember("upload", _address(save_id, path), _text(value), durable=True)


def piece_row(save_id: str, path: str, nonce: str, receipt: Receipt) -> Remember:
    """Return the order to remember a stored piece."""
    value = {
        "index": receipt.index,
        "length": receipt.length,
        "crc64nvme": receipt.crc64nvme,
        "token": receipt.token,
        "path": path,
        "nonce": nonce,
    }
    return Remember("piece", f"{_address(save_id, path)}{receipt.index}", _text(value))


def garbage_row(begun: Begun) -> Remember:
    """Return the order to remember a begun upload to be dropped, or (no token) looked for."""
    return Remember("garbage", begun.token or begun.key, _text(asdict(begun)), durable=True)


def forget_garbage(name: str) -> Forget:
    """Return the order to forget a begun upload that was dropped, or looked for."""
    return Forget("garbage", name)


def object_row(save_id: str, stored: StoredFile) -> Remember:
    """Return the order to remember a stored file."""
    return Remember("object", _address(save_id, stored.path), _text(encode_file(stored)))


def safe_row(manifest: Manifest, listing: Listing) -> Remember:
    """Return the order to remember a committed edition as it lies on this disk."""
    is_large = len(manifest.files) >= MANY
    text = squeezed(encoded(manifest)) if is_large else encode(manifest).decode()
    value = {"manifest": text, "listing": _facts(listing.files)}
    return Remember("safe", names.quoted(manifest.checkpoint), _text(value))


def epoch_row(series: str, epoch: int, nonces: Sequence[str]) -> Remember:
    """Return the order to remember the epoch that is about to be taken.

    ``nonces`` are the processes that took or tried to, oldest first: a request of one that was
    killed may still reach the store, and would look like a stranger's.
    """
    value = {"series": series, "epoch": epoch, "nonces": list(nonces[-MOST_NONCES:])}
    return Remember("epoch", names.quoted(series), _text(value), durable=True)


def daemon_row(key: str, value: str) -> Remember:
    """Return the order to remember something about the daemon itself."""
    return Remember("daemon", key, value, durable=True)


def handled_row(notice_id: str, source: str, boot_id: str) -> Remember:
    """Return the order to remember that a notice was outlived: it is not drained again."""
    return daemon_row(HANDLED + notice_id, _text({"source": source, "boot_id": boot_id}))


def forget_handled(notice_id: str) -> Forget:
    """Return the order to forget that a notice was outlived: the next one is a new one."""
    return Forget("daemon", HANDLED + notice_id)


def handled_notices(daemon: Mapping[str, str], boot_id: str) -> tuple[dict[str, str], list[str]]:
    """Return id and source of each notice that was outlived in this boot, and the ids of others.

    A row that makes no sense counts as of another boot.
    """
    found, others = {}, []
    for key, text in daemon.items():
        if not key.startswith(HANDLED):
            continue
        try:
            row = _row(text)
            is_ours = as_text(row, "boot_id") == boot_id
            source = as_text(row, "source")
        except (CkptsyncdError, AssertionError, KeyError, TypeError, ValueError):
            is_ours, source = False, ""
        if is_ours:
            found[key.removeprefix(HANDLED)] = source
        else:
            others.append(key.removeprefix(HANDLED))
    return found, others


def forget_upload(save_id: str, path: str) -> ForgetBelow:
    """Return the order to forget a begun upload and its pieces."""
    return ForgetBelow(("intent", "upload", "piece"), _address(save_id, path))


def forget_objects(save_id: str) -> ForgetBelow:
    """Return the order to forget which files of an edition are stored."""
    return ForgetBelow(("object",), save_id)


def forget_edition(save_id: str) -> ForgetBelow:
    """Return the order to forget everything about an edition on its way."""
    return ForgetBelow(("edition", "intent", "upload", "piece", "object"), save_id)


def forget_safe(checkpoint: str) -> Forget:
    """Return the order to forget a committed edition."""
    return Forget("safe", names.quoted(checkpoint))


# Rows read back ---------------------------------------------------------------------------------


def recall(rows: Mapping[str, Iterable[tuple[str, str]]]) -> Recalled:
    """Return what the ledger's rows (table to (key, value) pairs) mean; count damaged ones."""
    recalled = Recalled()
    recalled.daemon.update(dict(rows.get("daemon", ())))
    for table in TABLES[1:]:
        for key, text in rows.get(table, ()):
            recalled.damaged += not _understood(recalled, table, key, text)
    for edition in recalled.editions.values():
        recalled.garbage += _outdated(edition)
    return recalled


def _outdated(edition: EditionRow) -> list[Begun]:
    """Take out the uploads that were given up: another was about to be begun in their stead."""
    old = {
        path: begun
        for path, begun in edition.uploads.items()
        if path in edition.intents and edition.intents[path][1] != begun.nonce
    }
    for path in old:
        del edition.uploads[path]
        edition.pieces.pop(path, None)
    return list(old.values())


def _understood(recalled: Recalled, table: str, key: str, text: str) -> bool:
    try:
        _take(recalled, table, key, _row(text))
    except (CkptsyncdError, AssertionError, KeyError, TypeError, ValueError):
        return False
    return True


def _take(recalled: Recalled, table: str, key: str, row: dict[str, Any]) -> None:
    if table == "safe":
        manifest = _manifest(as_text(row, "manifest"))
        recalled.safe[manifest.checkpoint] = SafeRow(manifest, _listing(row.get("listing")))
    elif table == "epoch":
        nonces = tuple(str(nonce) for nonce in as_list(row.get("nonces")))
        recalled.epochs[as_text(row, "series")] = (as_int(row, "epoch", 0), nonces)
    elif table == "garbage":
        recalled.garbage.append(_begun(row))
    elif table == "edition":
        recalled.editions[key] = EditionRow(_settled(row), as_int(row, "number", 0))
    else:
        _take_file(recalled.editions[key.split("/", 1)[0]], table, row)


def _manifest(text: str) -> Manifest:
    return decode(text.encode() if text.startswith("{") else opened(text, MAX_ROW_BYTES))


def _settled(row: dict[str, Any]) -> Settled:
    return Settled(
        checkpoint=as_text(row, "checkpoint"),
        series=as_text(row, "series"),
        step=None if row.get("step") is None else as_int(row, "step", 0),
        layout=as_text(row, "layout"),
        evidence=as_text(row, "evidence"),
        listing=_listing(row.get("listing"), row.get("folders")),
        found=True,
        copy=row.get("copy") is True,
        stale=tuple(str(path) for path in as_list(row.get("stale", []))),
        named=tuple(str(path) for path in as_list(row.get("named", []))),
        absent=tuple(str(path) for path in as_list(row.get("absent", []))),
        loose=tuple(str(path) for path in as_list(row.get("loose", []))),
    )


def _begun(row: dict[str, Any]) -> Begun:
    return Begun(
        key=as_text(row, "key"),
        token=as_text(row, "token"),
        nonce=as_text(row, "nonce"),
        size=as_int(row, "size", 0),
        piece_bytes=as_int(row, "piece_bytes", 0),
    )


def _take_file(edition: EditionRow, table: str, row: dict[str, Any]) -> None:
    path = as_text(row, "path")
    if table == "intent":
        edition.intents[path] = (as_text(row, "key"), as_text(row, "nonce"))
    elif table == "upload":
        edition.uploads[path] = _begun(row)
    elif table == "piece":
        receipt = Receipt(
            index=as_int(row, "index", 0),
            length=as_int(row, "length", 0),
            crc64nvme=int(row["crc64nvme"]),
            token=as_text(row, "token"),
        )
        edition.pieces.setdefault(path, {})[receipt.index] = (as_text(row, "nonce"), receipt)
    else:
        edition.objects[path] = decode_file(row)
