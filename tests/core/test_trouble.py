"""What is said of a store that fails, refuses, or has another idea of the time."""

from __future__ import annotations

import pytest

from ckptsyncd.core.facts import Limits
from ckptsyncd.core.messages import Failed, Probed, Woken
from ckptsyncd.core.moves import Complained, Recovered
from ckptsyncd.core.orders import Errand, Probe
from ckptsyncd.core.sending.trouble import Trouble
from ckptsyncd.core.turn import Notebook
from ckptsyncd.core.view import snapshot
from tests.simulation.link import Night


def test_refusals_are_complained_about_by_themselves() -> None:
    """A store that breaks and then refuses is two troubles, and both are over with one success."""
    trouble, notes = Trouble(), Notebook()
    trouble.failed(Failed(Errand("piece"), "again", "HTTP 500"), 10.0, notes)
    trouble.failed(Failed(Errand("piece"), "refused", "ExpiredToken", hint="renew"), 11.0, notes)
    trouble.failed(Failed(Errand("piece"), "refused", "ExpiredToken", hint="renew"), 12.0, notes)
    assert [move.subject for move in notes.moves if isinstance(move, Complained)] == [
        "store", "access", "access",
    ]  # fmt: skip
    assert (trouble.kind, trouble.since_wall, trouble.in_a_row) == ("refused", 10.0, 3)
    over = Notebook()
    trouble.ended(over)
    assert over.moves == [Recovered("store", 1), Recovered("access", 2)]
    trouble.ended(over)
    assert len(over.moves) == 2


def test_one_checkpoint_that_does_not_fit_is_no_failing_store() -> None:
    """A name that is too long for the store is told once with its hint; the store is fine."""
    trouble, notes = Trouble(), Notebook()
    long = Failed(Errand("claim", "a.pt"), "never", "a key of 2000 bytes", hint="shorten it")
    trouble.failed(long, 10.0, notes)
    assert notes.moves == [Complained("a key of 2000 bytes", "shorten it", "checkpoint")]
    assert (trouble.in_a_row, trouble.total, trouble.text) == (0, 1, "")
    trouble.failed(Failed(Errand("probe"), "never", "no such method"), 11.0, notes)
    assert (trouble.in_a_row, trouble.text) == (1, "no such method")


@pytest.mark.parametrize(
    ("ahead", "said"),
    [
        (1200.0, "this machine's clock is 20 min ahead of the store's; set it"),
        (-90.0, "this machine's clock is 1 min 30 s behind the store's; set it"),
        (59.0, ""),
        (None, ""),
    ],
)
def test_a_clock_that_is_off_is_a_warning(ahead: float | None, said: str) -> None:
    """Status says how far this machine's clock is from the store's, as its probe heard it."""
    night = Night()
    night.swallow = lambda order: isinstance(order, Probe)
    night.run(night.now + 1.0)
    night.hear(Probed(Errand("probe"), Limits(1, 1, 1, 1), "pretended", ahead))
    warnings = snapshot(night.brain, night.instant()).warnings
    assert [text for text in warnings if "clock" in text] == ([said] if said else [])


def test_a_store_that_never_answers_is_a_store_that_fails() -> None:
    """A mount that hangs raises nothing: after a minute status says so, and since when."""
    night = Night()
    night.run(night.now + 1.0)
    night.swallow = lambda order: not isinstance(order, Probe)
    night.save("a.pt", 1000)
    asked_at = night.instant().wall
    for _ in range(10):  # the loop turns every five seconds, whatever happens
        night.run(night.now + 5.0)
        night.hear(Woken())
    assert snapshot(night.brain, night.instant()).store_failing == ""
    for _ in range(4):
        night.run(night.now + 5.0)
        night.hear(Woken())
    shown = snapshot(night.brain, night.instant())
    assert "has not answered" in shown.store_failing
    assert shown.failing_kind == "silent"
    assert shown.failing_since == pytest.approx(asked_at, abs=3.0)
