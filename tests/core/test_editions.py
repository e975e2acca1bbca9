"""All editions of all names: what is new, what gives way, and what becomes safe."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ckptsyncd.core.lifecycle import State
from ckptsyncd.core.records import memory, names
from ckptsyncd.core.records.memory import Recalled
from ckptsyncd.core.rules.policy import Policy
from ckptsyncd.core.sending.editions import Editions
from ckptsyncd.core.sightings import Settled
from ckptsyncd.core.turn import Notebook
from tests.core.parts import begun, fact, manifest, scene, settled
from tests.core.settling import (
    LATER,
    SAVE,
    A,
    commit,
    editions,
    known,
    list_and_confirm,
    safe_row,
    save,
    take,
    taken,
)

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


def test_a_changed_listing_is_another_save() -> None:
    """The name of a save depends on sizes and times, not on where the files lie."""
    assert replace(A, listing=AGAIN.listing).listing.save_id() == SAVE
    assert OTHER.listing.save_id() != SAVE


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
