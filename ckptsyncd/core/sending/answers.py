"""Which answer changes what: one function for each purpose that an edition's order can have.

Every function gets the edition (still open), the message, the order that it answers, and the scene.
What it decides is a change of level in ``edition``; the next orders follow from that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ckptsyncd.core.messages import (
    Answer,
    Failed,
    KeysListed,
    LookedAgain,
    ObjectSeen,
    ObjectStored,
    PieceStored,
    Pinned,
    RecordPut,
    RecordRead,
    Report,
    Summed,
    Unpinned,
    UploadAbandoned,
    UploadBegun,
    UploadsListed,
)
from ckptsyncd.core.orders import (
    Begin,
    Finish,
    ListUploads,
    Order,
    PutPiece,
    PutSmall,
    PutWhole,
    Stat,
    Sum,
)
from ckptsyncd.core.records import memory
from ckptsyncd.core.records.manifest import decode
from ckptsyncd.core.sending import catalog, progress
from ckptsyncd.core.sending.case import Case
from ckptsyncd.core.sending.edition import Edition, FileProgress
from ckptsyncd.core.sending.editions import Editions
from ckptsyncd.core.sending.stamps import stamp_row
from ckptsyncd.core.sending.together import replies
from ckptsyncd.core.sending.upload import key_for, wanted_stamps
from ckptsyncd.core.turn import Notebook


def hear(case: Case, message: Answer | Report) -> None:
    """Take in the good answer to one of the edition's orders."""
    taker = TAKERS.get(message.errand.purpose)
    if taker is not None:
        taker(case, message)


def _pinned(case: Case, message: Pinned) -> None:
    if message.error:
        case.editions.unpinnable(case.edition, message.error, case.notes)
    elif message.listing != case.edition.listing:
        case.editions.unpinnable(case.edition, "it changed while it was pinned", case.notes)
    else:
        case.edition.pinned = True


def _compared(case: Case, message: RecordRead) -> None:
    node = case.scene.policy.node if case.scene.is_joint else None
    progress.rival_read(case.edition, message.data, node)
    _adopt(case)


def _summed(case: Case, message: Summed) -> None:
    # The same save may have come back as other files meanwhile.
    if isinstance(case.order, Sum) and case.order.listing == case.edition.listing:
        case.edition.sums[message.errand.path] = message.crc64nvme
        _adopt(case)


def _adopt(case: Case) -> None:
    """Call the content safe if all its checksums are known and are the rival's."""
    rival = case.edition.rival
    if (
        rival is not None
        and progress.is_summed(case.edition)
        and progress.equals_rival(case.edition)
    ):
        case.editions.became_safe(case.edition, rival, case.notes)


def _claimed(case: Case, message: RecordPut) -> None:
    if _is_moot(case, message):
        return
    case.edition.claimed = "yes"
    replies.claimed(case)
    case.editions.claimed(case.edition, case.scene)


def _is_moot(case: Case, message: RecordPut | RecordRead) -> bool:
    """Return whether an answer about a claim is about another number, or comes too late."""
    return message.errand.index != case.edition.number or case.edition.claimed == "yes"


def _claim_read(case: Case, message: RecordRead) -> None:
    if _is_moot(case, message):
        return
    taken = case.edition.number
    if case.scene.is_joint:
        replies.claim_read(case, message)
    elif progress.was_pruned(case.edition, message.data):
        case.editions.pruned_before(case.edition, case.notes)
    elif progress.claim_read(case.edition, message.data):
        case.editions.renumber(case.edition, case.notes)
        case.edition.rivals = (taken,)
    elif case.edition.claimed == "yes":
        case.editions.claimed(case.edition, case.scene)
    else:
        case.editions.unclaimed(case.edition, case.notes)


def _confirmed(case: Case, message: RecordRead) -> None:
    if message.errand.index == case.edition.source:
        is_there = message.data is not None
        case.editions.confirmed(case.edition, case.scene, is_there=is_there)


def _begun(case: Case, message: UploadBegun) -> None:
    waiting = case.edition.files.get(message.errand.path)
    if waiting is None or waiting.begun is not None or message.begun.key != waiting.key:
        case.editions.leftovers.abandon(message.begun, case.notes)
        return
    progress.begin(waiting, message.begun)
    case.notes.ledger.append(
        memory.upload_row(case.edition.save_id, message.errand.path, message.begun)
    )


