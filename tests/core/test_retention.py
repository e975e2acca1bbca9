"""What stays and why, over tables and over every history that can be thought of."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from ckptsyncd.core.rules.retention import Candidate, Decision, Retention, decide

NOW = 1_000_000.0
HOUR = 3600.0


def saved(
    step: int | None, hours_ago: float = 0.0, *, lineage: int = 0, name: str = ""
) -> Candidate:
    """Return a candidate."""
    at = NOW - hours_ago * HOUR
    rank = (lineage, -1 if step is None else step, at, 1)
    return Candidate(name or f"checkpoint-{step}", 1, "run", step, at, rank)


def kept(candidates: list[Candidate], rules: Retention, *broken: str) -> list[int | None]:
    """Return the steps that stay where everything but ``broken`` verifies, newest first."""
    decision = decided(candidates, rules, {c.title: c.title not in broken for c in candidates})
    return [fate.candidate.step for fate in decision.fates if fate.keeps]


def decided(candidates: list[Candidate], rules: Retention, truth: dict[str, bool]) -> Decision:
    """Decide, answering what is asked, and asking nothing twice."""
    verdicts: dict[str, bool] = {}
    while (decision := decide(candidates, rules, NOW, verdicts)).ask is not None:
        assert decision.ask is not None
        assert decision.ask.title not in verdicts
        verdicts[decision.ask.title] = truth[decision.ask.title]
    return decision


TEN = [saved(step, 100 - step) for step in range(10, 110, 10)]


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        (Retention(keep_last=3), [100, 90, 80]),
        (Retention(keep_last=1), [100, 90]),
        (Retention(keep_last=1, min_keep=1), [100]),
        (Retention(every_steps=40), [100, 90, 50, 10]),
        (Retention(every_steps=15, min_keep=1), [100, 90, 70, 50, 30, 10]),
        (Retention(every_seconds=40 * HOUR, min_keep=1), [100, 90, 50, 10]),
        (Retention(newer_seconds=25 * HOUR), [100, 90, 80]),
        (Retention(keep_last=1, pinned=("checkpoint-3*",)), [100, 90, 30]),
        (Retention(keep_last=1, pinned=("checkpoint-30@1",)), [100, 90, 30]),
        (Retention(keep_last=1, pinned=("checkpoint-30@2",)), [100, 90]),
        (Retention(keep_last=2, every_steps=40), [100, 90, 50, 10]),
        (Retention(keep_last=1, min_keep=4), [100, 90, 80, 70]),
    ],
)
def test_any_rule_keeps(rules: Retention, expected: list[int]) -> None:
    """What one rule keeps stays, whatever the others say; so many stay in any case."""
    assert kept(TEN, rules) == expected


def test_what_does_not_verify_does_not_count() -> None:
    """Two must verify: broken ones stay and older ones stand in for them."""
    rules = Retention(keep_last=1)
    assert kept(TEN, rules, "checkpoint-100@1") == [100, 90, 80]
    broken = [f"checkpoint-{step}@1" for step in range(20, 110, 10)]
    assert kept(TEN, rules, *broken) == list(range(100, 0, -10))


def test_what_is_named_stays() -> None:
    """A pointer's target stays, with the pointer as its reason."""
    named = Candidate("checkpoint-5", 1, "run", 5, 0.0, (0, 5, 0.0, 1), named="best names it")
    every = [*TEN, named]
    decision = decided(every, Retention(keep_last=1), all_whole(every))
    assert [f.keeps for f in decision.fates if f.candidate.step == 5] == ["best names it"]


def test_steps_start_again_after_a_step_back() -> None:
    """In a new lineage stretches of steps are counted from its first checkpoint."""
    again = [saved(step, 1, lineage=1, name=f"again-{step}") for step in (20, 25, 65)]
    assert kept([*TEN, *again], Retention(every_steps=40, min_keep=1)) == [65, 20, 90, 50, 10]


def test_the_stretches_stay_where_they_were() -> None:
    """Deciding again about what was kept removes nothing more."""
    rules = Retention(every_steps=35, min_keep=1)
    first = kept(TEN, rules)
    again = [one for one in TEN if one.step in first]
    assert kept(again, rules) == first


def test_names_without_steps() -> None:
    """They are ordered and kept by time; steps say nothing about them."""
    rows = [saved(None, hours, name=f"last-{hours}") for hours in range(5)]
    rules = Retention(every_steps=1, every_seconds=2 * HOUR, min_keep=1)
    stay = [f.candidate.checkpoint for f in decided(rows, rules, all_whole(rows)).fates if f.keeps]
    assert stay == ["last-0", "last-2", "last-4"]


def titles(candidates: list[Candidate]) -> list[str]:
    """Return their titles."""
    return [one.title for one in candidates]


def all_whole(candidates: list[Candidate]) -> dict[str, bool]:
    """Return that everything verifies."""
    return dict.fromkeys(titles(candidates), True)


def test_rules_that_say_nothing() -> None:
    """Pins alone are no rule: everything else would go."""
    assert not Retention(pinned=("a",)).is_said
    assert Retention(newer_seconds=1.0).is_said


RULES = some.builds(
    Retention,
    keep_last=some.none() | some.integers(1, 6),
    every_steps=some.none() | some.integers(1, 50),
    every_seconds=some.none() | some.floats(1.0, 1e5),
    newer_seconds=some.none() | some.floats(0.0, 1e5),
    min_keep=some.integers(1, 4),
)
HISTORIES = some.lists(
    some.tuples(some.integers(0, 100), some.integers(0, 100), some.booleans()),
    min_size=1, max_size=20, unique_by=lambda row: row[0],
)  # fmt: skip


@given(HISTORIES, RULES)
def test_nothing_goes_on_hope(history: list[tuple[int, int, bool]], rules: Retention) -> None:
    """The newest stays; so many that verify stay; whatever goes has so many newer ones that do."""
    candidates = [saved(step, hours) for step, hours, _ in history]
    truth = {saved(step).title: whole for step, _, whole in history}
    decision = decided(candidates, rules, truth)
    assert len(decision.fates) == len(candidates)
    assert decision.fates[0].keeps
    staying = [f.candidate for f in decision.fates if f.keeps]
    whole = [one for one in staying if truth[one.title]]
    assert len(whole) >= min(rules.min_keep, sum(truth.values()))
    for one in decision.going:
        newer = [other for other in whole if other.rank > one.rank]
        assert len(newer) >= rules.min_keep
    assert list(decision.going) == sorted(decision.going, key=lambda one: one.rank)
