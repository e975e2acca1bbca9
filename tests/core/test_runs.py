"""Series: what counts as a step back, and when it opens a new lineage."""

from __future__ import annotations

import pytest

from ckptsyncd.core.records.documents import Latest
from ckptsyncd.core.rules.policy import Policy
from ckptsyncd.core.sending.runs import Runs, went_back
from ckptsyncd.core.turn import Notebook
from tests.core.parts import manifest

NEWEST = (0, 500, 1000.0, 1)


@pytest.mark.parametrize(
    ("step", "saved_at", "back"),
    [(10, 1001.0, True), (10, 999.0, False), (500, 1001.0, False), (None, 1001.0, False)],
)
def test_a_step_back_is_a_later_save_with_a_lower_step(
    step: int | None, saved_at: float, *, back: bool
) -> None:
    """An older checkpoint that finishes later, or one without a step, did not go back."""
    assert went_back(step, saved_at, NEWEST) is back


@pytest.mark.parametrize("allowed", [False, True])
def test_only_an_allowed_step_back_opens_a_lineage_once(*, allowed: bool) -> None:
    """With --allow-step-back the next commits outrank what was newest; without they do not."""
    runs = Runs(Policy(allow_step_back=allowed), "host", "nonce", {}, {})
    series = runs.of("run")
    series.latest = Latest("run", "run/checkpoint-500", 1, NEWEST, (), "other", 1000.0)
    first = runs.lineage_for(series, 10, 1001.0)
    assert first == (1 if allowed else 0)
    assert runs.lineage_for(series, 20, 1002.0) == first


def test_who_sees_another_machine_step_back_follows_it_at_once() -> None:
    """Its own next commit outranks the one that went back, whether it was told to allow that."""
    for allowed in (False, True):
        policy = Policy(allow_step_back=allowed, node=1, nodes=2)
        runs = Runs(policy, "host", "nonce", {}, {})
        series = runs.of("run")
        series.latest = Latest("run", "run/checkpoint-500", 1, NEWEST, (), "other", 1000.0)
        back = manifest(series="run", step=10, saved_at=1001.0, lineage=1)
        runs.saw_commit(back, Notebook())
        assert runs.lineage_for(series, 20, 1002.0) == 1
