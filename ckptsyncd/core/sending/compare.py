"""Is a local content that of a committed edition? Sizes first, then checksums."""

from __future__ import annotations

from collections.abc import Mapping

from ckptsyncd.core.facts import FileFact, Listing
from ckptsyncd.core.records.manifest import Manifest, StoredFile
from ckptsyncd.core.sending.stamps import is_stamp


def _outline(item: FileFact | StoredFile) -> tuple[str, str, int, str | None]:
    return (item.path, item.kind, item.size if item.kind == "file" else 0, item.target)


def same_outline(listing: Listing, manifest: Manifest) -> bool:
    """Return whether both have the same paths, kinds, sizes and targets, directories apart.

    A stamp may be in the store only.
    """
    ours = {_outline(fact) for fact in listing.files if fact.kind != "directory"}
    theirs = {_outline(s): s for s in manifest.files if s.kind != "directory"}
    return ours <= theirs.keys() and all(is_stamp(theirs[o]) for o in theirs.keys() - ours)


def is_share(listing: Listing, manifest: Manifest, node: int) -> bool:
    """Return whether what lies here is this node's share of a manifest, perhaps more of it."""
    ours = {_outline(fact) for fact in listing.files if fact.kind != "directory"}
    theirs = [stored for stored in manifest.files if stored.kind != "directory"]
    share = {_outline(stored) for stored in theirs if node in (stored.node, *stored.also)}
    return share <= ours <= {_outline(stored) for stored in theirs}


def same_sums(sums: Mapping[str, int], manifest: Manifest) -> bool:
    """Return whether the manifest has the checksums in ``sums`` for all files that they name."""
    return all(
        sums[stored.path] == stored.crc64nvme
        for stored in manifest.files
        if stored.kind == "file" and stored.path in sums
    )
