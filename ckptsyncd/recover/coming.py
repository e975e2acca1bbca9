"""What is being uploaded that a restore may wait for, as far as the store shows it."""

from __future__ import annotations

from dataclasses import dataclass

from ckptsyncd.core.ports import Store
from ckptsyncd.core.records import names
from ckptsyncd.core.records.documents import MAX_RECORD_BYTES, Claim
from ckptsyncd.core.words import count_words, size_words
from ckptsyncd.errors import CkptsyncdError

#: So many of the newest claims are looked at (guessed: whoever waits waits for one of these).
_MOST_CLAIMS = 3


@dataclass(frozen=True, slots=True)
class Coming:
    """One upload that is not committed: how many of its objects are whole in the store."""

    title: str
    objects: int
    bytes: int
    claimed_at: float

    @property
    def words(self) -> str:
        """What is there of it; a large file counts only once it is whole."""
        there = f"{count_words(self.objects, 'object')}, {size_words(self.bytes)} there"
        return f"{self.title} is being uploaded ({there})"


def coming(store: Store) -> tuple[Coming, ...]:
    """Return the newest uploads that are claimed and not committed, newest first.

    Whatever the store does not tell is left out: this is only for people, and for the pace.
    """
    try:
        committed = {fact.key for fact in store.list(names.MANIFESTS)}
        claims = [_claim(store, fact.key) for fact in store.list(names.CLAIMS)]
        open_ = [claim for claim in claims if claim is not None and not _is_over(claim, committed)]
        open_.sort(key=lambda claim: -claim.claimed_at)
        return tuple(_of(store, claim) for claim in open_[:_MOST_CLAIMS])
    except CkptsyncdError:
        return ()


def _is_over(claim: Claim, committed: set[str]) -> bool:
    key = names.manifest_key(claim.checkpoint, claim.edition)
    return key in committed or claim.pruned_at > 0 or not claim.save_id


def _claim(store: Store, key: str) -> Claim | None:
    try:
        return Claim.decode(store.get_small(key, MAX_RECORD_BYTES)[0])
    except CkptsyncdError:
        return None


def _of(store: Store, claim: Claim) -> Coming:
    plain = names.key_of_path(claim.checkpoint)
    inside = f"{names.EDITIONS}{names.quoted(claim.checkpoint)}/{claim.edition}"
    prefixes = (plain, inside) if claim.edition == 1 and not claim.salt else (inside,)
    found = [fact for prefix in prefixes for fact in store.list(prefix) if _fits(prefix, fact.key)]
    title = f"{claim.checkpoint}@{claim.edition}"
    return Coming(title, len(found), sum(fact.size for fact in found), claim.claimed_at)


def _fits(prefix: str, key: str) -> bool:
    return key == prefix or key[len(prefix) : len(prefix) + 1] in ("/", "-")