def _piece(case: Case, message: PieceStored) -> None:
    path = message.errand.path
    waiting = case.edition.files.get(path)
    if waiting is None or not isinstance(case.order, PutPiece):
        return
    # A late answer about an upload that was begun anew says nothing about the new one.
    if case.order.begun == waiting.begun and progress.piece_stored(waiting, message):
        row = memory.piece_row(case.edition.save_id, path, waiting.nonce, message.receipt)
        case.notes.ledger.append(row)


def _stored(case: Case, message: ObjectStored) -> None:
    waiting = case.edition.files.get(message.errand.path)
    if waiting is None or message.fact.key != waiting.key:
        return
    wrong = progress.object_stored(case.edition, waiting, message, case.scene.policy.node)
    if wrong:
        waiting.restart()
        waiting.nonce = case.editions.next_nonce()
        waiting.salts += 1
        waiting.key = key_for(case.edition, waiting.fact.path, case.scene, waiting.salts)
        case.notes.said("file.wrong", ("path", waiting.fact.path), ("text", wrong))
    else:
        begun = waiting.begun is not None or waiting.has_stray
        _remember_stored(case.edition, message.errand.path, case.notes, begun=begun)


def _remember_stored(edition: Edition, path: str, notes: Notebook, *, begun: bool = True) -> None:
    if begun:  # what went out in one request left no rows: thousands of small files do
        notes.ledger.append(memory.forget_upload(edition.save_id, path))
    notes.ledger.append(memory.object_row(edition.save_id, edition.stored[path]))


def _seen(case: Case, message: ObjectSeen) -> None:
    path = message.errand.path
    waiting = case.edition.files.get(path)
    if waiting is None or not isinstance(case.order, Stat) or case.order.key != waiting.key:
        return
    before = waiting.begun
    is_stored = progress.object_seen(case.edition, waiting, message, case.scene)
    if is_stored:
        _remember_stored(case.edition, path, case.notes)
    elif waiting.begun is None:
        waiting.nonce = case.editions.next_nonce()
    # Whoever stored it: what was begun, or may have been, is finished or in vain.
    if is_stored and waiting.has_stray:
        case.editions.leftovers.look_for_stray(waiting.key, case.notes)
    if before is not None and (is_stored or waiting.begun is None):
        case.editions.leftovers.abandon(before, case.notes)


def _strays_listed(case: Case, message: UploadsListed) -> None:
    waiting = case.edition.files.get(message.errand.path)
    if waiting is not None and isinstance(case.order, ListUploads):
        waiting.has_stray = False
        case.editions.drop_strays(message.uploads, case.order.prefix, case.notes)


def _looked_again(case: Case, message: LookedAgain) -> None:
    if message.errand.index != case.edition.number:
        return
    difference = message.difference
    if difference:
        case.editions.voided(case.edition, difference, case.notes)
    else:
        case.edition.looked = True


def _stamped(case: Case, message: RecordPut) -> None:
    edition, scene, path = case.edition, case.scene, message.errand.path
    if path in wanted_stamps(edition, scene):
        row = stamp_row(edition, path, scene.limits.checksum, scene.policy.node)
        edition.stamps[path] = row


def _sealed(case: Case, message: RecordPut) -> None:
    if isinstance(case.order, PutSmall) and message.errand.index == case.edition.number:
        case.edition.sealed = "yes"
        manifest = case.order.manifest or decode(case.order.data)
        case.editions.became_safe(case.edition, manifest, case.notes)


def _manifest_read(case: Case, message: RecordRead) -> None:
    if message.errand.index != case.edition.number:
        return
    if case.scene.is_joint:
        replies.manifest_read(case, message)
        return
    data = message.data
    manifest = progress.manifest_read(case.edition, data, case.scene.nonce)
    if manifest is not None:
        case.editions.became_safe(case.edition, manifest, case.notes)
    elif data is not None:
        case.editions.renumber(case.edition, case.notes)


