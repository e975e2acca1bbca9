"""When old checkpoints may go: never in haste, not beside uploads, not too often, one at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ckptsyncd.core.messages import PruneEnded
from ckptsyncd.core.orders import HoldPrune, Prune
from ckptsyncd.core.rules.policy import Policy
from ckptsyncd.core.rules.retention import Retention
from ckptsyncd.core.tidying.pruning import (
    AGAIN_SECONDS,
    PATIENCE_SECONDS,
    REAP_SECONDS,
    Leisure,
    Pruning,
)
from ckptsyncd.core.turn import Notebook

IDLE = Leisure(may=True, is_busy=False)
BUSY = Leisure(may=True, is_busy=True)
URGENT = Leisure(may=False, is_busy=False)
RULES = Policy(retention=Retention(keep_last=3), prune_interval=600.0, prune_grace=3600.0)


def orders(pruning: Pruning, now: float, leisure: Leisure = IDLE) -> list[Prune | HoldPrune]:
    """Return what is ordered at a moment (boot seconds)."""
    return list(pruning.orders(now, leisure))


def run(pruning: Pruning, now: float, **outcome: Any) -> None:
    """Let a prune begin and end at once."""
    (order,) = orders(pruning, now)
    assert isinstance(order, Prune)
    ended = replace(PruneEnded(order.number), **outcome)
    pruning.ended(ended, now, 5000.0 + now, Notebook())


@pytest.mark.parametrize(
    "policy",
    [Policy(), replace(RULES, retention=Retention(pinned=("best",))), replace(RULES, node=1)],
    ids=["no rule is said", "pins alone are no rule", "another machine does it"],
)
def test_nothing_is_pruned_unless_asked_for(policy: Policy) -> None:
    """It is off by default, and of several machines the first one does it."""
    pruning = Pruning(policy)
    pruning.committed(10.0)
    assert orders(pruning, 10.0) == []
    assert pruning.next_alarm(10.0) == float("inf")


def test_a_commit_asks_for_one_and_the_interval_holds_it_back() -> None:
    """After one has ended the next begins with a later commit, the interval apart."""
    pruning = Pruning(RULES)
    run(pruning, 100.0)
    pruning.committed(200.0)
    assert orders(pruning, 699.0) == []
    assert pruning.next_alarm(200.0) == 700.0
    assert len(orders(pruning, 700.0)) == 1


def test_a_commit_while_one_runs_is_not_forgotten() -> None:
    """What is committed meanwhile may let more go, so it is looked at again."""
    pruning = Pruning(RULES)
    (order,) = orders(pruning, 100.0)
    assert isinstance(order, Prune)
    pruning.committed(101.0)
    pruning.ended(PruneEnded(order.number), 102.0, 0.0, Notebook())
    assert pruning.next_alarm(102.0) == 702.0


def test_data_is_removed_after_its_grace_without_a_commit() -> None:
    """Where data waits for its time, the next run is due when that has come."""
    pruning = Pruning(RULES)
    run(pruning, 100.0, pruned=1, waiting=True)
    assert orders(pruning, 3699.0) == []
    assert len(orders(pruning, 3700.0)) == 1


def test_the_dead_are_looked_for_again_once_an_epoch_was_taken() -> None:
    """A new machine's first look comes too early; the next follows soon, then one a day."""
    pruning = Pruning(replace(RULES, retention=Retention(), reap=True))
    run(pruning, 0.0)
    assert pruning.next_alarm(0.0) == 600.0
    run(pruning, 600.0)
    assert pruning.next_alarm(600.0) == 600.0 + REAP_SECONDS


def test_uploads_go_first_for_a_while() -> None:
    """While something is on its way none begins, until old checkpoints have waited an hour."""
    pruning = Pruning(RULES)
    run(pruning, 0.0)
    pruning.committed(1000.0)
    assert orders(pruning, 1000.0, BUSY) == []
    assert pruning.next_alarm(1000.0) == 1000.0 + PATIENCE_SECONDS
    assert len(orders(pruning, 1000.0 + PATIENCE_SECONDS, BUSY)) == 1
    assert orders(pruning, 1001.0 + PATIENCE_SECONDS, BUSY) == []
    assert orders(pruning, 1002.0 + PATIENCE_SECONDS, URGENT) == [HoldPrune()]


@pytest.mark.parametrize("leisure", [URGENT, BUSY], ids=["a drain", "an upload"])
def test_one_that_runs_gives_way_once(leisure: Leisure) -> None:
    """It is told to end before its next removal, and is begun again a little later."""
    pruning = Pruning(RULES)
    run(pruning, 0.0)
    pruning.committed(1000.0)
    (order,) = orders(pruning, 1000.0)
    assert isinstance(order, Prune)
    assert orders(pruning, 1001.0, leisure) == [HoldPrune()]
    assert orders(pruning, 1002.0, leisure) == []
    pruning.ended(PruneEnded(order.number, interrupted=True), 1003.0, 0.0, Notebook())
    assert orders(pruning, 1003.0 + AGAIN_SECONDS - 1.0) == []
    assert len(orders(pruning, 1003.0 + AGAIN_SECONDS)) == 1


def test_never_while_draining() -> None:
    """However long old checkpoints have waited, nothing goes while time is short."""
    pruning = Pruning(RULES)
    assert orders(pruning, 10 * PATIENCE_SECONDS, URGENT) == []


def test_a_failure_is_told_once_and_tried_again_after_the_interval() -> None:
    """A store that refuses removals is asked again, and not every turn."""
    pruning, notes = Pruning(RULES), Notebook()
    for now in (0.0, 600.0):
        (order,) = orders(pruning, now)
        assert isinstance(order, Prune)
        pruning.ended(PruneEnded(order.number, error="access denied"), now, 0.0, notes)
        assert orders(pruning, now + 599.0) == []
    assert pruning.failing == "access denied"
    assert len(notes.moves) == 1
    assert pruning.ended_wall is None


def test_an_answer_of_an_earlier_life_changes_nothing() -> None:
    """Only the prune that is under way can end."""
    pruning = Pruning(RULES)
    run(pruning, 0.0)
    pruning.ended(PruneEnded(7, pruned=5), 1.0, 1.0, Notebook())
    assert pruning.pruned == 0
