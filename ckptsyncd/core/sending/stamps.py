"""Orbax's own mark that a checkpoint in a bucket is whole.

Orbax before 0.12.3 renames a finished checkpoint into place on a disk and marks it no further; in a
bucket it takes what has no ``commit_success.txt`` for unfinished, and its ``CheckpointManager``
deletes that. So by a setting (``orbax_stamp``) the file is added to what lies at its plain path,
last of all. It is part of the manifest: verify, restore and prune treat it as any other file.
"""

from __future__ import annotations

from collections.abc import Iterator

from ckptsyncd.core.facts import Listing
from ckptsyncd.core.records import names
from ckptsyncd.core.records.manifest import StoredFile
from ckptsyncd.core.seeing.layouts.jax import ORBAX, STAMP_NAME
from ckptsyncd.core.sending.edition import Edition

#: Orbax asks for the file's existence, not for its words. They never change: neither does the sum.
STAMP = b"Checkpoint commit was successful (written by ckptsyncd)\n"
STAMP_CRC64NVME = 7759717865729410708

#: In a directory of these names lies an item itself, not items.
_ITEM_FILES = ("_METADATA", "manifest.ocdbt", "_sharding")


def stamps_for(edition: Edition) -> tuple[str, ...]:
    """Return the paths of the stamps that a checkpoint lacks, its own last.

    One in each of its items, and one in itself; none where its files do not lie at their plain
    paths, for nothing but a restore reads it there.
    """
    stored = edition.stored.values()
    is_plain = all(one.key == names.key_of_path(one.path) for one in stored if one.kind == "file")
    if edition.settled.layout != ORBAX.name or not is_plain:
        return ()
    there = {fact.path for fact in edition.listing.files}
    wanted = (f"{folder}/{STAMP_NAME}" for folder in _folders(edition.checkpoint, edition.listing))
    return tuple(path for path in wanted if path not in there)


def _folders(checkpoint: str, listing: Listing) -> Iterator[str]:
    inside = checkpoint + "/"
    rels = [f.path.removeprefix(inside) for f in listing.files if f.path.startswith(inside)]
    if not any(rel in _ITEM_FILES for rel in rels):
        items = dict.fromkeys(rel.partition("/")[0] for rel in rels if "/" in rel)
        yield from (inside + item for item in items)
    yield checkpoint


def stamp_row(edition: Edition, path: str, checked: str, node: int) -> StoredFile:
    """Return the manifest's row of a stamp: a file that was written after all others."""
    newest = max((f.mtime_ns for f in edition.listing.files if f.kind == "file"), default=0)
    return StoredFile(
        path=path,
        kind="file",
        size=len(STAMP),
        mode=0o644,
        mtime_ns=newest + 1 + len(edition.stamps),
        key=names.key_of_path(path),
        crc64nvme=STAMP_CRC64NVME,
        checked=checked,
        target=None,
        node=node,
    )


def is_stamp(stored: StoredFile) -> bool:
    """Return whether a row of a manifest is a stamp of ours."""
    is_named = stored.path.rpartition("/")[2] == STAMP_NAME
    return is_named and (stored.size, stored.crc64nvme) == (len(STAMP), STAMP_CRC64NVME)
