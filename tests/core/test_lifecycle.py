"""The table of moves: every state with every state."""

from __future__ import annotations

from itertools import product

import pytest

from ckptsyncd.core.lifecycle import (
    DAEMON_MEANING,
    DAEMON_MOVES,
    MEANING,
    MOVES,
    DaemonState,
    State,
    checked_daemon_move,
    checked_move,
)


@pytest.mark.parametrize(("old", "new"), list(product(MOVES, MOVES)))
def test_an_edition_moves_by_the_table_alone(old: State, new: State) -> None:
    """A move that is not in the table raises and names both states; staying is always allowed."""
    if old == new or new in MOVES[old]:
        assert checked_move(old, new) == new
    else:
        with pytest.raises(AssertionError, match=f"from {old} to {new}"):
            checked_move(old, new)


@pytest.mark.parametrize(("old", "new"), list(product(DAEMON_MOVES, DAEMON_MOVES)))
def test_the_daemon_moves_by_the_table_alone(old: DaemonState, new: DaemonState) -> None:
    """As for editions."""
    if old == new or new in DAEMON_MOVES[old]:
        assert checked_daemon_move(old, new) == new
    else:
        with pytest.raises(AssertionError, match=f"from {old} to {new}"):
            checked_daemon_move(old, new)


def test_only_finished_work_leads_to_safe() -> None:
    """Nothing that was given up becomes safe without being taken up again."""
    assert {old for old in MOVES if "safe" in MOVES[old]} == {
        "writing",
        "settled",
        "uploading",
        "sealing",
    }


def test_every_state_can_be_left_and_has_a_meaning() -> None:
    """No edition is stuck for ever, and every state has words for people."""
    assert all(MOVES.values())
    assert MEANING.keys() == MOVES.keys()
    assert DAEMON_MEANING.keys() == DAEMON_MOVES.keys()


def test_a_fenced_daemon_only_stops() -> None:
    """A daemon that was replaced never goes back to work by itself."""
    assert DAEMON_MOVES["fenced"] == {"stopped"}
