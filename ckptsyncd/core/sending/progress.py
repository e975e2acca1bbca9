"""What an answer changes in one edition's progress. No order is made here.

Every function takes the edition and what came back, and leaves the progress at the level that is
now certain; ``upload.missing`` reads it again. Where an answer was ambiguous the level is
``doubt``, which asks the store before anything else happens.
"""

from __future__ import annotations

from dataclasses import replace

from ckptsyncd.core.facts import Begun, Listing
from ckptsyncd.core.messages import Failed, ObjectSeen, ObjectStored, PieceStored
from ckptsyncd.core.records.documents import Claim
from ckptsyncd.core.records.manifest import Manifest, StoredFile, decode, stored_file
from ckptsyncd.core.records.memory import EditionRow
from ckptsyncd.core.sending.compare import is_share, same_outline, same_sums
from ckptsyncd.core.sending.edition import Edition, FileProgress
from ckptsyncd.core.sending.pieces import cut
from ckptsyncd.core.sending.scene import Scene
from ckptsyncd.core.sending.upload import key_for
from ckptsyncd.errors import CkptsyncdError


def plan_files(
    edition: Edition, scene: Scene, previous: dict[str, StoredFile], row: EditionRow | None
) -> None:
    """Lay out what must be stored, once the edition's number is certain.

    ``previous`` holds files that an older edition has in the store with the very same facts;
    ``row`` is what a former daemon had already done for this same listing.
    """
    for fact in edition.listing.files:
        if fact.kind != "file":
            edition.keep(stored_file(fact, "", 0, "", scene.policy.node))
        elif fact.path in previous:
            edition.keep(previous[fact.path])
        elif row is not None and fact.path in row.objects:
            edition.keep(row.objects[fact.path])
        else:
            progress = FileProgress(fact, key_for(edition, fact.path, scene, 0))
            edition.files[fact.path] = progress
            if row is not None:
                _resume(progress, row)


def _resume(progress: FileProgress, row: EditionRow) -> None:
    """Go on with a begun upload of a former daemon; the caller compared the listings."""
    path = progress.fact.path
    begun = row.uploads.get(path)
    if path in row.intents:
        progress.key, progress.nonce = row.intents[path]
        progress.has_stray = begun is None
    if begun is None or begun.size != progress.fact.size:
        return
    begin(progress, begun)
    for index, (nonce, receipt) in row.pieces.get(path, {}).items():
        piece = progress.todo.get(index)
        if piece is not None and nonce == begun.nonce and piece.length == receipt.length:
            progress.receipts[index] = receipt
            del progress.todo[index]
    progress.doubt = not progress.todo


def begin(progress: FileProgress, begun: Begun) -> None:
    """Take in that an upload was begun: all its pieces are to do."""
    progress.begun = begun
    progress.is_beginning = False
    progress.nonce = begun.nonce
    progress.receipts = {}
    progress.todo = {piece.index: piece for piece in cut(begun.size, begun.piece_bytes)}


def piece_stored(progress: FileProgress, message: PieceStored) -> bool:
    """Take in a piece's receipt; return whether it belongs to the upload as it is now."""
    index = message.receipt.index
    if progress.todo.pop(index, None) is None:
        return False
    progress.receipts[index] = message.receipt
    return True


def object_stored(
    edition: Edition, progress: FileProgress, message: ObjectStored, node: int
) -> str:
    """Take in a finished object; return why it is not what was sent, or nothing."""
    fact = message.fact
    if fact.size != progress.fact.size:
        return f"the store has {fact.size} bytes of {progress.fact.size}"
    if fact.crc64nvme not in (None, message.crc64nvme):
        return "the store's checksum differs from what was sent"
    store_file(edition, progress, message.crc64nvme, fact.checked, node)
    return ""


def store_file(
    edition: Edition, progress: FileProgress, crc64nvme: int, checked: str, node: int
) -> None:
    """Note that a file is in the store, checked."""
    fact = progress.fact
    row = stored_file(fact, progress.key, crc64nvme, checked, node)
    sums = _piece_sums(progress)
    if progress.begun is not None and sums:
        row = replace(row, piece_bytes=progress.begun.piece_bytes, piece_sums=sums)
    edition.keep(row)
    del edition.files[fact.path]


