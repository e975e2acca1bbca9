"""The deadline table: what is made of times that are there, missing, impossible or long past."""

from __future__ import annotations

import math

import pytest

from ckptsyncd.core.draining import deadlines
from ckptsyncd.core.draining.deadlines import Allowance, Basis, Remaining, remaining, stop_seconds

NOW = 1_750_000_000.0


@pytest.mark.parametrize(
    ("allowance", "default", "most"),
    [
        (deadlines.AWS_SPOT, 120, 180),
        (deadlines.AWS_HIBERNATE, 0, 120),
        (deadlines.GCP_PREEMPTED, 25, 150),
        (deadlines.GCP_PREEMPTED_EARLY, 120, 150),
        (deadlines.GCP_TERMINATE, 60, 4000),
        (deadlines.AZURE_PREEMPT, 30, 300),
        (deadlines.AZURE_STARTED, 0, math.inf),
        (deadlines.ALIBABA_SPOT, 300, 360),
        (deadlines.TENCENT_SPOT, 120, 180),
    ],
)
def test_every_provider_has_its_row(allowance: Allowance, default: float, most: float) -> None:
    """A missing time gives the default, the most is believed, and a second more is not."""
    assert remaining(None, allowance, NOW) == Remaining(default, "default")
    assert remaining(NOW + 5.0, allowance, NOW) == Remaining(5.0, "notice")
    if most < math.inf:
        assert remaining(NOW + most, allowance, NOW) == Remaining(most, "notice")
        assert remaining(NOW + most + 1.0, allowance, NOW) == Remaining(default, "clamped")


@pytest.mark.parametrize(
    ("at", "there", "seconds", "basis"),
    [
        (120.0, None, 120.0, "notice"),  # our clock alone
        (120.0, 1.0, 120.0, "notice"),  # a second apart is agreement
        (-5.0, None, 0.0, "notice"),  # just past: now
        (-599.0, None, 0.0, "notice"),  # still not stale
        (170.0, 50.0, 120.0, "notice"),  # our clock is 50 s behind: theirs counts
        (10.0, -110.0, 120.0, "notice"),  # our clock is 110 s ahead: theirs counts
        (3720.0, 3600.0, 120.0, "notice"),  # our clock is an hour behind
        (-3480.0, -3600.0, 120.0, "notice"),  # our clock is an hour ahead
        (120.0, 3600.0, 120.0, "notice"),  # only their Date is wrong: ours counts
        (120.0, -3600.0, 120.0, "notice"),  # the same, the other way
        (3720.0, None, 120.0, "clamped"),  # an hour too far, and no other clock
        (-3480.0, None, 120.0, "clamped"),  # long past, by our clock alone: not believed
        (9000.0, 1.0, 120.0, "clamped"),  # further than EC2 ever says
    ],
)
def test_two_clocks(at: float, there: float | None, seconds: float, basis: Basis) -> None:
    """The clock of whoever named the time is believed first; what cannot be is replaced."""
    other = None if there is None else NOW + there
    found = remaining(NOW + at, deadlines.AWS_SPOT, NOW, other)
    assert found == Remaining(seconds, basis)


def test_long_past_needs_two_witnesses() -> None:
    """A time more than ten minutes ago is dropped only where both clocks say so."""
    assert remaining(NOW - 601.0, deadlines.AWS_SPOT, NOW, NOW) is None
    assert remaining(NOW - 601.0, deadlines.AWS_SPOT, NOW, NOW - 300.0) is not None


@pytest.mark.parametrize(
    ("layers", "configured", "seconds"),
    [
        ((), None, 10.0),
        (("kubernetes",), None, 30.0),
        (("slurm",), None, 30.0),
        (("runpod",), None, 5.0),
        (("kubernetes", "runpod"), None, 5.0),
        (("vast",), None, 10.0),
        (("kubernetes",), 90.0, 90.0),
    ],
)
def test_stop_seconds(layers: tuple[str, ...], configured: float | None, seconds: float) -> None:
    """What runs us decides how long a polite stop is, unless somebody configured it."""
    assert stop_seconds(layers, configured) == seconds
