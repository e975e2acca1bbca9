"""What writers that are gone had begun: data that no manifest will ever name, and half uploads.

Only what a claim names is touched, and only where the claim's writer is surely gone: its node has a
newer run epoch, and nothing of the claim's epoch was claimed or committed for a week. A plain key
must carry a nonce of the claim's own writer: anything else there is the user's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from ckptsyncd.core.facts import Begun, IfMatches, ObjectFact
from ckptsyncd.core.ports import Store
from ckptsyncd.core.records import names
from ckptsyncd.core.records.documents import MAX_RECORD_BYTES, Claim, Epoch
from ckptsyncd.errors import CkptsyncdError, Lost, Missing
from ckptsyncd.recover.catalog import Catalog, read_catalog, read_manifest
from ckptsyncd.recover.gait import Gait
from ckptsyncd.recover.living import living
from ckptsyncd.recover.patience import patiently

#: How long a dead epoch must have been silent (the design's number).
DEAD_SECONDS = 7 * 86400.0


@dataclass(frozen=True, slots=True)
class Reaped:
    """How many objects, begun uploads and claims of dead writers went."""

    objects: int = 0
    uploads: int = 0
    claims: int = 0


@dataclass(frozen=True, slots=True)
class _Dead:
    """A claim that will never be committed, as it lies in the store."""

    key: str
    claim: Claim
    version: str


def reap(store: Store, now: float, gait: Gait) -> Reaped:
    """Remove what dead claims name, then the claims; raises Postponed as ``gait`` says."""
    catalog = read_catalog(store, gait.pace)
    if catalog.unreadable:
        return Reaped()  # one of them may name what looks like nobody's
    dead = list(_dead_claims(store, catalog, now, gait))
    if not dead:
        return Reaped()
    claims = [one.claim for one in dead]
    named = living(store, catalog, lambda key: any(_may_have(c, key) for c in claims), gait.pace)
    begun = patiently(lambda: list(store.uploads("")), gait.pace)
    total = Reaped()
    for one in dead:
        if not _disowned(store, one, gait):
            continue
        total = _reaped(store, one, named, begun, gait, total)
    return total


def _reaped(
    store: Store, one: _Dead, named: frozenset[str], begun: list[Begun], gait: Gait, total: Reaped
) -> Reaped:
    """Remove what one claim names, its own record last."""
    for upload in begun:
        if is_of(one.claim, upload.key) and _may_be(one.claim, upload.nonce):
            gait.act(partial(store.abandon, upload))
            total = replace(total, uploads=total.uploads + 1)
    for fact in _objects(store, one.claim, named, gait):
        gait.act(partial(store.delete, fact.key))
        total = replace(total, objects=total.objects + 1)
    parts = names.parts_prefix(one.claim.checkpoint, one.claim.edition)
    for fact in patiently(partial(_listed, store, parts), gait.pace):
        gait.act(partial(store.delete, fact.key))
    gait.act(lambda: store.delete(one.key))
    return replace(total, claims=total.claims + 1)


def _dead_claims(store: Store, catalog: Catalog, now: float, gait: Gait) -> Iterator[_Dead]:
    """Yield the claims whose edition was never committed and whose writer is gone."""
    settled = {names.claim_key(entry.checkpoint, entry.edition) for entry in catalog.entries}
    settled |= {names.CLAIMS + b.key[len(names.MANIFESTS) :] for b in catalog.broken}
    listed = patiently(lambda: [fact.key for fact in store.list(names.CLAIMS)], gait.pace)
    last = _last_commits(store, catalog, gait) if set(listed) - settled else {}
    epochs: dict[tuple[str, int], int] = {}
    for key in listed:
        found = None if key in settled else _claim(store, key, gait)
        if found is None:
            continue
        claim = found.claim
        node = (claim.series, claim.node)
        if node not in epochs:
            epochs[node] = _epoch_of(store, *node, gait)
        quiet = max(claim.claimed_at, last.get((*node, claim.epoch), 0.0))
        if claim.epoch < epochs[node] and now - quiet >= DEAD_SECONDS:
            yield found


def _claim(store: Store, key: str, gait: Gait) -> _Dead | None:
    try:
        data, version = patiently(lambda: store.get_small(key, MAX_RECORD_BYTES), gait.pace)
        claim = Claim.decode(data)
    except Missing:
        return None
    except CkptsyncdError:
        return None  # no claim of ours
    return (
        _Dead(key, claim, version)
        if key == names.claim_key(claim.checkpoint, claim.edition)
        else None
    )


def _epoch_of(store: Store, series: str, node: int, gait: Gait) -> int:
    """Return the newest run epoch of a node; 0, older than all, where it cannot be known."""
    key = names.epoch_key(series, node)
    try:
        data, _ = patiently(lambda: store.get_small(key, MAX_RECORD_BYTES), gait.pace)
        return Epoch.decode(data).epoch
    except CkptsyncdError:
        return 0


def _last_commits(store: Store, catalog: Catalog, gait: Gait) -> dict[tuple[str, int, int], float]:
    """Return when each epoch of each node committed last."""
    last: dict[tuple[str, int, int], float] = {}
    for entry in catalog.entries:
        try:
            manifest = read_manifest(store, entry.key, gait.pace)
        except Missing:
            continue
        writer = (manifest.series, manifest.writer.node, manifest.writer.epoch)
        last[writer] = max(last.get(writer, 0.0), manifest.committed_at)
    return last


def _disowned(store: Store, one: _Dead, gait: Gait) -> bool:
    """Take the claim away from its save: whoever comes back with it chooses another edition."""
    mark = replace(one.claim, save_id="").encode()
    try:
        gait.act(lambda: store.put_small(one.key, mark, IfMatches(one.version)))
    except (Lost, Missing):
        return False
    return True


def _objects(store: Store, claim: Claim, named: frozenset[str], gait: Gait) -> Iterator[ObjectFact]:
    """Yield the objects that a claim names and no manifest."""
    prefixes = [_inside(claim)] + ([_plain(claim)] if claim.edition == 1 else [])
    for prefix in prefixes:
        for fact in patiently(partial(_listed, store, prefix), gait.pace):
            if fact.key in named or not _may_have(claim, fact.key):
                continue
            if fact.key.startswith(names.OURS) or _is_ours(store, claim, fact.key, gait):
                yield fact


def _listed(store: Store, prefix: str) -> list[ObjectFact]:
    return list(store.list(prefix))


def _inside(claim: Claim) -> str:
    """Return below what the objects of editions lie that have no plain keys."""
    return f"{names.EDITIONS}{names.quoted(claim.checkpoint)}/"


def _plain(claim: Claim) -> str:
    """Return what the plain keys of a checkpoint start with; others may start so too."""
    return "" if claim.checkpoint == "." else names.key_of_path(claim.checkpoint)


def _may_have(claim: Claim, key: str) -> bool:
    """Return whether a key may be one of this claim's edition; plain ones need a look as well."""
    inside = _inside(claim)
    if key.startswith(inside):
        number = key[len(inside) :].partition("/")[0].partition("-")[0]
        return number == str(claim.edition)
    is_plain = claim.edition == 1 and not key.startswith(names.OURS)
    return is_plain and key.startswith(_plain(claim))


def is_of(claim: Claim, key: str) -> bool:
    """Return whether a key can be no other checkpoint's, whatever is known of its object."""
    plain = _plain(claim)
    is_alone = key == plain or key.startswith((names.OURS, f"{plain}/"))
    return is_alone and _may_have(claim, key)


def _is_ours(store: Store, claim: Claim, key: str, gait: Gait) -> bool:
    """Return whether an object carries a nonce of the claim's writer."""
    try:
        nonce = patiently(lambda: store.stat(key), gait.pace).nonce
    except Missing:
        return False
    return nonce is not None and nonce.startswith(f"{claim.nonce}.")


def _may_be(claim: Claim, nonce: str) -> bool:
    """Return whether a begun upload may be of the claim's writer; S3 does not tell nonces."""
    return not nonce or nonce.startswith(f"{claim.nonce}.")
