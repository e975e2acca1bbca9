"""All editions of all names: what is new, what gives way, and what becomes safe."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ckptsyncd.core.facts import Instant
from ckptsyncd.core.lifecycle import State
from ckptsyncd.core.orders import Remember
from ckptsyncd.core.records import memory, names
from ckptsyncd.core.records.manifest import Manifest, encode
from ckptsyncd.core.records.memory import EditionRow, Recalled, SafeRow
from ckptsyncd.core.rules.policy import Policy
from ckptsyncd.core.sending.edition import Edition
from ckptsyncd.core.sending.editions import Editions
from ckptsyncd.core.sightings import Settled
from ckptsyncd.core.turn import Notebook
from tests.core.parts import NOW, begun, fact, manifest, scene, settled, stored

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


# What settles -----------------------------------------------------------------------------------


def test_a_new_content_is_settled_once() -> None:
    """The same listing again is no news."""
    all_of_them = editions()
    one = taken(all_of_them, A)
    assert (one.state, one.number) == ("settled", 1)
    assert take(all_of_them, A, LATER) is one
    assert list(all_of_them.open.values()) == [one]


def test_a_safe_content_is_not_taken_again() -> None:
    """What is safe already is told to the eyes once more, and nothing is sent."""
    all_of_them = editions()
    commit(all_of_them, taken(all_of_them, A))
    all_of_them.committed.clear()
    assert take(all_of_them, A, LATER) is None
    assert all_of_them.committed == [(all_of_them.safe["run/a.ckpt"].manifest, A.listing)]


WRITTEN_AGAIN: list[tuple[str, bool, int, State | None]] = [
    ("it waits", False, 99, "superseded"),
    ("it is on its way, the files are others", True, 99, "settled"),
    ("it is on its way, the files are the same", True, 7, "writing"),
]


@pytest.mark.parametrize(
    ("what", "began", "inode", "state"), WRITTEN_AGAIN, ids=[row[0] for row in WRITTEN_AGAIN]
)
def test_a_name_that_is_written_again_lets_go_of_what_is_vain(
    what: str, *, began: bool, inode: int, state: State
) -> None:
    """An upload goes on only if its pinned files still hold what settled."""
    del what
    all_of_them = editions()
    old = taken(all_of_them, A)
    old.began = began
    new = take(all_of_them, settled(fact(size=11, inode=inode)))
    assert new is not None
    assert (old.state, new.state) == (state, "settled")
    assert (all_of_them.void == ["run/a.ckpt"]) == (state == "writing")


def test_the_same_sizes_and_times_on_other_files_are_a_new_edition() -> None:
    """A save that was brought once more replaces what was sent of the first one."""
    all_of_them = editions()
    old = taken(all_of_them, A)
    old.began = True
    new = taken(all_of_them, settled(fact(inode=99)))
    assert (old.state, new.save_id, new.number) == ("superseded", old.save_id, 2)


SUPERSEDES: list[tuple[str, Settled, Settled, bool]] = [
    ("saved later", save("run/a", 10), save("run/b", 20), True),
    ("saved earlier, seen later", save("run/a", 20), save("run/b", 10, changed_at=30.0), False),
    ("saved later, seen earlier", save("run/a", 10, changed_at=30.0), save("run/b", 20), False),
    ("a lower step", save("run/a", 10, step=500), save("run/b", 20, step=100), False),
    ("a higher step", save("run/a", 10, step=100), save("run/b", 20, step=500), True),
    ("it lay there at start", save("run/a", 10, found=True), save("run/b", 20), False),
    ("another series", save("x/a", 10, series="x"), save("run/b", 20), False),
]


@pytest.mark.parametrize(
    ("what", "first", "second", "gone"), SUPERSEDES, ids=[row[0] for row in SUPERSEDES]
)
def test_only_what_is_surely_older_gives_way(
    what: str, first: Settled, second: Settled, *, gone: bool
) -> None:
    """Of those that wait the newest goes first; where it is not sure which one is, both stay."""
    del what
    all_of_them = editions()
    old = take(all_of_them, first)
    take(all_of_them, second, LATER)
    assert old is not None
    assert (old.state == "superseded") == gone


def test_what_has_begun_is_finished() -> None:
    """When saves come faster than uploads, starting over would never finish any."""
    all_of_them = editions()
    old = taken(all_of_them, save("run/a", 10))
    old.began = True
    take(all_of_them, save("run/b", 20), LATER)
    assert old.state == "settled"


def test_everything_is_kept_where_that_is_wanted() -> None:
    """With ``keep-all`` nothing gives way to a newer one."""
    all_of_them = editions(backlog="keep-all")
    old = take(all_of_them, save("run/a", 10))
    take(all_of_them, save("run/b", 20), LATER)
    assert old is not None
    assert old.state == "settled"


# Numbers and rivals -----------------------------------------------------------------------------


def test_the_next_number_is_one_that_nobody_has() -> None:
    """Commits in the store and our own numbers are both counted."""
    all_of_them = editions()
    all_of_them.list_catalog((names.manifest_key("run/a.ckpt", 4),), Notebook())
    assert taken(all_of_them, A).number == 5
    assert all_of_them.next_number("run/a.ckpt") == 6
    assert all_of_them.next_number("run/b.ckpt") == 1


def test_a_number_is_never_used_again() -> None:
    """What was claimed and given up keeps its number."""
    all_of_them = editions()
    all_of_them.voided(taken(all_of_them, A), "changed", Notebook())
    assert taken(all_of_them, A).number == 2


def test_a_number_that_another_save_has_is_left() -> None:
    """The next one is taken, with nothing of the old one's progress."""
    all_of_them = editions()
    one = taken(all_of_them, A)
    one.claimed, one.looked = "doubt", True
    all_of_them.renumber(one, Notebook())
    assert (one.number, one.claimed, one.looked) == (2, "no", False)