def _piece_sums(progress: FileProgress) -> tuple[int, ...]:
    """Return the checksums of all pieces, or nothing where not every receipt is there."""
    if progress.begun is None or not progress.begun.size:
        return ()
    pieces = cut(progress.begun.size, progress.begun.piece_bytes)
    receipts = [progress.receipts.get(piece.index) for piece in pieces]
    if [None if r is None else r.length for r in receipts] != [piece.length for piece in pieces]:
        return ()
    return tuple(receipt.crc64nvme for receipt in receipts if receipt is not None)


def object_seen(edition: Edition, progress: FileProgress, seen: ObjectSeen, scene: Scene) -> bool:
    """Resolve the doubt about a finish; return whether the object is ours.

    Ours by size and checksum, whoever stored it, or by the upload's nonce where the store tells no
    checksum. A foreign object is left alone: the file takes another key.
    """
    fact = seen.fact
    progress.doubt = False
    if fact is None:
        if progress.gone:
            progress.restart()
        return False
    ours = fact.nonce is not None and fact.nonce == progress.nonce
    # What the store knows of the content outweighs the name that it bears.
    same = ours if fact.crc64nvme is None else fact.crc64nvme == seen.crc64nvme
    if fact.size == progress.fact.size and seen.crc64nvme is not None and same:
        store_file(edition, progress, seen.crc64nvme, fact.checked, scene.policy.node)
        return True
    progress.restart()
    progress.salts += 1
    progress.key = key_for(edition, progress.fact.path, scene, progress.salts)
    return False


def file_failed(progress: FileProgress, failed: Failed) -> None:
    """Take in that an order about a file failed."""
    purpose = failed.errand.purpose
    if purpose in ("finish", "whole"):
        progress.doubt = failed.ambiguous or failed.kind in ("lost", "gone")
        progress.gone = failed.kind == "gone"
    elif purpose == "piece" and failed.kind == "gone":
        progress.restart()
    elif purpose == "begin":
        progress.has_stray |= failed.ambiguous


def claim_read(edition: Edition, data: bytes | None) -> bool:
    """Resolve the doubt about a claim; return whether the edition number is taken by another save.

    The same save joins: it is the same content, whoever began to upload it.
    """
    if data is None:
        edition.claimed = "no"
        return False
    try:
        same = Claim.decode(data).save_id == edition.save_id
    except CkptsyncdError:
        same = False
    edition.claimed = "yes" if same else "no"
    return not same


def was_pruned(edition: Edition, data: bytes | None) -> bool:
    """Return whether a claim says that this very save was committed and pruned."""
    try:
        claim = None if data is None else Claim.decode(data)
    except CkptsyncdError:
        return False
    return claim is not None and claim.pruned_at > 0 and claim.save_id == edition.save_id


def manifest_read(edition: Edition, data: bytes | None, nonce: str) -> Manifest | None:
    """Resolve the doubt about the commit; return the manifest if it commits this very content."""
    edition.sealed = "no"
    if data is None:
        return None
    try:
        manifest = decode(data)
    except CkptsyncdError:
        return None
    ours = manifest.writer.nonce == nonce and manifest.save_id == edition.save_id
    sums = {path: stored.crc64nvme for path, stored in edition.stored.items()}
    if ours or (same_outline(edition.listing, manifest) and same_sums(sums, manifest)):
        edition.sealed = "yes"
        return manifest
    return None


def rival_read(edition: Edition, data: bytes | None, node: int | None = None) -> None:
    """Take in a committed edition of the same name: compare on, or go to the next one.

    ``node`` is ours where each of several machines has a share of it.
    """
    manifest: Manifest | None = None
    if data is not None:
        try:
            manifest = decode(data)
        except CkptsyncdError:
            manifest = None
    if manifest is not None and _may_be(edition.listing, manifest, node):
        edition.rival = manifest
    else:
        next_rival(edition)


def _may_be(listing: Listing, manifest: Manifest, node: int | None) -> bool:
    return same_outline(listing, manifest) or (
        node is not None and is_share(listing, manifest, node)
    )


def next_rival(edition: Edition) -> None:
    """Give up the comparison with the current rival."""
    edition.rival = None
    edition.rivals = edition.rivals[1:]


def is_summed(edition: Edition) -> bool:
    """Return whether every file's checksum is known."""
    return all(fact.path in edition.sums for fact in edition.listing.files if fact.kind == "file")


def equals_rival(edition: Edition) -> bool:
    """Return whether the content is the rival's, by checksums; next rival if not."""
    assert edition.rival is not None  # noqa: S101 - only asked with one
    if same_sums(edition.sums, edition.rival):
        return True
    next_rival(edition)
    return False
