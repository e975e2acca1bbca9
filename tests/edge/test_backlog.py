"""A flood of hints does not hold up what else is to be heard, and loses nothing."""

from __future__ import annotations

from contextlib import suppress
from queue import Empty, SimpleQueue

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckptsyncd.core.messages import Message, Overflowed, RootLost, Touched
from ckptsyncd.edge.backlog import MOST_HINTS, Backlog


def filled(*messages: Message) -> list[Message]:
    """Return what the loop hears of these messages."""
    inbox: SimpleQueue[Message] = SimpleQueue()
    for message in messages:
        inbox.put(message)
    backlog, heard = Backlog(inbox), []
    with suppress(Empty):
        while True:
            heard.append(backlog.next(0.0))
    return heard


A, B = Touched("a"), Touched("b", gone=True)
REPORT = RootLost(present=True)


@pytest.mark.parametrize(
    ("put", "heard"),
    [
        ([A, B], [A, B]),
        ([A, B, A], [B, A]),
        ([A, A, A, REPORT, A], [A, REPORT, A]),
        ([REPORT, A, REPORT, REPORT], [REPORT, A, REPORT, REPORT]),
        ([], []),
    ],
)
def test_a_hint_is_heard_where_it_came_last(put: list[Message], heard: list[Message]) -> None:
    """The same hint counts once between two reports, at its last place; reports all count."""
    assert filled(*put) == heard


@given(st.lists(st.sampled_from([A, B, Touched("c"), REPORT]), max_size=40))
def test_nothing_that_was_put_is_lost(put: list[Message]) -> None:
    """Between any two reports the same hints are heard as were put, and the last stays last."""
    heard = filled(*put)
    assert [m for m in heard if m == REPORT] == [m for m in put if m == REPORT]
    for before, after in zip(parts(put), parts(heard), strict=True):
        assert set(before) == set(after)
        assert before[-1:] == after[-1:]


def parts(messages: list[Message]) -> list[list[Message]]:
    """Cut a list at its reports."""
    found: list[list[Message]] = [[]]
    for message in messages:
        if message == REPORT:
            found.append([])
        else:
            found[-1].append(message)
    return found


def test_too_many_hints_become_one_listing() -> None:
    """Beyond a bound hints stand for a listing of everything; reports stay in their order."""
    hints = [Touched(str(number)) for number in range(MOST_HINTS)]
    assert filled(A, REPORT, *hints) == [REPORT, Overflowed()]
    assert filled(REPORT, *hints) == [REPORT, *hints]


def test_nothing_to_hear_is_waited_for_only_so_long() -> None:
    """An empty inbox is Empty after the wait, also after something was heard."""
    inbox: SimpleQueue[Message] = SimpleQueue()
    backlog = Backlog(inbox)
    inbox.put(A)
    assert backlog.next(0.0) == A
    with pytest.raises(Empty):
        backlog.next(0.01)