def known(number: int, what: Settled = A) -> Recalled:
    """Return what the ledger knows of an edition on its way."""
    return Recalled(editions={what.listing.save_id(): EditionRow(what, number)})


def safe_row(number: int, what: Settled = A) -> Recalled:
    """Return what the ledger knows of a safe edition."""
    record = manifest(edition=number, save_id=what.listing.save_id())
    return Recalled(safe={"run/a.ckpt": SafeRow(record, what.listing)})


OTHER = settled(fact(size=11))
AGAIN = settled(fact(inode=99))

RIVALS: list[tuple[str, Recalled, tuple[int, ...], tuple[int, ...]]] = [
    ("nothing is committed", Recalled(), (), ()),
    ("the ledger is lost", Recalled(), (1, 3), (3, 1)),
    ("the ledger has our number", known(2), (1, 3), ()),
    ("our number is committed", known(3), (1, 3), (3,)),
    ("the ledger has other files", known(3, AGAIN), (1, 3), (3, 1)),
    ("another content is safe", safe_row(3, OTHER), (1, 3), ()),
    ("more was committed since", safe_row(1, OTHER), (1, 3), (3,)),
    ("the same save is safe, on other files", safe_row(3, AGAIN), (1, 3), (3,)),
]


@pytest.mark.parametrize(
    ("what", "recalled", "committed", "rivals"), RIVALS, ids=[row[0] for row in RIVALS]
)
def test_a_content_is_compared_with_what_it_may_be(
    what: str, recalled: Recalled, committed: tuple[int, ...], rivals: tuple[int, ...]
) -> None:
    """Nothing is sent that is in the store, and nothing is compared that the ledger knows."""
    del what
    all_of_them = editions(Recalled())
    all_of_them.recalled = recalled
    keys = tuple(names.manifest_key("run/a.ckpt", number) for number in committed)
    list_and_confirm(all_of_them, keys)
    edition = take(all_of_them, A)
    assert edition is not None
    assert edition.rivals == rivals


def test_a_content_that_settled_before_the_store_answered_is_compared_afterwards() -> None:
    """Whichever comes first, the catalogue or the checkpoint, the same is done."""
    all_of_them = Editions(Policy(), "me", safe_row(3))
    one = take(all_of_them, A)
    two = take(all_of_them, settled(fact("run/b", size=4), checkpoint="run/b"))
    assert one is not None
    assert two is not None
    keys = (names.manifest_key("run/a.ckpt", 3), names.manifest_key("run/b", 1))
    list_and_confirm(all_of_them, keys)
    assert (one.state, one.number, two.rivals) == ("safe", 3, (1,))


