"""The plan of a drain against a second planner that tries everything, and by example."""

from __future__ import annotations

import math
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from ckptsyncd.core.draining.loads import Load
from ckptsyncd.core.draining.plan import Candidate, DrainPlan, planned
from ckptsyncd.core.sending.rate import Speed
from tests.core.exhaustive import Save, best, worth

MIB = 2**20
GIB = 2**30
#: One GiB a second, and no doubt about it.
FAST = Speed(bytes_per_second=GIB, hand_bytes_per_second=GIB / 4, hands=4)


def save(step: int, size: float, series: str = "run", **changes: object) -> Candidate:
    """Return a checkpoint of so many GiB, one save a minute."""
    rest = int(size * GIB)
    made = Candidate(
        key=(f"{series}/checkpoint-{step}", f"save-{series}-{step}"),
        edition=1,
        series=series,
        step=step,
        rank=(0, step, 60.0 * step, 1),
        saved_at=60.0 * step,
        rest=rest,
        load=Load(bytes=rest),
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def plan_of(
    *saves: Candidate, seconds: float, speed: Speed = FAST, before: DrainPlan | None = None
) -> DrainPlan:
    """Return the plan for so many seconds from the 1,000th on."""
    return planned(saves, speed, 1000.0, 1001.0 + seconds, seconds, before)


def steps(candidates: tuple[Candidate, ...]) -> list[int | None]:
    """Return the steps of checkpoints, in order."""
    return [candidate.step for candidate in candidates]


# By example -------------------------------------------------------------------------------------


def test_the_newest_that_fits_goes_first_and_older_ones_follow_as_far_as_they_fit() -> None:
    """Of four checkpoints of 4 GiB, 10 s at 1 GiB/s hold the newest and the one before it."""
    plan = plan_of(*(save(step, 4) for step in (1, 2, 3, 4)), seconds=10.0)
    assert steps(plan.first) == [4]
    assert steps(plan.then) == [3]
    assert steps(plan.given_up) == [2, 1]
    assert plan.bytes == 8 * GIB
    assert plan.bytes_given_up == 8 * GIB
    assert plan.finish_boot == 1008.0


def test_an_older_one_that_is_nearly_done_beats_a_newer_one_that_cannot_fit() -> None:
    """What is in the store already makes an older checkpoint the better choice."""
    older = save(1, 20, rest=GIB, load=Load(bytes=GIB))
    plan = plan_of(older, save(2, 20), seconds=10.0)
    assert steps(plan.first) == [1]
    assert steps(plan.given_up) == [2]


def test_where_nothing_fits_everything_is_given_up_newest_first() -> None:
    """The time goes to the pieces of the newest, and the plan says that nothing fits."""
    plan = plan_of(save(1, 20), save(2, 20), seconds=10.0)
    assert plan.chosen == ()
    assert steps(plan.given_up) == [2, 1]
    assert plan.finish_boot == 1000.0


def test_of_what_does_not_fit_one_that_is_nearly_done_goes_first() -> None:
    """If the machine lives a second longer than was said, the older one is saved."""
    older = save(1, 20, rest=2 * GIB, load=Load(bytes=2 * GIB), point_at=0.0)
    plan = plan_of(older, save(2, 20, point_at=0.0), seconds=1.0)
    assert steps(plan.given_up) == [1, 2]


def test_without_time_nothing_fits_and_without_a_deadline_everything_does() -> None:
    """A notice of no seconds gives everything up; one without a deadline gives nothing up."""
    assert plan_of(save(1, 1), seconds=-1.0).chosen == ()
    plan = plan_of(save(1, 100), save(2, 100), seconds=math.inf)
    assert steps(plan.first) == [2]
    assert steps(plan.then) == [1]


def test_every_series_gets_a_recovery_point_before_any_gets_its_newest() -> None:
    """An old and small checkpoint of one series leaves room for another series' only one."""
    plan = plan_of(save(1, 2, "a"), save(2, 8, "a"), save(9, 7, "b"), seconds=10.0)
    assert {(c.series, c.step) for c in plan.first} == {("a", 1), ("b", 9)}


def test_of_several_series_the_quickest_is_safe_first() -> None:
    """All that fit are sent one after the other, so that something is safe if the link breaks."""
    plan = plan_of(save(1, 5, "a"), save(1, 1, "b"), save(1, 3, "c"), seconds=10.0)
    assert [c.series for c in plan.first] == ["b", "c", "a"]


def test_between_two_series_the_one_that_would_lose_more_training_wins() -> None:
    """Where only one can be served, it is the one whose recovery point is older."""
    fresh = save(10, 8, "fresh", point_at=590.0)
    stale = save(10, 8, "stale", point_at=0.0)
    assert [c.series for c in plan_of(fresh, stale, seconds=10.0).first] == ["stale"]


def test_what_is_older_than_the_recovery_point_comes_last() -> None:
    """A checkpoint that no restore would take is sent only in what time is left."""
    passed = save(1, 1, advances=False)
    plan = plan_of(passed, save(2, 8), save(3, 9.5), seconds=10.0)
    assert steps(plan.first) == [3]
    plan = plan_of(passed, save(3, 8), seconds=10.0)
    assert steps(plan.then) == [1]


def test_what_cannot_be_sent_is_given_up_with_its_reason() -> None:
    """A parked checkpoint does not stand in the way of one that can be sent."""
    plan = plan_of(save(1, 1), save(2, 1, obstacle="truncated"), seconds=10.0)
    assert steps(plan.first) == [1]
    assert [c.obstacle for c in plan.given_up] == ["truncated"]


def test_one_stream_is_no_faster_than_one_hand() -> None:
    """A store that takes a file's pieces in order needs four times as long with four hands."""
    lane = save(2, 4, load=Load(bytes=4 * GIB, lane_bytes=4 * GIB))
    plan = plan_of(save(1, 4), lane, seconds=10.0)
    assert steps(plan.first) == [1]


def test_requests_take_time_too() -> None:
    """A thousand small files at 100 ms and four hands take 25 s, however small they are."""
    slow = replace(FAST, request_seconds=0.1)
    many = save(2, 0.001, load=Load(requests=1000))
    plan = plan_of(save(1, 1), many, seconds=10.0, speed=slow)
    assert steps(plan.first) == [1]
    assert steps(plan_of(save(1, 1), many, seconds=30.0, speed=slow).first) == [2]


def test_an_unknown_speed_makes_nothing_too_large() -> None:
    """Before anything was measured the newest goes first, and no end is foretold."""
    plan = plan_of(save(1, 1), save(2, 1000), seconds=5.0, speed=Speed())
    assert steps(plan.first) == [2]
    assert plan.finish_boot is None


# Doubt ------------------------------------------------------------------------------------------


def test_a_hope_is_tried_while_one_can_turn_back() -> None:
    """The newest, which may fit, goes first until the older one needs all the time that is left."""
    unsure = replace(FAST, doubt=0.3)
    older, newer = save(1, 2), save(2, 9)
    assert steps(plan_of(older, newer, seconds=10.0, speed=unsure).first) == [2]
    rest = save(2, 9, rest=int(3.5 * GIB), load=Load(bytes=int(3.5 * GIB)))
    assert steps(plan_of(older, rest, seconds=4.0, speed=unsure).first) == [1]


def test_without_anything_surer_a_hope_is_tried_to_the_end() -> None:
    """Where nothing fits for sure, what may fit is better than nothing."""
    unsure = replace(FAST, doubt=0.5)
    assert steps(plan_of(save(1, 3), seconds=4.0, speed=unsure).first) == [1]


def test_a_choice_is_kept_while_it_is_about_as_good() -> None:
    """A speed that wavers by some percent does not make two checkpoints take turns."""
    older, newer = save(1, 1), save(2, 9.9)
    before = plan_of(older, newer, seconds=10.0)
    slower = replace(FAST, bytes_per_second=0.98 * GIB)
    assert steps(plan_of(older, newer, seconds=10.0, speed=slower).first) == [1]
    assert steps(plan_of(older, newer, seconds=10.0, speed=slower, before=before).first) == [2]


# Against a planner that tries everything --------------------------------------------------------

SAVES = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(1, 50), st.integers(0, 40)),
    max_size=6,
    unique_by=lambda row: (row[0], row[1]),
)


