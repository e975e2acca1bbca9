"""What an edition still needs: a pure reading of its progress, in the order of the commit.

pin -> (compare with committed editions) -> claim -> pieces -> finish objects -> second look ->
manifest. Nothing here remembers what was ordered: the brain leaves out what is under way or
resting, so an order is asked for again until its answer has changed the progress.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ckptsyncd.core.facts import Limits, Piece
from ckptsyncd.core.orders import (
    Begin,
    Finish,
    GetSmall,
    HandOrder,
    ListUploads,
    LookAgain,
    Pin,
    PutPiece,
    PutSmall,
    PutWhole,
    ScannerOrder,
    Stat,
    Sum,
)
from ckptsyncd.core.records import names
from ckptsyncd.core.records.documents import Claim
from ckptsyncd.core.records.manifest import Manifest, StoredFile, Writer, encode, stored_file
from ckptsyncd.core.rules.policy import Policy
from ckptsyncd.core.sending.edition import Edition, FileProgress
from ckptsyncd.core.sending.pieces import piece_bytes
from ckptsyncd.core.sending.scene import Scene, create_only, errand, salt_of
from ckptsyncd.core.sending.stamps import STAMP, stamps_for
from ckptsyncd.core.sending.together import asking


def missing(edition: Edition, scene: Scene) -> Iterator[HandOrder | ScannerOrder]:
    """Yield everything that could be ordered now, most useful first."""
    if not edition.pinned:
        yield Pin(errand(edition, "pin"), edition.listing, edition.settled.copy)
    elif edition.rivals:
        yield from _comparison(edition)
    elif edition.claimed != "yes" or edition.joint.part == "doubt":
        yield from _claim(edition, scene)
    elif edition.source:
        key = names.manifest_key(edition.checkpoint, edition.source)
        yield GetSmall(errand(edition, "confirm", index=edition.source), key)
    elif edition.files:
        for progress in edition.files.values():
            yield from _file(edition, progress, scene)
    elif not edition.looked:
        order = errand(edition, "look again", index=edition.number)
        yield LookAgain(order, edition.listing)
    elif lacking := [path for path in wanted_stamps(edition, scene) if path not in edition.stamps]:
        key = names.key_of_path(lacking[0])
        yield PutSmall(errand(edition, "stamp", lacking[0]), key, STAMP, None)
    elif edition.sealed != "yes":
        yield from (asking.missing if scene.is_joint else _seal)(edition, scene)


def wanted_stamps(edition: Edition, scene: Scene) -> tuple[str, ...]:
    """Return the stamps that belong to this edition, if a user wants any.

    None where other machines may still be at it: a stamp says that everything is there.
    """
    wanted = scene.policy.orbax_stamp and edition.sealed == "no" and not scene.is_joint
    return stamps_for(edition) if wanted else ()


def _comparison(edition: Edition) -> Iterator[HandOrder]:
    if edition.rival is None:
        number = edition.rivals[0]
        key = names.manifest_key(edition.checkpoint, number)
        yield GetSmall(errand(edition, "compare", index=number), key)
        return
    for fact in edition.listing.files:
        if fact.kind == "file" and fact.path not in edition.sums:
            piece = Piece(0, 0, fact.size)
            yield Sum(errand(edition, "sum", fact.path), edition.save_id, edition.listing, piece)


def _claim(edition: Edition, scene: Scene) -> Iterator[HandOrder]:
    key = names.claim_key(edition.checkpoint, edition.number)
    marks = list(asking.mark_order(edition, scene))
    if edition.claimed == "yes":
        yield asking.own_part(edition, scene)
    elif marks:
        yield from marks
    elif edition.claimed == "doubt":
        yield GetSmall(errand(edition, "read claim", index=edition.number), key)
    elif scene.epoch is not None:
        order = errand(edition, "claim", index=edition.number)
        if scene.is_free(order):
            data = asking.shared(_claim_of(edition, scene, scene.epoch), edition, scene).encode()
            yield PutSmall(order, key, data, create_only(scene.limits))


def _claim_of(edition: Edition, scene: Scene, epoch: int) -> Claim:
    return Claim(
        checkpoint=edition.checkpoint,
        edition=edition.number,
        series=edition.series,
        save_id=edition.save_id,
        nonce=scene.nonce,
        epoch=epoch,
        node=scene.policy.node,
        salt=salt_of(scene, 0),
        claimed_at=scene.now.wall,
    )


def key_for(edition: Edition, path: str, scene: Scene, salts: int) -> str:
    """Return the data key of one file of this edition."""
    return names.data_key(edition.checkpoint, edition.number, path, salt_of(scene, salts))


def _file(edition: Edition, progress: FileProgress, scene: Scene) -> Iterator[HandOrder]:
    path = progress.fact.path
    small = progress.fact.size <= one_piece(scene.policy, scene.limits)
    if progress.doubt:
        yield _stat(edition, progress, small=small)
    elif small:
        yield PutWhole(
            errand(edition, "whole", path),
            progress.key,
            edition.save_id,
            edition.listing,
            Piece(0, 0, progress.fact.size),
            progress.nonce,
            create_only=scene.limits.create_only_finish,
        )
    elif progress.has_stray and scene.limits.can_abandon:
        yield ListUploads(errand(edition, "list strays", path), progress.key)
    elif progress.begun is None:
        wanted = piece_bytes(
            progress.fact.size, scene.limits, scene.policy.piece_bytes, scene.bytes_per_second
        )
        order = errand(edition, "begin", path)
        yield Begin(order, progress.key, progress.fact.size, wanted, progress.nonce)
    elif progress.todo:
        yield from _pieces(edition, progress, scene)
    else:
        receipts = tuple(progress.receipts[index] for index in sorted(progress.receipts))
        only = scene.limits.create_only_finish
        yield Finish(errand(edition, "finish", path), progress.begun, receipts, only)


def one_piece(policy: Policy, limits: Limits) -> int:
    """Return up to which size a file goes out in one request: no more than a piece would have."""
    piece = max(policy.piece_bytes, limits.min_piece_bytes)
    return min(policy.whole_bytes, piece)


def _stat(edition: Edition, progress: FileProgress, *, small: bool) -> Stat:
    path = progress.fact.path
    return Stat(
        errand(edition, "stat", path),
        progress.key,
        edition.save_id,
        edition.listing,
        receipts=tuple(progress.receipts[index] for index in sorted(progress.receipts)),
        piece=Piece(0, 0, progress.fact.size) if small else None,
    )


def _pieces(edition: Edition, progress: FileProgress, scene: Scene) -> Iterator[HandOrder]:
    assert progress.begun is not None  # noqa: S101 - the caller asked
    for piece in progress.todo.values():
        order = errand(edition, "piece", progress.fact.path, piece.index)
        yield PutPiece(order, progress.begun, piece, edition.save_id, edition.listing)
        if not scene.limits.pieces_in_parallel:
            return


def _seal(edition: Edition, scene: Scene) -> Iterator[HandOrder]:
    key = names.manifest_key(edition.checkpoint, edition.number)
    if edition.sealed == "doubt":
        yield GetSmall(errand(edition, "read manifest", index=edition.number), key)
        return
    order = errand(edition, "seal", index=edition.number)
    if scene.is_free(order):
        manifest = manifest_of(edition, scene)
        yield PutSmall(order, key, encode(manifest), create_only(scene.limits), manifest)


def _rows(edition: Edition) -> Iterator[StoredFile]:
    """Yield the rows of all files; of one that has several names, all but the first name it."""
    names_of: dict[int, dict[int, str]] = {}
    for fact in edition.listing.files:
        row = edition.stored[fact.path]
        is_file = fact.kind == "file"
        inodes = names_of.setdefault(fact.device, {})
        first = inodes.setdefault(fact.inode, fact.path) if is_file else fact.path
        twin = None if first == fact.path else first
        yield row if row.twin == twin else replace(row, twin=twin)


def manifest_of(edition: Edition, scene: Scene) -> Manifest:
    """Return the commit record of an edition whose files are all stored."""
    settled = edition.settled
    return Manifest(
        checkpoint=edition.checkpoint,
        edition=edition.number,
        series=edition.series,
        step=settled.step,
        after_step=scene.after_step,
        lineage=scene.lineage,
        layout=settled.layout,
        evidence=settled.evidence,
        save_id=edition.save_id,
        saved_at=max(edition.listing.saved_at, scene.least_saved_at),
        committed_at=scene.now.wall,
        files=(
            *_rows(edition),
            *edition.stamps.values(),
            *(stored_file(f, "", 0, "", scene.policy.node) for f in edition.listing.folders),
        ),
        writer=Writer(scene.host, scene.epoch or 0, scene.nonce, scene.version, scene.policy.node),
        stale=settled.stale,
        nodes=(scene.policy.node,),
        late=scene.late,
    )
