"""What is measured of the link and the store, and how it follows when they change."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ckptsyncd.core.sending.rate import LARGE_BYTES, Rate, Span

MIB = 2**20
PIECE = 16 * MIB


def busy(rate: Rate, per_second: float, seconds: float, start: float, hands: int = 4) -> float:
    """Let hands send pieces over a link that they share evenly; return when they stop."""
    took = PIECE * hands / per_second
    now = start
    while now < start + seconds:
        now += took
        for _ in range(hands):
            rate.stored(PIECE, took, now)
    return now


def test_nothing_measured_is_no_speed() -> None:
    """Without any transfer there is no number that a plan could be misled by."""
    speed = Rate().speed(100.0, 4)
    assert speed.bytes_per_second == 0.0
    assert speed.hand_bytes_per_second == 0.0
    assert Rate().per_second() == 0.0


@pytest.mark.parametrize("per_second", [10e6, 60e6, 3e9])
def test_a_steady_link_is_measured_exactly_and_hardly_doubted(per_second: float) -> None:
    """Four hands that share a link tell its speed, and a quarter of it for each of them."""
    rate = Rate()
    now = busy(rate, per_second, 40.0, 0.0)
    speed = rate.speed(now, 4)
    assert speed.bytes_per_second == pytest.approx(per_second, rel=0.01)
    assert speed.hand_bytes_per_second == pytest.approx(per_second / 4, rel=0.01)
    assert speed.doubt < 0.1


def test_time_in_which_nothing_was_sent_does_not_count() -> None:
    """Pauses between saves do not make the link slower."""
    rate = Rate()
    for start in (0.0, 100.0, 200.0):
        now = busy(rate, 100e6, 5.0, start)
    assert rate.speed(now, 4).bytes_per_second == pytest.approx(100e6, rel=0.01)
    assert rate.per_second() == pytest.approx(100e6, rel=0.01)


def test_a_link_that_became_slower_is_believed_within_seconds() -> None:
    """After ten seconds at a tenth of the speed the old speed counts for little, with doubt."""
    rate = Rate()
    now = busy(rate, 100e6, 20.0, 0.0)
    sooner = busy(rate, 10e6, 7.0, now)
    changing = rate.speed(sooner, 4)
    assert changing.bytes_per_second < 50e6
    assert changing.doubt > 0.1
    later = busy(rate, 10e6, 20.0, sooner)
    assert rate.speed(later, 4).bytes_per_second < 15e6


def test_silence_tells_that_the_link_became_slower() -> None:
    """Pieces that take longer than usual lower the estimate before they have arrived."""
    rate = Rate()
    now = busy(rate, 100e6, 20.0, 0.0)
    out = [Span(now, now + 6.0, PIECE)] * 4
    speed = rate.speed(now + 6.0, 4, out)
    assert speed.bytes_per_second < 60e6
    assert rate.speed(now, 4).bytes_per_second == pytest.approx(100e6, rel=0.01)


def test_before_anything_has_arrived_what_is_on_its_way_is_an_upper_bound() -> None:
    """After five seconds without an answer four pieces of 16 MiB tell 13 MB/s at most."""
    speed = Rate().speed(5.0, 4, [Span(0.0, 5.0, PIECE)] * 4)
    assert speed.bytes_per_second == pytest.approx(4 * PIECE / 5.0)


def test_throttling_is_slowness() -> None:
    """Time in which transfers fail and rest counts: half of it halves the speed."""
    rate = Rate()
    now = 0.0
    for _ in range(30):
        now = busy(rate, 100e6, 0.5, now)
        rate.failed(now, now + 0.5)
        now += 0.5
    assert rate.speed(now, 4).bytes_per_second == pytest.approx(50e6, rel=0.2)


def test_small_files_tell_the_time_of_a_request_not_the_link() -> None:
    """A thousand files of a kilobyte do not make a checkpoint of gigabytes seem hopeless."""
    rate = Rate()
    for number in range(1000):
        rate.stored(1024, 0.05, number * 0.05)
    speed = rate.speed(50.0, 4)
    assert speed.bytes_per_second == 0.0
    assert speed.request_seconds == pytest.approx(0.05)
    assert rate.per_second() == pytest.approx(1024 / 0.05, rel=0.01)


def test_what_is_old_is_doubted() -> None:
    """An hour later the link may be another."""
    rate = Rate()
    now = busy(rate, 100e6, 20.0, 0.0)
    later = rate.speed(now + 3600.0, 4)
    assert later.bytes_per_second == pytest.approx(100e6, rel=0.01)
    assert later.doubt > rate.speed(now, 4).doubt + 0.2


def test_what_was_held_back_is_forgotten() -> None:
    """A bandwidth cap that is lifted says nothing about the link."""
    rate = Rate()
    now = busy(rate, 1e6, 100.0, 0.0)
    rate.forget()
    assert rate.speed(now, 4).bytes_per_second == 0.0


@settings(deadline=None)
@given(
    rows=st.lists(
        st.tuples(
            st.floats(0.0, 60.0), st.floats(0.0, 20.0), st.integers(LARGE_BYTES, 100 * LARGE_BYTES)
        ),
        min_size=1,
        max_size=50,
    )
)
def test_the_speed_is_never_more_than_all_at_once(rows: list[tuple[float, float, int]]) -> None:
    """Whatever overlaps with whatever, the speed is between nothing and the sum of all flows."""
    rate = Rate()
    for end, seconds, size in sorted(rows):
        rate.stored(size, seconds, end)
    speed = rate.speed(100.0, 4)
    most = sum(size / max(seconds, 1e-3) for _, seconds, size in rows)
    assert 0.0 < speed.bytes_per_second <= most * 1.001
    assert 0.0 <= speed.doubt <= 0.5
