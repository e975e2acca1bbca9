"""Thousands of small files: several answers in one turn, and no turn that looks at what is out."""

from __future__ import annotations

from ckptsyncd.core.messages import Failed, ObjectStored
from ckptsyncd.core.orders import HandOrder, PutWhole
from ckptsyncd.core.rules.policy import Policy
from ckptsyncd.core.sending.crew import FIRST_HANDS
from ckptsyncd.core.sending.edition import Edition
from ckptsyncd.core.sending.upload import missing
from tests.simulation.link import Night

FILES = 40


def under_way() -> tuple[Night, Edition]:
    """Return a night in which hands have the first of many small files, and the edition."""
    night = Night(policy=Policy(companions=False, hands=FIRST_HANDS), latency=0.5)
    for number in range(FILES):
        night.save(f"run/step-1/{number:03}.bin", 1000)
    while not any(sent(night)):
        night.run(night.now + 0.1)
    (edition,) = night.brain.editions.open.values()
    return night, edition


def sent(night: Night) -> list[PutWhole]:
    """Return the files that hands have."""
    orders = [out.order for out in night.brain.under_way.values()]
    return [order for order in orders if isinstance(order, PutWhole)]


def wished(night: Night, edition: Edition) -> list[str]:
    """Return the files that are still to be sent, in their order."""
    scene = night.brain.wishes.scene(edition, night.instant())
    return [order.errand.path for order in missing(edition, scene)]


def stored(night: Night, order: HandOrder) -> ObjectStored:
    """Return the store's good answer."""
    answer = night.store.answer(order, 0.5)
    assert isinstance(answer, ObjectStored)
    return answer


def test_what_is_out_is_wished_for_last() -> None:
    """A turn meets the files that no hand has first: those that go out whole stand at the end."""
    night, edition = under_way()
    out = [order.errand.path for order in sent(night)]
    assert len(out) == FIRST_HANDS
    assert wished(night, edition)[-FIRST_HANDS:] == out
    assert sorted(wished(night, edition)) == sorted(edition.files)


def test_several_answers_are_taken_in_before_anything_is_ordered() -> None:
    """Each is remembered at once, good or bad; the last brings orders for all hands that waited."""
    night, edition = under_way()
    brain, now = night.brain, night.instant()
    first, second, third, fourth = sent(night)
    turn = brain.handle(stored(night, first), now, more=True)
    assert [type(order).__name__ for order in turn.orders] == ["Remember"]
    refused = Failed(second.errand, "again", "the connection broke")
    assert brain.handle(refused, now, more=True).orders == ()
    assert brain.handle(stored(night, third), now, more=True).orders
    assert brain.outstanding.busy == 1
    last = brain.handle(stored(night, fourth), now)
    given = [order for order in last.orders if isinstance(order, HandOrder)]
    assert len(given) == brain.outstanding.busy == FIRST_HANDS
    assert {first.errand.path, third.errand.path, fourth.errand.path} <= edition.stored.keys()
    assert second.errand.path in edition.files


def test_hands_that_answered_in_one_turn_count_as_busy_ones() -> None:
    """What was measured while every hand had work is believed, however many answers come."""
    night, _ = under_way()
    night.run(night.now + 0.4)
    crew = night.brain.outstanding.crew
    for order in sent(night):
        night.brain.handle(stored(night, order), night.instant(), more=True)
    assert crew.tried_from or crew.rest_until > night.now


def test_every_small_file_is_sent_once_and_all_are_committed() -> None:
    """The manifest comes when all are there, and no file was put into the store twice."""
    night, _ = under_way()
    night.run(night.now + 60.0)
    assert list(night.committed) == ["run/step-1"]
    assert night.brain.pieces_stored == FILES
