"""How drains go on and end: stuck requests, what does not fit, withdrawn notices, stops, drills."""

from __future__ import annotations

import dataclasses

import pytest

from ckptsyncd.core import orders
from ckptsyncd.core.facts import Notice
from ckptsyncd.core.messages import Noticed, StopRequested, Withdrawn
from ckptsyncd.core.moves import Said
from tests.simulation.drains import (
    PIECE,
    POLICY,
    Weather,
    announce,
    begin,
)
from tests.simulation.link import MIB, Night


def test_one_request_that_is_never_answered_costs_one_piece() -> None:
    """A piece whose answer never comes is sent again by another hand, and the newest is safe."""
    for number in range(12):
        seen = iter(range(10**6))

        def swallow(order: orders.HandOrder, number: int = number, seen: object = seen) -> bool:
            is_newest = "103" in order.errand.checkpoint
            return is_newest and next(seen) == number  # type: ignore[call-overload]

        night = begin(Weather((256,) * 4, ("run",) * 4, 15.0, 60e6))
        night.swallow = swallow
        deadline = announce(night, 15.0)
        night.run(deadline)
        assert night.committed["run/step=103.ckpt"] < deadline - 1.0, number


def test_where_every_hand_is_stuck_two_more_go_on() -> None:
    """One hand that waits for ever is not the end: its order is given once more, to another."""
    policy = dataclasses.replace(POLICY, hands=1)
    night = Night(policy, speed=60e6)
    night.run(night.now + 0.5)
    night.save("run/step=1.ckpt", 256 * MIB)
    night.run(night.now + 5.0)
    stuck = iter([True])
    night.swallow = lambda order: isinstance(order, orders.PutPiece) and next(stuck, False)
    night.save("run/step=2.ckpt", 256 * MIB)
    night.run(night.now + 1.0)
    deadline = announce(night, 15.0)
    night.run(deadline)
    assert "run/step=2.ckpt" in night.committed


def test_nothing_fits_is_said_at_once_and_the_pieces_are_kept() -> None:
    """The first plan names what is lost, and what is sent meanwhile belongs to the newest."""
    night = begin(Weather((2000, 2000), ("run", "run"), 5.0, 60e6))
    at = night.now
    deadline = announce(night, 5.0)
    said = [(time, move) for time, move in night.moves if isinstance(move, Said) and time >= at]
    assert said[0][0] == at
    assert said[0][1].event == "drain.nothing_fits"
    stored = {e.checkpoint: e.bytes_stored for e in night.brain.editions.open.values()}
    night.run(deadline)
    after = {e.checkpoint: e.bytes_stored for e in night.brain.editions.open.values()}
    assert after["run/step=101.ckpt"] > 2 * PIECE
    # What was on its way when the notice came, or before the newest had begun, still arrives.
    assert after["run/step=100.ckpt"] - stored["run/step=100.ckpt"] <= 8 * PIECE


def test_an_older_one_that_is_nearly_done_is_finished() -> None:
    """A checkpoint with a second to go beats a newer one that would take a minute."""
    night = begin(Weather((600,), ("run",), 5.0, 60e6))
    night.run(night.now + 8.0)
    night.save("run/step=200.ckpt", 4000 * MIB)
    night.run(night.now + 0.5)
    deadline = announce(night, 6.0)
    night.run(deadline)
    assert "run/step=100.ckpt" in night.committed


# The course of a drain --------------------------------------------------------------------------


def test_a_drain_with_nothing_at_risk_is_over_at_once() -> None:
    """The state is drained within the turn that brings the notice, not at the next alarm."""
    night = begin(Weather((), (), 30.0, 60e6))
    announce(night, 30.0)
    assert night.state() == "drained"


def test_a_withdrawn_notice_brings_back_the_cap() -> None:
    """The bandwidth cap is lifted by the notice and holds again when it is withdrawn."""
    policy = dataclasses.replace(POLICY, bandwidth=10**6)
    night = begin(Weather((40,), ("run",), 30.0, 60e6), policy)
    announce(night, 30.0)
    name = next(iter(night.brain.ending.notices))
    night.hear(Withdrawn("test", name))
    assert night.state() == "running"
    paces = [o.bytes_per_second for _, o in night.told if isinstance(o, orders.SetPace)]
    assert paces == [10**6, None, 10**6]
    assert night.brain.drain.last is not None
    assert night.brain.drain.last.outcome == "withdrawn"


def test_a_notice_that_is_outlived_is_not_drained_again() -> None:
    """A minute after the deadline the daemon runs again, and remembers the notice's name."""
    night = begin(Weather((40,), ("run",), 30.0, 60e6))
    deadline = announce(night, 30.0)
    name = next(iter(night.brain.ending.notices))
    night.run(deadline + 59.0)
    assert night.state() == "drained"
    night.run(deadline + 61.0)
    assert night.state() == "running"
    night.hear(Noticed(Notice("test", name, "binding", night.now + 30.0)))
    assert night.state() == "running"


def test_a_stop_reports_what_is_left_and_ends_before_the_kill() -> None:
    """The report of a stop that cannot finish is kept and sent; the exit code is 6."""
    night = begin(Weather((4000,), ("run",), 10.0, 60e6))
    at = night.now
    night.hear(StopRequested(night.now + 10.0))
    night.run(at + 10.0)
    assert night.exit_code == 6
    assert night.is_over == pytest.approx(at + 9.0, abs=0.05)
    kept = [order for _, order in night.told if isinstance(order, orders.KeepReport)]
    assert b'"outcome":"stopped"' in kept[-1].data
    reports = [key for key in night.records if key.startswith(".ckptsyncd/reports/")]
    assert len(reports) == 1
    report = night.brain.drain.last
    assert report is not None
    assert [left.checkpoint for left in report.left] == ["run/step=100.ckpt"]
    assert report.bytes_left > 3000 * MIB


def test_a_drill_ends_by_itself_and_ends_nothing() -> None:
    """A pretended notice is drained for and reported; then everything goes on as before."""
    policy = dataclasses.replace(POLICY, tells_trainer=True)
    night = begin(Weather((300, 4000), ("run", "run"), 20.0, 60e6), policy)
    night.brain.ending.exit_when_drained = True
    deadline = announce(night, 20.0, "drill")
    assert night.state() == "draining"
    night.run(deadline)
    assert night.state() == "running"
    assert night.is_over is None
    report = night.brain.drain.last
    assert report is not None
    assert (report.source, report.outcome) == ("drill", "deadline")
    assert [left.checkpoint for left in report.left] == ["run/step=101.ckpt"]
    assert {type(order) for _, order in night.told} == {orders.KeepReport}
    assert not [key for key in night.records if key.startswith(".ckptsyncd/reports/")]


def test_a_drill_with_nothing_to_lose_is_over_at_once() -> None:
    """Where all is safe, a drill says so and the daemon runs on."""
    night = begin(Weather((), (), 20.0, 60e6))
    announce(night, 20.0, "drill")
    assert night.state() == "running"
    report = night.brain.drain.last
    assert report is not None
    assert (report.outcome, report.left) == ("drained", ())
