"""The data of checkpoints that were pruned a while ago, and at last their tombstones.

Only keys that a tombstone names go, only those that no manifest names, and only where nobody is
about to commit the same checkpoint: its next edition may share unchanged files.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from ckptsyncd.core.facts import ObjectFact
from ckptsyncd.core.ports import Store
from ckptsyncd.core.records import names
from ckptsyncd.core.records.documents import Tombstone
from ckptsyncd.core.records.manifest import MAX_MANIFEST_BYTES
from ckptsyncd.errors import Missing, Never, PathRefused
from ckptsyncd.recover.catalog import Broken, Catalog, read_catalog
from ckptsyncd.recover.gait import Gait
from ckptsyncd.recover.living import living
from ckptsyncd.recover.patience import patiently

#: A tombstone without data stays so long: whoever still has the save on its disk finds out that it
#: is not to be stored again (guessed, as long as a dead writer is waited for).
STONE_SECONDS = 7 * 86400.0


@dataclass(frozen=True, slots=True)
class Cleared:
    """How many objects and tombstones went; ``waiting`` are titles whose data goes later.

    ``held``: why data stays although its time has come.
    """

    objects: int = 0
    stones: int = 0
    waiting: tuple[str, ...] = ()
    held: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Grave:
    """A tombstone as it lies in the store."""

    broken: Broken
    stone: Tombstone
    key: str


def clear(store: Store, grace_seconds: float, now: float, gait: Gait) -> Cleared:
    """Remove the data whose grace is over and the tombstones that nobody needs any more.

    Raises Postponed as ``gait`` says; what was begun is finished by the next run.
    """
    catalog = read_catalog(store, gait.pace)
    graves = [
        grave for broken in catalog.broken if broken.pruned for grave in _read(store, broken, gait)
    ]
    due = [g for g in graves if g.stone.keys and now - g.stone.buried_at >= grace_seconds]
    waiting = tuple(g.broken.title for g in graves if g.stone.keys and g not in due)
    done = _emptied(store, catalog, due, gait)
    old = [g for g in graves if not g.stone.keys and now - g.stone.buried_at >= STONE_SECONDS]
    for grave in old:
        claim = names.claim_key(grave.stone.checkpoint, grave.stone.edition)
        parts = names.parts_prefix(grave.stone.checkpoint, grave.stone.edition)
        for fact in patiently(partial(_listed, store, parts), gait.pace):
            gait.act(partial(store.delete, fact.key))
        gait.act(partial(store.delete, claim))
        gait.act(partial(store.delete, grave.key))
    return replace(done, stones=len(old), waiting=waiting)


def _listed(store: Store, prefix: str) -> list[ObjectFact]:
    return list(store.list(prefix))


def _emptied(store: Store, catalog: Catalog, due: list[_Grave], gait: Gait) -> Cleared:
    """Remove the data of graves whose time has come, as far as nobody may need it."""
    if not due:
        return Cleared()
    if catalog.unreadable:
        title = catalog.unreadable[0].title
        return Cleared(held=(f"{title} cannot be read, so nobody knows which data it names",))
    claimed = open_claims(store, catalog, gait)
    held = [g for g in due if names.quoted(g.stone.checkpoint) in claimed]
    free = [g for g in due if g not in held]
    wanted = {key for grave in free for key in grave.stone.keys}
    wanted -= living(store, catalog, wanted.__contains__, gait.pace)
    objects = 0
    for grave in free:
        for key in grave.stone.keys:
            if key in wanted:
                gait.act(partial(store.delete, key))
                objects += 1
        _empty(store, grave, gait)
    reasons = tuple(f"{g.broken.title}: another edition of it is being uploaded" for g in held)
    return Cleared(objects, held=reasons)


def open_claims(store: Store, catalog: Catalog, gait: Gait) -> set[str]:
    """Return the quoted names of checkpoints of which an edition is claimed and not committed."""
    settled = {(names.quoted(e.checkpoint), e.edition) for e in catalog.entries}
    settled |= {
        parsed for broken in catalog.broken if (parsed := names.parse_manifest_key(broken.key))
    }
    keys = patiently(lambda: [fact.key for fact in store.list(names.CLAIMS)], gait.pace)
    parsed_keys = (names.parse_claim_key(key) for key in keys)
    return {parsed[0] for parsed in parsed_keys if parsed and parsed not in settled}


def _empty(store: Store, grave: _Grave, gait: Gait) -> None:
    """Note that the data is gone."""
    stone = replace(grave.stone, keys=()).encode()
    gait.act(lambda: store.put_small(grave.key, stone, None))


def _read(store: Store, broken: Broken, gait: Gait) -> list[_Grave]:
    """Return the tombstone of a pruned edition; nothing where it went meanwhile, or is none."""
    key = names.TOMBSTONES + broken.key[len(names.MANIFESTS) :]
    try:
        data, _ = patiently(lambda: store.get_small(key, MAX_MANIFEST_BYTES), gait.pace)
        stone = Tombstone.decode(data)
    except (Missing, Never, PathRefused):
        return []
    if names.tombstone_key(stone.checkpoint, stone.edition) != key:
        return []
    return [_Grave(broken, stone, key)]
