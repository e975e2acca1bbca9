"""What an answer changes in an edition that several machines store together.

As in ``sending.answers``: every function gets the case and the message, and leaves ``Joint`` at the
level that is now certain.
"""

from __future__ import annotations

from ckptsyncd.core.messages import KeysListed, RecordPut, RecordRead
from ckptsyncd.core.orders import PutSmall
from ckptsyncd.core.records import names
from ckptsyncd.core.records.documents import Claim, Epoch
from ckptsyncd.core.records.manifest import Manifest, decode
from ckptsyncd.core.sending.case import Case
from ckptsyncd.core.sending.edition import Edition
from ckptsyncd.core.sending.together.asking import frame_of
from ckptsyncd.core.sending.together.joint import INCOMPLETE, NO_PARTS
from ckptsyncd.core.sending.together.merging import Lacks, Refused, merged, nodes_words
from ckptsyncd.core.sending.together.part import Part
from ckptsyncd.core.sending.together.patience import FEW_NODES, commit_patience, pause, turn_delay
from ckptsyncd.core.sending.together.saves import is_same_save, mark_of
from ckptsyncd.errors import CkptsyncdError

# The claim --------------------------------------------------------------------------------------


def claimed(case: Case) -> None:
    """Take in that the claim on the edition is ours: our save's name is everybody's."""
    edition = case.edition
    edition.joint.save_id = edition.joint.save_id or edition.save_id
    edition.joint.is_laid = True


def claim_read(case: Case, message: RecordRead) -> None:
    """Join the claim of the same save; take the next number where it is another's."""
    edition = case.edition
    claim = None if message.data is None else _claim(message.data)
    if message.data is None:
        edition.claimed = "no"
        case.editions.unclaimed(edition, case.notes)
    elif claim is None or not _is_same(case, claim):
        _next_number(case)
    elif claim.pruned_at > 0:
        case.editions.pruned_before(edition, case.notes)
    else:
        edition.claimed = "yes"
        edition.joint.save_id = claim.save_id
        # Another save of this node may have its part in it: that is known before anything is sent.
        edition.joint.part = "doubt"


def _claim(data: bytes) -> Claim | None:
    try:
        return Claim.decode(data)
    except CkptsyncdError:
        return None


def _is_same(case: Case, claim: Claim) -> bool:
    edition, policy = case.edition, case.scene.policy
    mark = mark_of(edition.settled, policy, edition.sums) or ""
    return is_same_save(claim, edition.settled, mark, policy)


def _next_number(case: Case) -> None:
    taken = case.edition.number
    case.editions.renumber(case.edition, case.notes)
    case.edition.rivals = (taken,)


# Our part ---------------------------------------------------------------------------------------


def own_part_read(case: Case, message: RecordRead) -> None:
    """Resolve the doubt about our part: there, not there, or of another save of this node."""
    edition, joint = case.edition, case.edition.joint
    if message.errand.index != edition.number or joint.part != "doubt":
        return
    part = None if message.data is None else _part(message.data)
    joint.part = "no"
    if message.data is not None and (part is None or not _is_ours(edition, part)):
        _next_number(case)
    elif part is not None and joint.is_laid and not edition.files:
        _stored(case, part)
    elif not joint.is_laid:
        joint.is_laid = True
        case.editions.claimed(edition, case.scene)


def _part(data: bytes) -> Part | None:
    try:
        return Part.decode(data)
    except CkptsyncdError:
        return None


def _is_ours(edition: Edition, part: Part) -> bool:
    """Return whether a part holds what we have, as far as our own checksums are known."""
    stored = edition.stored.values()
    sums = {file.path: file.crc64nvme for file in stored if file.kind == "file"}
    theirs = part.sums()
    is_equal = all(theirs.get(path) == crc for path, crc in sums.items())
    return part.content == edition.save_id and part.save_id == edition.joint.save_id and is_equal


def epoch_checked(case: Case, message: RecordRead) -> None:
    """Take in who has the run as our node now: somebody newer fences this daemon."""
    edition, scene = case.edition, case.scene
    edition.joint.checked = True
    try:
        record = None if message.data is None else Epoch.decode(message.data)
    except CkptsyncdError:
        return
    if record is not None and record.nonce != scene.nonce and record.epoch > (scene.epoch or 0):
        reason = f"a newer daemon on {record.host} has taken {edition.series} over"
        case.editions.overtaken.append(reason)


def part_put(case: Case, message: RecordPut) -> None:
    """Take in that our part is in the store: the others are asked for at once."""
    if message.errand.index == case.edition.number and isinstance(case.order, PutSmall):
        _stored(case, Part.decode(case.order.data))


def _stored(case: Case, part: Part) -> None:
    joint, boot = case.edition.joint, case.scene.now.boot
    joint.part, joint.mine = "yes", part
    joint.since = min(joint.since, boot)
    joint.due = boot
    case.notes.said(
        "checkpoint.part",
        ("checkpoint", part.checkpoint),
        ("edition", part.edition),
        ("node", part.node),
        ("nodes", part.nodes),
    )


# The others -------------------------------------------------------------------------------------


def listed(case: Case, message: KeysListed) -> None:
    """Take in whose parts are there: all of them at our first question, and we commit."""
    edition, joint, policy = case.edition, case.edition.joint, case.scene.policy
    if message.errand.index != edition.number or not joint.is_waiting:
        return
    prefix = names.parts_prefix(edition.checkpoint, edition.number)
    found = (names.parse_part_key(key, prefix) for key in message.keys)
    joint.here = frozenset(node for node in found if node is not None) | {policy.node}
    lacking = set(range(policy.nodes)) - joint.here
    if not policy.nodes:
        _gather(case)
    elif lacking:
        joint.was_whole = False
        _wait(case, f"waiting for {nodes_words(lacking)}")
    elif joint.asks == 0 and policy.nodes > FEW_NODES:
        joint.bids = True
    elif joint.asks == 0 or joint.was_whole:
        _read_parts(case)
        if joint.asks == 0:
            delay = turn_delay(policy.node, policy.nodes, joint.save_id)
            joint.due = case.scene.now.boot + delay
    else:
        _trust(case)