def _choice(rows: list[tuple[str, int, int]]) -> tuple[list[Candidate], list[Save]]:
    candidates = [save(step, size, series) for series, step, size in rows]
    saves = [Save(c.key[0], c.series, c.step or 0, c.saved_at, c.rest / GIB) for c in candidates]
    return candidates, saves


@settings(max_examples=500, deadline=None)
@given(rows=SAVES, seconds=st.integers(-2, 90))
def test_no_set_of_checkpoints_is_worth_more_than_the_plan(
    rows: list[tuple[str, int, int]], seconds: int
) -> None:
    """With up to six checkpoints in three series, the plan is as good as the best of all sets."""
    candidates, saves = _choice(rows)
    plan = plan_of(*candidates, seconds=float(seconds))
    chosen = [c.key[0] for c in plan.chosen]
    if seconds >= 0:
        found, most = worth(saves, chosen), best(saves, float(seconds))
        assert found[0] == most[0]
        assert math.isclose(found[1], most[1], abs_tol=0.1)
    assert sum(c.rest for c in plan.chosen) <= max(seconds, 0) * GIB
    assert {*chosen, *(c.key[0] for c in plan.given_up)} == {c.key[0] for c in candidates}
    assert len(chosen) + len(plan.given_up) == len(candidates)


@settings(max_examples=200, deadline=None)
@given(rows=SAVES, seconds=st.integers(0, 90), doubt=st.floats(0.0, 0.5))
def test_doubt_never_costs_what_is_sure(
    rows: list[tuple[str, int, int]], seconds: int, doubt: float
) -> None:
    """The plan is worth what surely fits, or there is time left to go back to that."""
    candidates, saves = _choice(rows)
    plan = plan_of(*candidates, seconds=float(seconds), speed=replace(FAST, doubt=doubt))
    sure = best(saves, seconds * (1.0 - doubt))
    found = worth(saves, [c.key[0] for c in plan.chosen])
    assert found[0] >= sure[0]
    if found[0] == sure[0]:
        assert found[1] >= sure[1] - 0.1


@settings(max_examples=50, deadline=None)
@given(sizes=st.lists(st.integers(1, 40), min_size=20, max_size=60), seconds=st.integers(0, 60))
def test_many_series_are_planned_quickly_and_within_the_time(
    sizes: list[int], seconds: int
) -> None:
    """With dozens of series the choice fits, and leaves out nothing that fits beside it."""
    candidates = [save(1, size, f"run{number}") for number, size in enumerate(sizes)]
    plan = plan_of(*candidates, seconds=float(seconds))
    spent = sum(c.rest for c in plan.chosen)
    assert spent <= seconds * GIB
    assert all(c.rest > seconds * GIB - spent for c in plan.given_up)