TAKERS: dict[str, Callable[[Case, Any], None]] = {
    "pin": _pinned,
    "compare": _compared,
    "sum": _summed,
    "claim": _claimed,
    "read claim": _claim_read,
    "confirm": _confirmed,
    "begin": _begun,
    "list strays": _strays_listed,
    "piece": _piece,
    "finish": _stored,
    "whole": _stored,
    "stat": _seen,
    "look again": _looked_again,
    "stamp": _stamped,
    "seal": _sealed,
    "read manifest": _manifest_read,
    "seek manifest": _manifest_read,
    "own part": replies.own_part_read,
    "check epoch": replies.epoch_checked,
    "part": replies.part_put,
    "list parts": replies.listed,
    "read part": replies.part_read,
    "confirm claim": replies.claim_confirmed,
    "bid": replies.bid_won,
}


def hear_beside(
    editions: Editions, message: Answer | Report, order: Order, notes: Notebook
) -> bool:
    """Take in an answer that concerns no open edition; return whether it was one of ours."""
    if isinstance(message, KeysListed) and message.errand.purpose == "catalogue":
        editions.list_catalog(message.keys, notes)
    elif isinstance(message, RecordRead) and message.errand.purpose == catalog.PURPOSE:
        editions.confirm_safe(message.errand.checkpoint, message.data, notes)
    elif isinstance(message, UploadsListed):
        editions.drop_strays(message.uploads, message.errand.path, notes)
    elif isinstance(message, UploadAbandoned):
        editions.leftovers.abandoned(message.errand, notes)
    elif isinstance(message, UploadBegun):
        editions.leftovers.abandon(message.begun, notes)
    elif isinstance(message, Unpinned):
        # Unless the same files were pinned and let go of again meanwhile.
        if editions.unpins.get(message.errand) is order:
            del editions.unpins[message.errand]
    else:
        return False
    return True


def failed(case: Case, message: Failed, now: float) -> None:
    """Take in that one of the edition's orders failed: doubt, begin anew, park, or just wait."""
    editions, edition = case.editions, case.edition
    purpose, kind = message.errand.purpose, message.kind
    unsure = message.ambiguous or kind == "lost"
    if isinstance(case.order, Begin):
        _not_begun(case, case.order, message)
    if kind == "changed":
        editions.voided(edition, message.text, case.notes)
    elif kind in ("never", "local") or (kind == "missing" and purpose != "compare"):
        long = 10.0 if kind == "never" else 1.0
        until = now + long * editions.policy.parked_seconds
        editions.parked(edition, message.text, until, case.notes)
    elif purpose == "bid" and unsure:
        replies.bid_lost(case)
    elif purpose in ("claim", "seal", "part") and unsure:
        if message.errand.index == edition.number:
            _doubt(edition, purpose)
    else:
        _file_failed(case, message)


def _not_begun(case: Case, order: Begin, message: Failed) -> None:
    waiting = case.edition.files.get(message.errand.path)
    if waiting is not None and waiting.key == order.key:
        waiting.is_beginning = False
    else:
        case.editions.leftovers.not_begun(order.key, case.notes, perhaps=message.ambiguous)


def _doubt(edition: Edition, purpose: str) -> None:
    if purpose == "seal":
        edition.sealed = "doubt"
    elif purpose == "part":
        edition.joint.part = "doubt"
    elif edition.claimed != "yes":
        edition.claimed = "doubt"


def _file_failed(case: Case, message: Failed) -> None:
    edition, order = case.edition, case.order
    waiting = edition.files.get(message.errand.path)
    if waiting is None or not _is_about(order, waiting):
        return
    before = waiting.begun
    progress.file_failed(waiting, message)
    if before is not None and waiting.begun is None:
        waiting.nonce = case.editions.next_nonce()
        case.notes.ledger.append(memory.forget_upload(edition.save_id, waiting.fact.path))


def _is_about(order: Order, waiting: FileProgress) -> bool:
    """Return whether an order was about the upload as it is now, and not about an earlier one."""
    if isinstance(order, PutPiece | Finish):
        return order.begun == waiting.begun
    if isinstance(order, Begin | PutWhole | Stat):
        return order.key == waiting.key
    return True