def _read_parts(case: Case) -> None:
    joint = case.edition.joint
    joint.reads, joint.bids = True, False
    joint.parts = {} if joint.mine is None else {case.scene.policy.node: joint.mine}


def _gather(case: Case) -> None:
    """Read the parts that are new, where nobody counted the nodes; with none new ask for more."""
    joint = case.edition.joint
    if joint.mine is not None:
        joint.parts.setdefault(joint.mine.node, joint.mine)
    if joint.parts.keys() >= joint.here:
        _merge(case)
    else:
        joint.reads = True


def _trust(case: Case) -> None:
    """Wait for whoever came last to commit; where it vanished we do so after one more question."""
    case.edition.joint.was_whole = True
    patience = commit_patience(case.scene.policy.nodes, case.scene.nonce)
    _wait(case, "all parts are there, the manifest is not", patience)


def bid_won(case: Case, message: RecordPut) -> None:
    """Take in that we are the first to say that we commit."""
    if message.errand.index == case.edition.number and case.edition.joint.bids:
        _read_parts(case)


def bid_lost(case: Case) -> None:
    """Take in that another node said so, or that we do not know whether we did."""
    if case.edition.joint.bids:
        _trust(case)


def _wait(case: Case, reason: str, least_seconds: float = 0.0) -> None:
    edition, joint, scene = case.edition, case.edition.joint, case.scene
    joint.asks += 1
    joint.seeks, joint.reads, joint.bids = True, False, False
    wait = pause(joint.asks - 1, scene.nonce, hasty=scene.hasty)
    joint.waits_since = scene.now.boot
    joint.due = scene.now.boot + max(wait, least_seconds)
    long = scene.now.boot - joint.since >= scene.policy.incomplete_seconds
    text = f"{INCOMPLETE}{reason}" if long else reason
    if long and not joint.is_incomplete:
        fields = (("checkpoint", edition.checkpoint), ("edition", edition.number), ("text", text))
        case.notes.said("checkpoint.incomplete", *fields)
    joint.reason = text
    case.notes.moved(edition, edition.state, text)


def part_read(case: Case, message: RecordRead) -> None:
    """Take in another node's part; with the last one the manifest is made."""
    edition, joint = case.edition, case.edition.joint
    if message.errand.index != edition.number or not joint.reads:
        return
    node = int(message.errand.path)
    part = None if message.data is None else _part(message.data)
    if part is None or part.node != node:
        joint.begin_again()
        _wait(case, f"the part of node {node} cannot be read")
        return
    joint.parts[node] = part
    if joint.parts.keys() >= set(joint.nodes(case.scene.policy.nodes)):
        _merge(case)


def claim_confirmed(case: Case, message: RecordRead) -> None:
    """Take in the claim just before the commit: pruned, or another's, it is not committed."""
    edition = case.edition
    if message.errand.index != edition.number:
        return
    claim = None if message.data is None else _claim(message.data)
    if claim is not None and claim.pruned_at > 0:
        case.editions.pruned_before(edition, case.notes)
    elif claim is None or claim.save_id != edition.joint.save_id:
        _next_number(case)
    else:
        edition.joint.confirmed_at = case.scene.now.boot


def _merge(case: Case) -> None:
    edition, joint, scene = case.edition, case.edition.joint, case.scene
    is_counted = scene.policy.nodes > 0
    made = merged(joint.parts, frame_of(edition, scene), is_counted=is_counted)
    if isinstance(made, Manifest):
        joint.whole = made
        return
    is_kept = isinstance(made, Lacks) and not is_counted
    joint.begin_again(joint.parts if is_kept else NO_PARTS)
    if isinstance(made, Lacks):
        _wait(case, made.because)
    elif isinstance(made, Refused):
        joint.reason = made.because
        until = scene.now.boot + 10.0 * scene.policy.parked_seconds
        case.editions.parked(edition, made.because, until, case.notes)


# The manifest -----------------------------------------------------------------------------------


def manifest_read(case: Case, message: RecordRead) -> None:
    """Take in the manifest, or that there is none: with our files in it, our part is safe."""
    edition, joint = case.edition, case.edition.joint
    if message.errand.index != edition.number:
        return
    edition.sealed = "no"
    if message.data is None:
        if message.errand.purpose == "read manifest":
            return  # our own did not get there: it is written again
        joint.seeks = False
        return
    manifest = _manifest(message.data)
    if manifest is not None and holds(edition, manifest):
        edition.sealed = "yes"
        case.editions.became_safe(edition, manifest, case.notes)
    else:
        _next_number(case)


def _manifest(data: bytes) -> Manifest | None:
    try:
        return decode(data)
    except CkptsyncdError:
        return None


def holds(edition: Edition, manifest: Manifest) -> bool:
    """Return whether a manifest is of our save and names all our files with our content."""
    theirs = {stored.path: stored for stored in manifest.files}
    return manifest.save_id == edition.joint.save_id and all(
        path in theirs
        and (theirs[path].size, theirs[path].crc64nvme, theirs[path].target)
        == (stored.size, stored.crc64nvme, stored.target)
        for path, stored in edition.stored.items()
    )