# Ends -------------------------------------------------------------------------------------------


def test_safe_is_what_has_its_manifest() -> None:
    """The ledger remembers it, its pins are let go, the eyes and the series are told."""
    all_of_them = editions()
    one = taken(all_of_them, A)
    notes = Notebook()
    all_of_them.became_safe(one, manifest(), notes)
    assert (one.state, all_of_them.open) == ("safe", {})
    assert notes.ledger == [memory.forget_edition(SAVE), memory.safe_row(manifest(), A.listing)]
    assert [errand.save_id for errand in all_of_them.unpins] == [SAVE]
    assert all_of_them.committed == [(manifest(), A.listing)]


def test_an_older_save_of_a_name_gives_way_to_a_safe_newer_one() -> None:
    """What would be safe for nothing is not sent on."""
    all_of_them = editions()
    old = taken(all_of_them, A)
    old.began = True
    new = taken(all_of_them, settled(fact(size=11, inode=99)), LATER)
    commit(all_of_them, new, 2)
    assert (old.state, new.state) == ("superseded", "safe")


def test_an_older_save_never_replaces_a_newer_one_as_safe() -> None:
    """Where all are kept they may be committed in any order."""
    all_of_them = editions(backlog="keep-all")
    old = taken(all_of_them, A)
    old.began = True
    new = taken(all_of_them, settled(fact(size=11, inode=99)), LATER)
    commit(all_of_them, new, 2)
    commit(all_of_them, old, 1)
    assert all_of_them.safe["run/a.ckpt"].manifest.edition == 2
    assert all_of_them.catalog.of("run/a.ckpt") == {1, 2}


def test_what_changed_under_us_is_looked_at_again() -> None:
    """The eyes are told, and what was begun in the store is dropped."""
    all_of_them = editions()
    one = taken(all_of_them, settled(fact(size=40)))
    one.claimed = "yes"
    all_of_them.lay_out(one, scene(), {})
    one.files["run/a.ckpt"].begun = begun()
    all_of_them.voided(one, "it changed", Notebook())
    assert (all_of_them.void, one.state) == (["run/a.ckpt"], "writing")
    assert list(all_of_them.leftovers.garbage.values()) == [begun()]


@pytest.mark.parametrize(("pinned", "state"), [(False, "vanished"), (True, "settled")])
def test_a_removed_checkpoint_lives_on_if_it_is_pinned(*, pinned: bool, state: State) -> None:
    """The trainer's rotation takes nothing away from what was pinned in time."""
    all_of_them = editions()
    one = taken(all_of_them, A)
    one.pinned = pinned
    all_of_them.removed("run/a.ckpt", Notebook())
    assert one.state == state


def test_a_removed_checkpoint_is_forgotten_as_safe() -> None:
    """The ledger holds only what is on this disk."""
    all_of_them = editions()
    commit(all_of_them, taken(all_of_them, A))
    notes = Notebook()
    all_of_them.removed("run/a.ckpt", notes)
    assert (all_of_them.safe, notes.ledger) == ({}, [memory.forget_safe("run/a.ckpt")])


# Start ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("committed", [(), (2,), (3,)])
def test_the_ledger_is_believed_only_with_the_store(committed: tuple[int, ...]) -> None:
    """Safe is what the store has a manifest of, whatever the ledger says."""
    all_of_them = Editions(Policy(), "me", safe_row(3))
    notes = Notebook()
    keys = tuple(names.manifest_key("run/a.ckpt", number) for number in committed)
    list_and_confirm(all_of_them, keys, notes)
    assert ("run/a.ckpt" in all_of_them.safe) == (3 in committed)
    assert (notes.ledger == []) == (3 in committed)


NAME = "run/a.ckpt"
STORED = manifest(edition=3, save_id=SAVE)
RECOMMITTED = replace(STORED, committed_at=9.0, files=(stored(key="run/a.ckpt@3.salt"),))
OTHERS = replace(STORED, files=(stored(crc64nvme=7),))

