"""Orders that are given twice: whose answer counts, and what the other one still does."""

from __future__ import annotations

from ckptsyncd.core.facts import Receipt
from ckptsyncd.core.messages import Failed, PieceStored, RecordPut
from ckptsyncd.core.orders import Errand, GetSmall, HandOrder
from ckptsyncd.core.rules.policy import Policy
from ckptsyncd.core.sending.outstanding import MOST_COPIES, Out, Outstanding, original

ERRAND = Errand("claim", "run/a", "save", index=1)


def outstanding() -> Outstanding:
    """Return nothing that is out; no jitter."""
    return Outstanding(Policy(), lambda: 0.5)


def give(made: Outstanding, now: float = 0.0) -> HandOrder:
    """Give the order."""
    return made.give(GetSmall(ERRAND, "key"), now)


def again(made: Outstanding, now: float = 0.0) -> HandOrder:
    """Give a copy of what is out."""
    (copy,) = made.again([next(made.with_hands())])
    return made.give(copy, now)


def done(order: HandOrder) -> RecordPut:
    """Return a good answer."""
    return RecordPut(order.errand, "v")


def test_the_first_good_answer_counts_and_the_other_frees_its_hand() -> None:
    """Either attempt may be first; the late one changes nothing, and until it comes is busy."""
    for which in (0, 1):
        made = outstanding()
        attempts = [give(made), again(made)]
        assert made.busy == 2
        assert not made.is_free(ERRAND, 1.0)
        found = made.ended(done(attempts[which]))
        assert isinstance(found, Out)
        assert found.order == attempts[which]
        assert made.is_free(ERRAND, 1.0)
        assert made.busy == 1
        assert made.ended(done(attempts[1 - which])) is None
        assert made.busy == 0
        assert not made.attempts


def test_a_new_order_is_never_taken_for_a_late_one() -> None:
    """While a void attempt is out, the next order of the same errand has another number."""
    made = outstanding()
    late, copy = give(made), again(made)
    made.ended(done(copy))
    new = give(made)
    assert new.errand != late.errand
    assert made.ended(done(late)) is None
    assert not made.is_free(ERRAND, 1.0)
    assert made.ended(done(new)) is not None


def test_a_failure_that_may_pass_is_not_the_last_word() -> None:
    """While another attempt is out it only frees its hand; any other failure settles the matter."""
    made = outstanding()
    one, two = give(made), again(made)
    assert made.ended(Failed(two.errand, "again", "timed out", ambiguous=True)) is None
    assert not made.is_free(ERRAND, 1.0)
    three = again(made)
    assert made.ended(Failed(three.errand, "lost", "taken")) is not None
    assert made.is_free(ERRAND, 1.0)
    assert made.ended(done(one)) is None


def test_an_order_is_out_so_often_and_no_more() -> None:
    """A stuck order is copied up to a bound."""
    made = outstanding()
    give(made)
    for _ in range(MOST_COPIES):
        again(made)
    assert not list(made.again([next(made.with_hands())]))


def test_an_answer_speaks_of_the_errand_whatever_its_attempt() -> None:
    """What is kept by errands is found by the answer of any attempt."""
    made = outstanding()
    give(made)
    copy = again(made)
    assert copy.errand != ERRAND
    stored = PieceStored(copy.errand, Receipt(0, 1, 0), 1.0)
    assert original(stored).errand == ERRAND
