"""Which pins are let go of where the trainer's disk becomes too full."""

from __future__ import annotations

import pytest

from ckptsyncd.core.facts import Instant, Receipt
from ckptsyncd.core.messages import PinsWeighed
from ckptsyncd.core.moves import Moved
from ckptsyncd.core.records.memory import Recalled
from ckptsyncd.core.rules.policy import Policy
from ckptsyncd.core.rules.room import Room
from ckptsyncd.core.sending.crowding import Crowding, excess, too_much
from ckptsyncd.core.sending.edition import Edition, FileProgress
from ckptsyncd.core.sending.editions import Editions
from ckptsyncd.core.turn import Notebook
from tests.core.parts import NOW, fact, settled

GIB = 2**30


def weighed(free: int = 100, floor: int = 50, most: int = 1000, **pins: int) -> PinsWeighed:
    """Return what was found: enough room, unless said otherwise."""
    return PinsWeighed(tuple(pins.items()), free, floor, most)


@pytest.fixture
def editions() -> Editions:
    """Return the editions of a daemon that keeps every save."""
    made = Editions(Policy(backlog="keep-all"), "me", Recalled())
    made.list_catalog((), Notebook())
    return made


@pytest.fixture
def crowding(editions: Editions) -> Crowding:
    """Return what lets go of pins, the lowest step first."""
    return Crowding(editions, lambda edition: edition.rank(0, 0))


def pinned(editions: Editions, step: int, *, copy: bool = False, stored: int = 0) -> Edition:
    """Return a pinned edition of 100 bytes, some of them stored already."""
    path = f"step_{step}.pt"
    what = settled(fact(path, 100, inode=step), checkpoint=path, step=step, copy=copy)
    editions.take(what, Instant(NOW.boot + step, NOW.wall + step), Notebook())
    edition = editions.open[path, what.listing.save_id()]
    edition.pinned, edition.began = True, bool(stored)
    if stored:
        waiting = FileProgress(what.listing.files[0], path)
        waiting.receipts[0] = Receipt(0, stored, 1)
        edition.files[path] = waiting
    return edition


def heard(crowding: Crowding, message: PinsWeighed) -> list[tuple[str, str, str]]:
    """Return the moves that follow: checkpoint, state, reason."""
    notes = Notebook()
    crowding.hear(message, notes)
    moves = [move for move in notes.moves if isinstance(move, Moved)]
    return [(move.checkpoint, move.new, move.reason) for move in moves]


def test_enough_room_is_no_news(editions: Editions, crowding: Crowding) -> None:
    """While there is room, nothing is let go of and nobody is warned."""
    edition = pinned(editions, 1)
    assert heard(crowding, weighed(**{edition.save_id: 900})) == []
    assert crowding.warning == ""


def test_as_many_as_it_takes(editions: Editions, crowding: Crowding) -> None:
    """Below the floor the oldest go, only as many as it takes, and the reason names the setting."""
    saves = [pinned(editions, step) for step in (1, 2, 3)]
    held = {edition.save_id: 40 for edition in saves}
    moves = heard(crowding, weighed(free=0, floor=50, **held))
    assert [(name, state) for name, state, _ in moves] == [
        ("step_1.pt", "vanished"),
        ("step_2.pt", "vanished"),
    ]
    assert "pins_floor_bytes (50 B)" in moves[0][2]
    assert "pins_floor_bytes" in crowding.warning
    assert [edition.checkpoint for edition in editions.aside] == ["step_1.pt", "step_2.pt"]


def test_more_than_is_allowed(editions: Editions, crowding: Crowding) -> None:
    """Above the cap one goes, and the reason names that setting."""
    saves = [pinned(editions, step) for step in (1, 2)]
    moves = heard(crowding, weighed(most=50, **{edition.save_id: 40 for edition in saves}))
    assert [name for name, _, _ in moves] == ["step_1.pt"]
    assert "pins_most_bytes (50 B)" in moves[0][2]


def test_what_costs_nothing_stays(editions: Editions, crowding: Crowding) -> None:
    """What the trainer still has takes no space, so letting go of it would be in vain."""
    pinned(editions, 1)
    removed = pinned(editions, 2)
    moves = heard(crowding, weighed(free=0, **{removed.save_id: 10}))
    assert [name for name, _, _ in moves] == ["step_2.pt"]


def test_what_is_on_its_way_goes_last(editions: Editions, crowding: Crowding) -> None:
    """The one of which most is stored is given up last, however old it is."""
    half, some, waiting = (pinned(editions, n, stored=s) for n, s in ((1, 50), (2, 10), (3, 0)))
    held = {edition.save_id: 100 for edition in (half, some, waiting)}
    moves = heard(crowding, weighed(free=0, floor=10**6, **held))
    assert [name for name, _, _ in moves] == ["step_3.pt", "step_2.pt", "step_1.pt"]


def test_a_copy_is_made_again_later(editions: Editions, crowding: Crowding) -> None:
    """A copy whose original is still there is taken back to the eyes, which look again."""
    edition = pinned(editions, 1, copy=True)
    moves = heard(crowding, weighed(free=0, **{edition.save_id: 100}))
    assert [(name, state) for name, state, _ in moves] == [("step_1.pt", "writing")]
    assert [name for name, _ in editions.refused] == ["step_1.pt"]


def test_what_is_being_let_go_of_counts(editions: Editions, crowding: Crowding) -> None:
    """What nobody needs any more is as good as gone: nothing else goes for it."""
    edition = pinned(editions, 1)
    assert heard(crowding, weighed(free=0, **{edition.save_id: 100, "ended": 60})) == []
    assert crowding.warning


def test_room_again(crowding: Crowding) -> None:
    """The warning ends with the want of room."""
    heard(crowding, weighed(free=0))
    assert crowding.warning
    heard(crowding, weighed())
    assert crowding.warning == ""


def test_what_is_too_much() -> None:
    """The floor and the cap are each asked for, and the larger want counts."""
    assert (excess(weighed()), too_much(weighed())) == (0, "")
    assert excess(weighed(free=10, floor=50, most=5, a=100)) == 95
    assert excess(weighed(free=10, floor=500, most=5, a=100)) == 490


def test_defaults_follow_the_disk() -> None:
    """A twentieth stays free, 10 GiB at most; pins hold half; what a user says holds exactly."""
    assert Room().floor(100 * GIB) == 5 * GIB
    assert Room().floor(10_000 * GIB) == 10 * GIB
    assert Room().most(100 * GIB) == 50 * GIB
    assert (Room(7, 9).floor(GIB), Room(7, 9).most(GIB)) == (7, 9)
