"""Objects below our own names that no manifest and no tombstone names, and begun uploads of ours.

They cost money and harm nothing. Plain keys are judged only where a claim says that an edition was
begun there: everything else may be the user's. What is being uploaded now looks the same, so age
is told, and nothing is removed here: ``prune`` removes what dead writers left.
"""

from __future__ import annotations

from dataclasses import dataclass

from ckptsyncd.core.facts import Begun, ObjectFact
from ckptsyncd.core.ports import Store
from ckptsyncd.core.records import names
from ckptsyncd.core.records.documents import MAX_RECORD_BYTES, Claim, Tombstone
from ckptsyncd.core.records.manifest import MAX_MANIFEST_BYTES
from ckptsyncd.errors import Missing, Never, PathRefused
from ckptsyncd.recover.catalog import Catalog, read_manifest
from ckptsyncd.recover.patience import Pace, patiently
from ckptsyncd.recover.reap import is_of

#: Uploads that grow elsewhere until they are whole (Google's).
UPLOADS = names.OURS + "uploads/"


@dataclass(frozen=True, slots=True)
class Unnamed:
    """What nobody names. ``claimed``: keys of editions that are claimed and not committed.

    ``waiting``: data of pruned checkpoints whose time has not come.
    """

    objects: tuple[ObjectFact, ...] = ()
    claimed: tuple[ObjectFact, ...] = ()
    waiting: tuple[ObjectFact, ...] = ()
    uploads: tuple[Begun, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to tell."""
        return not (self.objects or self.claimed or self.waiting or self.uploads)


def unnamed(store: Store, catalog: Catalog, pace: Pace) -> Unnamed:
    """Look through the whole prefix; raises StoreError as reading does.

    Where a manifest cannot be read nobody knows what it names, and its checkpoint's data is told
    as unnamed too.
    """
    named = _named(store, catalog, pace)
    buried = _buried(store, pace)
    claims = _claims(store, catalog, pace)
    objects: list[ObjectFact] = []
    claimed: list[ObjectFact] = []
    waiting: list[ObjectFact] = []
    for fact in patiently(lambda: list(store.list("")), pace):
        if fact.key in named or not _is_data(fact.key, claims):
            continue
        place = waiting if fact.key in buried else objects
        if place is objects and any(is_of(claim, fact.key) for claim in claims):
            place = claimed
        place.append(fact)
    begun = patiently(lambda: [one for one in store.uploads("") if _is_ours(one, claims)], pace)
    return Unnamed(tuple(objects), tuple(claimed), tuple(waiting), tuple(begun))


def _named(store: Store, catalog: Catalog, pace: Pace) -> set[str]:
    found: set[str] = set()
    for entry in catalog.entries:
        try:
            manifest = read_manifest(store, entry.key, pace)
        except (Missing, Never, PathRefused):
            continue  # told as broken by whoever verifies
        found.update(stored.key for stored in manifest.files if stored.key)
    return found


def _buried(store: Store, pace: Pace) -> set[str]:
    stones = patiently(lambda: list(store.list(names.TOMBSTONES)), pace)
    return {key for fact in stones for key in _stone_keys(store, fact.key, pace)}


def _stone_keys(store: Store, key: str, pace: Pace) -> tuple[str, ...]:
    try:
        data, _ = patiently(lambda: store.get_small(key, MAX_MANIFEST_BYTES), pace)
        return Tombstone.decode(data).keys
    except (Missing, Never, PathRefused):
        return ()  # gone, or none of ours


def _claims(store: Store, catalog: Catalog, pace: Pace) -> list[Claim]:
    """Return the claims of editions that are not committed."""
    committed = {names.claim_key(entry.checkpoint, entry.edition) for entry in catalog.entries}
    return [
        claim
        for fact in patiently(lambda: list(store.list(names.CLAIMS)), pace)
        if fact.key not in committed and (claim := _claim(store, fact.key, pace)) is not None
    ]


def _claim(store: Store, key: str, pace: Pace) -> Claim | None:
    try:
        return Claim.decode(patiently(lambda: store.get_small(key, MAX_RECORD_BYTES), pace)[0])
    except (Missing, Never, PathRefused):
        return None


def _is_data(key: str, claims: list[Claim]) -> bool:
    """Return whether a key is one of a checkpoint's data, as far as names tell."""
    if key.startswith((names.EDITIONS, UPLOADS)):
        return True
    return not key.startswith(names.OURS) and any(is_of(claim, key) for claim in claims)


def _is_ours(begun: Begun, claims: list[Claim]) -> bool:
    """Return whether a begun upload is at a key of ours, or of a claimed edition."""
    return begun.key.startswith(names.OURS) or any(is_of(c, begun.key) for c in claims)
