"""A checkpoint that gave way to a newer one, which then does not fit the time that is left."""

from __future__ import annotations

import pytest

from ckptsyncd.core.rules.policy import Policy
from tests.simulation.drains import announce
from tests.simulation.link import MIB, S3, Night

SPEED = 60.0 * MIB
SMALL, LARGE = "run/step=1.ckpt", "run/step=2.ckpt"


def backlog() -> Night:
    """Return a night in which a small checkpoint gave way to a large one, and both wait."""
    night = Night(Policy(companions=False, hands=1), S3, SPEED, 0.02)
    night.run(night.now + 0.5)
    night.save("busy/step=1.ckpt", int(SPEED * 20))
    night.run(night.now + 1.0)
    night.save(SMALL, 300 * MIB)
    night.run(night.now + 2.0)
    night.save(LARGE, 6000 * MIB)
    night.run(night.now + 2.0)
    assert [e.checkpoint for e in night.brain.editions.aside] == [SMALL]
    assert LARGE not in night.committed
    while "busy/step=1.ckpt" not in night.committed:
        night.run(night.now + 0.5)
    return night


@pytest.mark.parametrize(("seconds", "safe"), [(20.0, {SMALL}), (300.0, {LARGE}), (2.0, set())])
def test_the_older_one_is_called_back_where_only_it_fits(seconds: float, safe: set[str]) -> None:
    """With 20 s the small one is saved, with plenty of time the newer one alone, else neither."""
    night = backlog()
    night.run(announce(night, seconds))
    assert night.committed.keys() & {SMALL, LARGE} == safe


def test_one_that_is_gone_is_not_waited_for() -> None:
    """What the trainer has removed meanwhile cannot be called back, and nothing waits for it."""
    night = backlog()
    del night.files[SMALL]
    night.run(announce(night, 20.0))
    assert SMALL not in night.committed
    assert SMALL not in {name for name, _ in night.brain.editions.open}
