"""Nights with a notice: the weather, and the other planner that knows how fast the link will be."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from hypothesis import strategies as st

from ckptsyncd.core.facts import Limits, Notice
from ckptsyncd.core.messages import Noticed
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
