"""What an edition of several machines needs once our own files are stored: part, others, manifest.

A pure reading of ``Joint``. Nothing is asked in a tight loop: each question has its time, ever
later, and whoever comes last finds the list full at its first question and commits.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

from ckptsyncd.core.facts import Piece
from ckptsyncd.core.orders import GetSmall, HandOrder, ListKeys, PutSmall, Sum
from ckptsyncd.core.records import names
from ckptsyncd.core.records.documents import Claim
from ckptsyncd.core.records.manifest import Manifest, Writer, encode, stored_file
from ckptsyncd.core.sending.edition import Edition
from ckptsyncd.core.sending.scene import Scene, create_only, errand
from ckptsyncd.core.sending.together.part import Part
from ckptsyncd.core.sending.together.saves import done_file, mark_of

#: A claim that was seen to stand is trusted for so long (guessed; pruned data stays for an hour).
CONFIRMED_SECONDS = 60.0


def mark_order(edition: Edition, scene: Scene) -> Iterator[HandOrder]:
    """Yield the order that finds out the mark of a save, where it has one that is not known."""
    fact = done_file(edition.settled, scene.policy) if scene.is_joint else None
    if fact is not None and fact.path not in edition.sums:
        piece = Piece(0, 0, fact.size)
        yield Sum(errand(edition, "sum", fact.path), edition.save_id, edition.listing, piece)


def shared(claim: Claim, edition: Edition, scene: Scene) -> Claim:
    """Return a claim with what other nodes know their own content of the same save by."""
    if not scene.is_joint:
        return claim
    mark = mark_of(edition.settled, scene.policy, edition.sums) or ""
    return replace(
        claim,
        step=edition.settled.step,
        saved_at=edition.saved_at,
        mark=mark,
        nodes=scene.policy.nodes,
    )


def own_part(edition: Edition, scene: Scene) -> GetSmall:
    """Return the order that reads what lies at the key of our part."""
    key = names.part_key(edition.checkpoint, edition.number, scene.policy.node)
    return GetSmall(errand(edition, "own part", index=edition.number), key)


def missing(edition: Edition, scene: Scene) -> Iterator[HandOrder]:
    """Yield what could be ordered now, after the second look."""
    joint = edition.joint
    manifest_key = names.manifest_key(edition.checkpoint, edition.number)
    if edition.sealed == "doubt":
        yield GetSmall(errand(edition, "read manifest", index=edition.number), manifest_key)
    elif joint.part == "no":
        yield from _part(edition, scene)
    elif joint.whole is not None:
        yield from _commit(edition, scene, joint.whole)
    elif scene.now.boot >= joint.due_at(hasty=scene.hasty):
        yield from _questions(edition, scene)


def _commit(edition: Edition, scene: Scene, whole: Manifest) -> Iterator[HandOrder]:
    """Yield the manifest, just after a look whether the edition was committed and pruned before.

    Whoever was stopped for a day would bring a manifest back whose data is gone.
    """
    if scene.now.boot > edition.joint.confirmed_at + CONFIRMED_SECONDS:
        key = names.claim_key(edition.checkpoint, edition.number)
        yield GetSmall(errand(edition, "confirm claim", index=edition.number), key)
        return
    order = errand(edition, "seal", index=edition.number)
    if scene.is_free(order):
        key = names.manifest_key(edition.checkpoint, edition.number)
        yield PutSmall(order, key, encode(whole), create_only(scene.limits), whole)


def _part(edition: Edition, scene: Scene) -> Iterator[HandOrder]:
    if scene.epoch is None:
        return  # it is being taken: nobody is asked whose it is before that
    if not (edition.joint.checked or scene.late):
        key = names.epoch_key(edition.series, scene.policy.node)
        yield GetSmall(errand(edition, "check epoch", index=edition.number), key)
        return
    order = errand(edition, "part", index=edition.number)
    if scene.is_free(order):
        key = names.part_key(edition.checkpoint, edition.number, scene.policy.node)
        data = part_of(edition, scene).encode()
        yield PutSmall(order, key, data, create_only(scene.limits))


def _questions(edition: Edition, scene: Scene) -> Iterator[HandOrder]:
    joint, number = edition.joint, edition.number
    if joint.reads:
        for node in joint.nodes(scene.policy.nodes):
            if node not in joint.parts:
                key = names.part_key(edition.checkpoint, number, node)
                yield GetSmall(errand(edition, "read part", str(node), number), key)
    elif joint.bids:
        key = names.committer_key(edition.checkpoint, number)
        data = json.dumps({"nonce": scene.nonce, "node": scene.policy.node}).encode()
        yield PutSmall(errand(edition, "bid", index=number), key, data, create_only(scene.limits))
    elif joint.seeks:
        key = names.manifest_key(edition.checkpoint, number)
        yield GetSmall(errand(edition, "seek manifest", index=number), key)
    else:
        prefix = names.parts_prefix(edition.checkpoint, number)
        yield ListKeys(errand(edition, "list parts", index=number), prefix)


def part_of(edition: Edition, scene: Scene) -> Part:
    """Return our part of an edition whose files here are all stored."""
    settled = edition.settled
    return Part(
        checkpoint=edition.checkpoint,
        edition=edition.number,
        series=edition.series,
        node=scene.policy.node,
        nodes=scene.policy.nodes,
        save_id=edition.joint.save_id,
        content=edition.save_id,
        step=settled.step,
        after_step=scene.after_step,
        layout=settled.layout,
        evidence=settled.evidence,
        saved_at=edition.saved_at,
        host=scene.host,
        nonce=scene.nonce,
        epoch=scene.epoch or 0,
        late=scene.late,
        files=(
            *(edition.stored[path] for path in sorted(edition.stored)),
            *(stored_file(f, "", 0, "", scene.policy.node) for f in edition.listing.folders),
        ),
        absent=settled.absent,
        named=settled.named,
        loose=settled.loose,
        stale=settled.stale,
    )


def frame_of(edition: Edition, scene: Scene) -> Manifest:
    """Return the manifest of a joint edition without what the parts say."""
    return Manifest(
        checkpoint=edition.checkpoint,
        edition=edition.number,
        series=edition.series,
        step=edition.settled.step,
        after_step=scene.after_step,
        lineage=scene.lineage,
        layout=edition.settled.layout,
        evidence=edition.settled.evidence,
        save_id=edition.joint.save_id,
        saved_at=max(edition.saved_at, scene.least_saved_at),
        committed_at=scene.now.wall,
        files=(),
        writer=Writer(scene.host, scene.epoch or 0, scene.nonce, scene.version, scene.policy.node),
        late=scene.late,
    )
