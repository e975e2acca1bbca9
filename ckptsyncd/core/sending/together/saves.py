"""Which contents of several machines are of one save: what the nodes share, and no local counter.

They share the name, the step in it, and when they wrote: a save is the same for two nodes if they
wrote it within the window. Where a done-file is set, and has a content, that content decides: the
trainer writes the same into it on every node, and something else at every save.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase

from ckptsyncd.core.facts import FileFact
from ckptsyncd.core.records.documents import Claim
from ckptsyncd.core.rules.policy import Policy
from ckptsyncd.core.sightings import Settled


def done_file(settled: Settled, policy: Policy) -> FileFact | None:
    """Return the file whose content names the save, if there is one here that says anything."""
    inside = "" if settled.checkpoint == "." else settled.checkpoint + "/"
    for fact in settled.listing.files:
        rel = fact.path.removeprefix(inside)
        if policy.done_file and fact.kind == "file" and fnmatchcase(rel, policy.done_file):
            return fact if fact.size else None
    return None


def mark_of(settled: Settled, policy: Policy, sums: Mapping[str, int]) -> str | None:
    """Return the mark of a save, empty where it has none, ``None`` where it is not known yet."""
    fact = done_file(settled, policy)
    if fact is None:
        return ""
    crc = sums.get(fact.path)
    return None if crc is None else f"{fact.size}.{crc:016x}"


def is_same_save(claim: Claim, settled: Settled, mark: str, policy: Policy) -> bool:
    """Return whether what settled here is of the save that a claim is about."""
    if claim.save_id == settled.listing.save_id():
        return True
    if claim.mark or mark:
        return claim.mark == mark
    apart = abs(claim.saved_at - settled.listing.saved_at)
    return claim.step == settled.step and apart <= policy.save_window_seconds
