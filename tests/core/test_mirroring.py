"""When the second destination is served: after a commit, never in haste, one run at a time."""

from __future__ import annotations

from ckptsyncd.core.messages import MirrorEnded
from ckptsyncd.core.orders import HoldMirror, Mirror
from ckptsyncd.core.rules.policy import Policy
from ckptsyncd.core.tidying.mirroring import AGAIN_SECONDS, LATER_SECONDS, Mirroring
from ckptsyncd.core.tidying.pruning import PATIENCE_SECONDS, Leisure
from ckptsyncd.core.turn import Notebook

IDLE = Leisure(may=True, is_busy=False)
BUSY = Leisure(may=True, is_busy=True)
URGENT = Leisure(may=False, is_busy=False)
RULES = Policy(has_also=True)


def orders(one: Mirroring, now: float, leisure: Leisure = IDLE) -> list[Mirror | HoldMirror]:
    """Return what is ordered at a moment (boot seconds)."""
    return list(one.orders(now, leisure))


def served() -> Mirroring:
    """Return one whose second destination has everything since 0."""
    one = Mirroring(RULES)
    assert orders(one, 0.0) == [Mirror(1)]
    one.ended(MirrorEnded(1, copied=2), 0.0, Notebook())
    return one


def behind(one: Mirroring) -> int | None:
    """Return how many checkpoints the second destination is known to lack."""
    return one.behind


def test_without_a_second_destination_nothing_happens() -> None:
    """It is off by default."""
    one = Mirroring(Policy())
    one.committed(1.0)
    assert orders(one, 1.0) == []
    assert one.next_alarm(1.0) == float("inf")


def test_each_commit_comes_over() -> None:
    """What is safe in the first is copied at once when nothing else waits, or looked for later."""
    one = served()
    assert behind(one) == 0
    assert orders(one, LATER_SECONDS - 1.0) == []
    assert one.next_alarm(1.0) == LATER_SECONDS
    one.committed(10.0)
    assert behind(one) is None
    assert orders(one, 10.0) == [Mirror(2)]


def test_a_commit_while_it_runs_is_not_forgotten() -> None:
    """It is copied by the next run, which follows at once."""
    one = served()
    one.committed(10.0)
    assert orders(one, 10.0) == [Mirror(2)]
    one.committed(11.0)
    one.ended(MirrorEnded(2, copied=1), 12.0, Notebook())
    assert behind(one) is None
    assert orders(one, 12.0) == [Mirror(3)]


def test_uploads_and_drains_go_first() -> None:
    """It gives way to both; to uploads that never end only for so long."""
    one = served()
    one.committed(10.0)
    assert orders(one, 10.0, URGENT) == orders(one, 10.0, BUSY) == []
    assert orders(one, 10.0 + PATIENCE_SECONDS, BUSY) == [Mirror(2)]
    assert orders(one, 11.0 + PATIENCE_SECONDS, BUSY) == []
    assert orders(one, 12.0 + PATIENCE_SECONDS, URGENT) == [HoldMirror()]
    assert orders(one, 13.0 + PATIENCE_SECONDS, URGENT) == []


def test_a_failure_rests_and_is_told_once() -> None:
    """A second destination that is down is asked again after a while, however much is committed."""
    one, notes = served(), Notebook()
    one.committed(10.0)
    for number, now in ((2, 10.0), (3, 10.0 + AGAIN_SECONDS)):
        assert orders(one, now) == [Mirror(number)]
        one.ended(MirrorEnded(number, error="down"), now, notes)
        one.committed(now + 1.0)
        assert orders(one, now + AGAIN_SECONDS - 1.0) == []
    assert one.failing == "down"
    assert len(notes.moves) == 1
