"""A disk or a store that hangs raises no error: that no answer comes is noticed all the same."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from ckptsyncd.core.facts import Listing, Piece
from ckptsyncd.core.moves import Complained, Recovered
from ckptsyncd.core.orders import Errand, GetSmall, HandOrder, Look, PutWhole, Scan, ScannerOrder
from ckptsyncd.core.sending.outstanding import Out
from ckptsyncd.core.sending.silence import (
    HASTY_SECONDS,
    REPEAT_SECONDS,
    SILENT_SECONDS,
    UNKNOWN_SECONDS,
    Silence,
)
from ckptsyncd.core.turn import Notebook

LOOK = Look(Errand("look", "a.pt"), ("a.pt",), frozenset({"a.pt"}))
LISTING = Scan(Errand("scan", index=1), "")
ASK = GetSmall(Errand("claim", "a.pt"), "key")


@dataclass
class Room:
    """A silence under a clock, with a turn every five seconds, and what was said."""

    silence: Silence = field(default_factory=Silence)
    now: float = 1000.0
    outs: list[Out] = field(default_factory=list)
    notes: Notebook = field(default_factory=Notebook)
    hand: float = 0.0

    def turn(self, *, hasty: bool = False) -> None:
        """Listen."""
        self.silence.listen(self.outs, lambda: self.hand, self.now, self.notes, hasty=hasty)

    def wait(self, seconds: float, *, hasty: bool = False) -> None:
        """Let so much time pass, in turns."""
        end = self.now + seconds
        while self.now < end:
            self.now = min(self.now + 5.0, end)
            self.turn(hasty=hasty)

    def give(self, order: HandOrder | ScannerOrder) -> None:
        """Give an order."""
        self.outs.append(Out(order, self.now))
        self.turn()

    def answer(self) -> None:
        """Have the oldest order answered."""
        self.outs.pop(0)
        self.turn()


def test_a_disk_that_does_not_answer_is_told_and_so_is_its_answer() -> None:
    """After a minute it is said what is waited for, again each minute, and when it is over."""
    room = Room()
    room.give(LOOK)
    room.wait(SILENT_SECONDS)
    assert not room.notes.moves
    room.wait(5.0)
    assert (
        room.silence.disk.text == "the watch root's disk has not answered 'look a.pt' for 1 min 5 s"
    )
    room.wait(REPEAT_SECONDS)
    assert [type(move) for move in room.notes.moves] == [Complained, Complained]
    assert room.silence.store.text == ""
    room.answer()
    assert room.silence.disk.text == ""
    assert room.notes.moves[-1] == Recovered("disk silent", 1)


def test_orders_that_wait_for_each_other_are_not_silent() -> None:
    """The scanner does one after the other: each has the whole time from when it is its turn."""
    room = Room()
    for number in range(4):
        room.give(Look(Errand("look", f"{number}.pt"), (f"{number}.pt",), frozenset()))
    for _ in range(4):
        room.wait(SILENT_SECONDS - 5.0)
        room.answer()
    assert not room.notes.moves


def test_a_listing_may_take_ten_times_as_long_as_the_last_one() -> None:
    """Nobody knows how large a tree is at first; later it is known, and a slow disk is forgiven."""
    room = Room()
    room.give(LISTING)
    room.wait(UNKNOWN_SECONDS - 1.0)
    room.answer()
    assert not room.notes.moves
    room.give(LISTING)
    room.wait(20.0)
    room.answer()
    room.give(LISTING)
    room.wait(200.0)
    assert room.silence.disk.text == ""
    room.wait(5.0)
    assert "'scan'" in room.silence.disk.text


def test_before_the_end_a_disk_has_seconds_to_answer() -> None:
    """Who stops is told that the disk hangs, and not that all is safe there."""
    room = Room()
    room.give(LOOK)
    room.wait(HASTY_SECONDS + 1.0, hasty=True)
    assert room.silence.disk.text


def test_who_slept_himself_blames_nobody() -> None:
    """After the program itself was stopped for an hour the answers may be in its inbox."""
    room = Room()
    room.give(LOOK)
    room.give(ASK)
    room.now += 3600.0
    room.turn()
    assert not room.notes.moves
    room.wait(SILENT_SECONDS + 5.0)
    assert room.silence.disk.text
    assert room.silence.store.text


@pytest.mark.parametrize(
    ("hand", "patience"), [(0.0, 16 * 2**20 / 65536), (2**20, 160.0), (2**30, SILENT_SECONDS)]
)
def test_a_transfer_may_take_its_time(hand: float, patience: float) -> None:
    """A piece on a slow link is slow and not silent: ten times as long as at the measured speed."""
    room = Room(hand=hand)
    piece = Piece(0, 0, 16 * 2**20)
    room.give(PutWhole(Errand("whole", "a.pt"), "a.pt", "pin", Listing(()), piece, "n", True))
    room.wait(patience - 1.0)
    assert room.silence.store.text == ""
    room.wait(6.0)
    assert room.silence.store.text.startswith("the store has not answered 'whole a.pt' for")
