"""Drains with a trainer that is told: its last checkpoint, and how long that is waited for."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ckptsyncd.core import orders
from ckptsyncd.core.messages import Withdrawn
from tests.simulation.drains import (
    GB,
    POLICY,
    Weather,
    announce,
    begin,
)
from tests.simulation.link import MIB, Night

TELLING = dataclasses.replace(POLICY, tells_trainer=True, trainer_seconds=20.0)


def _drained_after(night: Night, until: float) -> float | None:
    while night.now < until:
        night.run(night.now + 0.05)
        if night.state() == "drained":
            return night.now
    return None


def test_the_trainers_last_checkpoint_is_waited_for_and_saved() -> None:
    """The drain is over when what the trainer saved on the notice is safe, not before."""
    night = begin(Weather((300,), ("run",), 60.0, 60e6), TELLING)
    night.run(night.now + 10.0)
    at = night.now
    deadline = announce(night, 60.0)
    told = [order for _, order in night.told if isinstance(order, orders.TellTrainer)]
    assert len(told) == 1
    assert told[0].seconds == pytest.approx(59.0)
    night.at(at + 12.0, lambda: night.save("run/step=900.ckpt", 300 * MIB))
    drained = _drained_after(night, deadline)
    assert drained is not None
    assert at + 12.0 < night.committed["run/step=900.ckpt"] <= drained < at + 20.0


def test_a_trainer_that_saves_nothing_is_not_waited_for_longer_than_was_said() -> None:
    """After the trainer's seconds the drain is over without a last checkpoint."""
    night = begin(Weather((300,), ("run",), 60.0, 60e6), TELLING)
    night.run(night.now + 10.0)
    at = night.now
    deadline = announce(night, 60.0)
    assert _drained_after(night, deadline) == pytest.approx(at + 20.0, abs=0.1)


@settings(max_examples=60, deadline=None)
@given(
    size=st.sampled_from((40, 300, 2000)),
    notice=st.sampled_from((5.0, 15.0, 30.0, 120.0)),
    speed=st.sampled_from((60e6, 300e6, 3 * GB)),
    comes=st.floats(0.0, 1.0),
)
def test_a_trainer_is_never_waited_for_past_the_plan(
    size: int, notice: float, speed: float, comes: float
) -> None:
    """Waiting ends when a last checkpoint could not be saved any more, and one that could is."""
    night = begin(Weather((size,), ("run",), notice, speed), TELLING)
    night.run(night.now + 60.0)
    at = night.now
    deadline = announce(night, notice)
    needed = size * MIB / speed
    night.at(at + comes * notice, lambda: night.save("run/step=900.ckpt", size * MIB))
    drained = _drained_after(night, deadline)
    latest = deadline - 1.0 - needed
    if "run/step=900.ckpt" not in night.committed:
        assert at + comes * notice > latest - 0.5 or drained is not None
        assert drained is None or drained <= max(latest, at) + 0.2
    elif drained is not None:
        assert night.committed["run/step=900.ckpt"] <= deadline


def test_a_withdrawn_notice_is_told_to_the_trainer_too() -> None:
    """What was told is taken back, once."""
    night = begin(Weather((300,), ("run",), 60.0, 60e6), TELLING)
    announce(night, 60.0)
    night.hear(Withdrawn("test", next(iter(night.brain.ending.notices))))
    night.run(night.now + 5.0)
    told = [type(o) for _, o in night.told if isinstance(o, orders.DrainOrder)]
    assert told == [orders.TellTrainer, orders.KeepReport, orders.RecallTrainer]


def test_a_drained_notice_is_acknowledged_once() -> None:
    """Its source hears that nothing stands in its way any more when all is safe, not before."""
    night = begin(Weather((300,), ("run",), 60.0, 60e6))
    deadline = announce(night, 60.0, "azure")
    assert not [o for _, o in night.told if isinstance(o, orders.Acknowledge)]
    night.run(deadline - 20.0)
    night.save("run/step=900.ckpt", 40 * MIB)
    night.run(deadline)
    done = [(time, o) for time, o in night.told if isinstance(o, orders.Acknowledge)]
    assert [o.source for _, o in done] == ["azure"]
    assert done[0][0] >= night.committed["run/step=100.ckpt"]
