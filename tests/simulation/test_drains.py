"""Nights with a notice: what is safe when the machine goes, against what could have been.

The other planner knows how fast the link will be, tries every set of checkpoints, and wastes
nothing. What it reaches from the same moment, less one piece for each hand and a tenth of the time
(what a drain that must measure the link cannot know), is reached by the daemon.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ckptsyncd.core import orders
from ckptsyncd.core.facts import Limits, Notice
from ckptsyncd.core.messages import Failed, Noticed, StopRequested, Withdrawn
from ckptsyncd.core.moves import Said
from ckptsyncd.core.rules.policy import Policy
from tests.core.exhaustive import MOST, Save, best, worth
from tests.simulation.link import MIB, S3, STREAM, Night

GB = 1e9
PIECE = 16 * MIB
POLICY = Policy(companions=False)
#: What a drain may waste: it measures, and some requests wait for each other.
WASTE_SHARE = 0.1
REQUESTS = 8
#: So long the daemon could measure the link before the notice.
WARM_SECONDS = 10.0
#: So long after the link changed the daemon knows it: two half-lives of its measurement.
SETTLED_SECONDS = 8.0


@dataclass(frozen=True)
class Weather:
    """One night: sizes in MiB, speeds in bytes per second, times in seconds after the notice."""

    sizes: tuple[int, ...]
    series: tuple[str, ...]
    notice: float
    speed: float
    latency: float = 0.02
    limits: Limits = S3


def saves_of(night: Night) -> list[Save]:
    """Return every checkpoint of the backlog; its cost is what of it is not in the store.

    A manifest that is missing costs at least a byte. What gave way to a newer one is no choice.
    """
    opened = night.brain.editions.open.values()
    rest = {e.checkpoint: max(e.listing.bytes - e.bytes_stored, 1) for e in opened}
    return [
        Save(
            fact.path,
            fact.path.split("/")[0],
            int(fact.path.split("=")[1].split(".")[0]),
            fact.mtime_ns / 1e9,
            0.0 if fact.path in night.committed else float(rest[fact.path]),
        )
        for fact in night.files.values()
        if not fact.path.startswith("warm/") and (fact.path in night.committed or fact.path in rest)
    ]


def begin(weather: Weather, policy: Policy = POLICY) -> Night:
    """Let the daemon measure the link, let the backlog arrive, and announce the end."""
    # Pieces of a tenth of a second of the link, at least: whoever has a fast link has large ones.
    policy = dataclasses.replace(policy, hands=4, piece_bytes=max(PIECE, int(weather.speed / 10)))
    night = Night(policy, weather.limits, weather.speed, weather.latency)
    night.run(night.now + 0.5)
    night.save("warm/step=1.ckpt", int(weather.speed * WARM_SECONDS))
    while "warm/step=1.ckpt" not in night.committed:
        night.run(night.now + 1.0)
    for number, (size, series) in enumerate(zip(weather.sizes, weather.series, strict=True)):
        night.save(f"{series}/step={100 + number}.ckpt", size * MIB)
        night.run(night.now + 0.3)
    return night


def announce(night: Night, seconds: float, source: str = "test") -> float:
    """Announce the end of the machine, and return when it comes."""
    deadline = night.now + seconds
    night.hear(Noticed(Notice(source, f"{source}:{night.now}", "binding", deadline)))
    return deadline


def judge(night: Night, saves: list[Save], reachable: float) -> None:
    """Judge that no set of checkpoints that costs so many bytes is worth more than what is safe."""
    found = worth(saves, night.committed)
    most = best(saves, max(reachable, 0.0))
    assert found[0] >= most[0], (found, most, night.committed)
    assert found[0] > most[0] or found[1] >= most[1] - 0.1, (found, most, night.committed)


def reachable(night: Night, seconds: float, speed: float, deadline_left: float) -> float:
    """Return how many bytes the other planner may send in so many seconds."""
    usable = min(seconds, deadline_left - POLICY.stop_margin_seconds)
    usable = usable * (1.0 - WASTE_SHARE) - REQUESTS * night.latency
    return usable * speed - night.policy.hands * night.policy.piece_bytes


def lane_speed(night: Night, speed: float) -> float:
    """Return how fast one hand is that sends pieces one after the other, alone on the link."""
    piece = night.policy.piece_bytes
    return piece / (piece / speed + night.latency)


WEATHERS = st.builds(
    lambda rows, notice, speed, latency, limits: Weather(
        tuple(size for size, _ in rows),
        tuple(series for _, series in rows),
        notice,
        speed,
        latency=latency,
        limits=limits,
    ),
    st.lists(
        st.tuples(st.sampled_from((1, 40, 300, 2000, 8000)), st.sampled_from("aab")),
        min_size=1,
        max_size=MOST,
    ),
    st.sampled_from((0.0, 5.0, 15.0, 30.0, 120.0)),
    st.sampled_from((10e6, 60e6, 300e6, GB, 3 * GB)),
    st.sampled_from((0.005, 0.02, 0.1)),
    st.sampled_from((S3, S3, STREAM)),
)


@settings(max_examples=60, deadline=None)
@given(weather=WEATHERS)
def test_a_steady_link_saves_what_could_be_saved(weather: Weather) -> None:
    """With up to six checkpoints, any notice and any speed: as good as trying everything."""
    night = begin(weather)
    saves = saves_of(night)
    deadline = announce(night, weather.notice)
    night.run(deadline)
    speed = weather.speed
    if weather.limits is STREAM:
        speed = lane_speed(night, speed)
    judge(night, saves, reachable(night, weather.notice, speed, weather.notice))


@settings(max_examples=40, deadline=None)
@given(
    weather=WEATHERS.filter(lambda w: w.notice >= 15.0 and w.limits is S3),
    factor=st.sampled_from((0.05, 0.3, 3.0, 20.0)),
    share=st.floats(0.05, 0.6),
)
def test_after_the_link_has_changed_what_then_can_be_saved_is_saved(
    weather: Weather, factor: float, share: float
) -> None:
    """Some seconds after a change mid-drain, the rest is as good as trying everything."""
    night = begin(weather)
    deadline = announce(night, weather.notice)
    night.run(night.now + share * weather.notice)
    speed = min(max(weather.speed * factor, 10e6), 3 * GB)
    night.set_speed(speed)
    # Pieces that are on their way tell the new speed only when they arrive.
    pieces = 3 * night.policy.hands * night.policy.piece_bytes / speed
    night.run(min(night.now + SETTLED_SECONDS + pieces, deadline))
    left = deadline - night.now
    saves = saves_of(night)
    night.run(deadline)
    judge(night, saves, reachable(night, left, speed, left))


@settings(max_examples=60, deadline=None)
@given(weather=WEATHERS.filter(lambda w: w.notice >= 15.0), seed=st.integers(0, 1000))
def test_throttling_slows_a_drain_down_and_does_not_spoil_it(weather: Weather, seed: int) -> None:
    """While a third of all requests are refused, the newest that fits twice over is saved."""
    night = begin(weather)
    chance = Random(seed)

    def throttle(order: orders.HandOrder, _now: float) -> Failed | None:
        if chance.random() < 0.33:
            return Failed(order.errand, "again", "slow down", wait_seconds=0.5)
        return None

    night.throttle = throttle
    saves = saves_of(night)
    deadline = announce(night, weather.notice)
    night.run(deadline)
    # A piece waits half a second in a third of all cases; so do the requests before and after.
    lane = lane_speed(night, weather.speed)
    a_piece = night.policy.piece_bytes / lane
    slowed = lane * a_piece / (a_piece + 0.5)
    usable = weather.notice - 1.0 - REQUESTS * (0.75 + night.latency)
    judge(night, saves, usable * slowed / 2 - night.policy.hands * night.policy.piece_bytes)


@pytest.mark.parametrize("speed", [10e6, 100e6, 3 * GB])
@pytest.mark.parametrize("count", [1, 4, 20])
@pytest.mark.parametrize("notice", [0.0, 5.0, 15.0, 30.0, 120.0])
def test_of_a_long_backlog_the_newest_that_fits_is_safe(
    speed: float, count: int, notice: float
) -> None:
    """Up to twenty checkpoints of ten seconds each: whatever fits, the newest is among it."""
    weather = Weather((int(speed * 10 / MIB),) * count, ("run",) * count, notice, speed)
    night = begin(weather)
    newest = f"run/step={100 + count - 1}.ckpt"
    rest = {save.name: save.cost for save in saves_of(night)}[newest]
    deadline = announce(night, notice)
    night.run(deadline)
    if rest <= reachable(night, notice, speed, notice):
        assert newest in night.committed
    assert night.is_over is None
    assert night.state() == ("draining" if night.brain.editions.open else "drained")


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


# The trainer ------------------------------------------------------------------------------------

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
