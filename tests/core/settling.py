"""Editions for tests of the mind: a few steps that every test of them begins with."""

from __future__ import annotations

from ckptsyncd.core.facts import Instant
from ckptsyncd.core.records.manifest import encode
from ckptsyncd.core.records.memory import EditionRow, Recalled, SafeRow
from ckptsyncd.core.rules.policy import Policy
from ckptsyncd.core.sending.edition import Edition
from ckptsyncd.core.sending.editions import Editions
from ckptsyncd.core.sightings import Settled
from ckptsyncd.core.turn import Notebook
from tests.core.parts import NOW, fact, manifest, settled

A = settled()
SAVE = A.listing.save_id()
LATER = Instant(NOW.boot + 10.0, NOW.wall + 10.0)


def editions(recalled: Recalled | None = None, backlog: str = "newest") -> Editions:
    """Return the editions of a daemon whose store is empty and was listed."""
    made = Editions(Policy(backlog=backlog), "me", recalled or Recalled())
    made.list_catalog((), Notebook())
    return made


def list_and_confirm(
    all_of_them: Editions, keys: tuple[str, ...], notes: Notebook | None = None
) -> None:
    """Take in the store's listing, with every manifest as the ledger has it."""
    notes = notes or Notebook()
    all_of_them.list_catalog(keys, notes)
    for checkpoint, row in list(all_of_them.catalog.unconfirmed.items()):
        all_of_them.confirm_safe(checkpoint, encode(row.manifest), notes)


def take(all_of_them: Editions, what: Settled, now: Instant = NOW) -> Edition | None:
    """Take in what settled and return its open edition, if it has one."""
    all_of_them.take(what, now, Notebook())
    return all_of_them.open.get((what.checkpoint, what.listing.save_id()))


def taken(all_of_them: Editions, what: Settled, now: Instant = NOW) -> Edition:
    """Return the open edition of what settled, numbered."""
    edition = take(all_of_them, what, now)
    assert edition is not None
    all_of_them.number(edition, Notebook())
    return edition


def save(checkpoint: str, at: float, **other: object) -> Settled:
    """Return a checkpoint that was saved (mtime) and seen to change at this second."""
    one = fact(checkpoint, mtime_ns=int(at * 1e9), inode=int(at))
    values: dict[str, object] = {"step": None, "changed_at": at}
    return settled(one, checkpoint=checkpoint, **(values | other))


def commit(all_of_them: Editions, edition: Edition, number: int = 1) -> None:
    """Let an edition become safe."""
    commit_record = manifest(checkpoint=edition.checkpoint, edition=number, save_id=edition.save_id)
    all_of_them.became_safe(edition, commit_record, Notebook())


def known(number: int, what: Settled = A) -> Recalled:
    """Return what the ledger knows of an edition on its way."""
    return Recalled(editions={what.listing.save_id(): EditionRow(what, number)})


def safe_row(number: int, what: Settled = A) -> Recalled:
    """Return what the ledger knows of a safe edition."""
    record = manifest(edition=number, save_id=what.listing.save_id())
    return Recalled(safe={"run/a.ckpt": SafeRow(record, what.listing)})