READ: list[tuple[str, bytes | None, Manifest | None]] = [
    ("as the ledger has it", encode(STORED), STORED),
    ("nothing", None, None),
    ("rubbish", b"\0", None),
    ("the same content again", encode(RECOMMITTED), RECOMMITTED),
    ("another content", encode(OTHERS), None),
]


@pytest.mark.parametrize(("what", "data", "safe"), READ, ids=[row[0] for row in READ])
def test_a_number_in_the_store_is_not_yet_our_commit(
    what: str, data: bytes | None, safe: Manifest | None
) -> None:
    """Whoever emptied the bucket and used the number again did not make our content safe."""
    del what
    all_of_them = Editions(Policy(), "me", safe_row(3))
    edition = take(all_of_them, A)
    all_of_them.list_catalog((names.manifest_key(NAME, 3),), Notebook())
    assert (all_of_them.safe, all_of_them.catalog.is_known) == ({}, False)
    notes = Notebook()
    all_of_them.confirm_safe(NAME, data, notes)
    row = all_of_them.safe.get(NAME)
    assert edition is not None
    assert all_of_them.catalog.is_known
    assert (row and row.manifest, edition.state) == (safe, "safe" if safe else "settled")
    assert (memory.forget_safe(NAME) in notes.ledger) == (safe is None)


def test_a_former_daemons_pins_are_gone_on_with_or_let_go() -> None:
    """A checkpoint that was pinned and removed since is finished; other pins are dropped."""
    all_of_them = Editions(Policy(), "me", known(2))
    all_of_them.revive((SAVE, "unknown"), NOW, Notebook())
    assert [edition.save_id for edition in all_of_them.open.values()] == [SAVE]
    assert [errand.save_id for errand in all_of_them.unpins] == ["unknown"]


def test_a_former_daemons_number_is_gone_on_with() -> None:
    """It may have claimed it, so the claim is read first."""
    one = taken(editions(known(4)), A)
    assert (one.number, one.claimed) == (4, "doubt")


def test_other_files_of_the_same_sizes_and_times_are_begun_afresh() -> None:
    """Nothing that was stored of the old files is taken for the new ones."""
    before = known(4, AGAIN)
    before.editions[SAVE].uploads["run/a.ckpt"] = begun()
    all_of_them = editions(before)
    one = take(all_of_them, A)
    assert one is not None
    notes = Notebook()
    all_of_them.number(one, notes)
    assert (one.number, one.claimed) == (1, "no")
    assert notes.ledger[0] == memory.forget_edition(SAVE)
    assert isinstance(notes.ledger[-1], Remember)
    assert list(all_of_them.leftovers.garbage.values()) == [begun()]


def test_a_claim_that_is_gone_makes_the_ledger_doubtful() -> None:
    """The claim comes before every object: without it nothing is believed to be stored."""
    before = known(4)
    before.editions[SAVE].objects["run/a.ckpt"] = manifest().files[0]
    all_of_them = editions(before)
    one = taken(all_of_them, A)
    notes = Notebook()
    all_of_them.unclaimed(one, notes)
    assert (before.editions[SAVE].objects, notes.ledger) == ({}, [memory.forget_objects(SAVE)])


@pytest.mark.parametrize("awaited", [False, True])
def test_what_is_not_on_the_disk_any_more_is_dropped(*, awaited: bool) -> None:
    """What a former daemon had begun is kept only while its checkpoint may still settle."""
    before = known(4)
    before.editions[SAVE].uploads["run/a.ckpt"] = begun()
    before.editions[SAVE].intents["run/b.ckpt"] = ("key", "me.2")
    all_of_them = editions(before)
    all_of_them.drop_recalled({"run/a.ckpt"} if awaited else set(), Notebook())
    assert (SAVE in before.editions) == awaited
    assert bool(all_of_them.leftovers.garbage) != awaited
    assert bool(all_of_them.leftovers.strays) != awaited


def test_a_changed_listing_is_another_save() -> None:
    """The name of a save depends on sizes and times, not on where the files lie."""
    assert replace(A, listing=AGAIN.listing).listing.save_id() == SAVE
    assert OTHER.listing.save_id() != SAVE
