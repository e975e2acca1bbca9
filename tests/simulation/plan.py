"""What kind of night it is to be: everything that is chosen before it begins."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from ckptsyncd.core.facts import Limits
from ckptsyncd.core.rules.policy import Policy
from tests.simulation.trainer import USUAL

S3 = Limits(1, 1000, 1000, 100_000)
#: One stream of pieces in order, as a resumable upload is.
STREAM = Limits(8, 1000, 1000, 100_000, piece_multiple=8, pieces_in_parallel=False)
#: Begun uploads cannot be dropped.
BLOCKS = Limits(1, 1000, 1000, 100_000, can_abandon=False)
#: Nothing is conditional: one writer only.
PLAIN = Limits(1, 1000, 1000, 100_000, create_only_finish=False, compare_and_set=False)


@dataclass(frozen=True, slots=True)
class Plan:
    """One night. Shares are between 0 and 1, times are seconds, the others say how often.

    ``loss``: share of events that nobody hears of; ``overflows``: with a word that some were lost;
    ``lag``: the most that one is late. ``fault``: share of store calls that fail; ``late``: that
    time out and take effect later; ``zombies``: of a killed daemon's requests that still arrive.
    ``gone``: the store forgets what was begun. ``emptied``: somebody empties the bucket. ``full``:
    there is no room for the ledger. ``lost_pins``: somebody removes a pin. ``meddlers``: somebody
    opens a file for writing and writes nothing. ``bad_reads``: share of looks at the disk that
    fail. ``jumps``: of the wall clock. ``strangers``: other people's objects under the prefix.
    ``moves``: the run is restored on another machine while the one before lives on.
    ``is_polled``: the file system sends no events. ``is_forgetful``: the ledger may be lost.
    """

    seed: int
    seconds: float
    policy: Policy
    limits: Limits
    trainers: tuple[tuple[str, float, int], ...]
    loss: float = 0.0
    overflows: int = 0
    fault: float = 0.0
    late: float = 0.0
    zombies: float = 0.5
    lag: float = 0.05
    latency: float = 0.1
    kills: int = 0
    pauses: int = 0
    stops: int = 0
    notices: int = 0
    outages: int = 0
    gone: int = 0
    trainer_deaths: int = 0
    emptied: int = 0
    full: int = 0
    lost_pins: int = 0
    meddlers: int = 0
    bad_reads: float = 0.0
    jumps: int = 0
    strangers: int = 0
    moves: int = 0
    is_polled: bool = False
    is_forgetful: bool = False
    has_lease: bool = True
    has_links: bool = True

    @property
    def is_calm(self) -> bool:
        """Whether nothing goes wrong in the store, and the daemon is left alone."""
        rough = self.fault or self.late or self.outages or self.gone
        return not (rough or self.kills or self.stops or self.moves or self.emptied)

    @property
    def is_plain_sight(self) -> bool:
        """Whether the daemon can see everything that the trainers do, all the time."""
        hidden = (
            self.loss or self.overflows or self.pauses or self.kills or self.stops or self.emptied
        )
        hidden = hidden or self.moves or self.trainer_deaths or self.bad_reads or self.jumps
        return not (hidden or self.is_polled) and self.has_lease


def plan_of(seed: int) -> Plan:
    """Return the night that belongs to a seed."""
    chance = Random(f"plan {seed}")

    def maybe(share: float, most: int) -> int:
        return chance.randint(1, most) if chance.random() < share else 0

    calm = chance.random() < 0.15
    theme = chance.random()
    if theme < 0.05:
        return _replaced_in_the_dark(seed, chance)
    if theme < 0.1:
        return _settled_again_at_once(seed, chance)
    if theme < 0.13:
        return _named_anew(seed, chance)
    moves = 0 if calm else maybe(0.35, 2)
    limits = chance.choice((S3, S3, STREAM, BLOCKS) if moves else (S3, S3, STREAM, BLOCKS, PLAIN))
    return Plan(
        seed=seed,
        seconds=chance.choice((30.0, 60.0, 120.0)),
        policy=_policy(chance),
        limits=limits,
        trainers=tuple(_trainer(chance) for _ in range(chance.choice((1, 1, 2, 2, 3)))),
        loss=chance.choice((0.0, 0.0, 0.3, 0.3)),
        overflows=maybe(0.2, 2),
        fault=0.0 if calm else chance.choice((0.0, 0.05, 0.1, 0.3)),
        # Without conditions, one's own late requests are a second writer.
        late=0.0 if calm or limits is PLAIN else chance.choice((0.0, 0.03, 0.1)),
        zombies=0.0 if limits is PLAIN else 0.5,
        lag=chance.choice((0.02, 0.3, 0.9)),
        latency=chance.choice((0.02, 0.1, 0.5, 2.0)),
        kills=0 if calm else maybe(0.5, 4),
        pauses=maybe(0.2, 2),
        stops=0 if calm else maybe(0.2, 2),
        notices=maybe(0.2, 2),
        outages=0 if calm else maybe(0.3, 2),
        gone=0 if calm else maybe(0.2, 3),
        trainer_deaths=maybe(0.4, 3),
        emptied=0 if calm or moves else maybe(0.1, 1),
        full=0 if calm else maybe(0.2, 2),
        lost_pins=maybe(0.2, 3),
        meddlers=maybe(0.3, 6),
        bad_reads=0.0 if calm else chance.choice((0.0, 0.0, 0.02, 0.1)),
        jumps=0 if moves else maybe(0.1, 2),
        strangers=maybe(0.2, 8),
        moves=moves,
        is_forgetful=chance.random() < 0.3,
        is_polled=chance.random() < 0.1,
        has_lease=chance.random() < 0.8,
        has_links=chance.random() < 0.85,
    )


def _policy(chance: Random) -> Policy:
    return Policy(
        whole_bytes=chance.choice((0, 30, 30, 1000)),
        piece_bytes=chance.choice((16, 32, 64)),
        hands=chance.choice((1, 2, 4, 4)),
        backlog=chance.choice(("newest", "newest", "keep-all")),
        companions=chance.random() < 0.3,
    )


def _trainer(chance: Random) -> tuple[str, float, int]:
    return (chance.choice(USUAL), chance.choice((4.0, 10.0, 25.0)), chance.randint(1, 3))


def _replaced_in_the_dark(seed: int, chance: Random) -> Plan:
    """Return a night in which files are replaced by others with the same times, while nobody looks.

    A daemon that is killed in the middle of an upload finds something else under the same name.
    """
    return Plan(
        seed=seed,
        seconds=90.0,
        policy=Policy(whole_bytes=0, piece_bytes=16, hands=chance.choice((1, 4))),
        limits=S3,
        trainers=(("synced", chance.choice((4.0, 8.0)), 1),) * 2,
        latency=0.5,
        kills=8,
        has_links=False,
    )


def _settled_again_at_once(seed: int, chance: Random) -> Plan:
    """Return a night in which pins are lost, so that the very same save settles again and again.

    The answers to what was ordered for it before come when it is on its way once more.
    """
    return Plan(
        seed=seed,
        seconds=60.0,
        policy=Policy(whole_bytes=1000, hands=chance.choice((2, 6))),
        limits=chance.choice((S3, STREAM)),
        trainers=(("hugging face", 10.0, 3), ("staged", 10.0, 3)),
        late=0.05,
        latency=2.0,
        lost_pins=40,
        meddlers=6,
    )


def _named_anew(seed: int, chance: Random) -> Plan:
    """Return a night in which whole checkpoints get other names, seen by events or only listed.

    Our own links moved the times that tell in which order their files were written.
    """
    return Plan(
        seed=seed,
        seconds=90.0,
        policy=Policy(whole_bytes=chance.choice((0, 1000)), piece_bytes=32),
        limits=S3,
        trainers=(("promoted", chance.choice((4.0, 10.0)), 3),) * 2,
        latency=chance.choice((0.02, 0.5)),
        kills=chance.choice((0, 3)),
        loss=chance.choice((0.0, 0.3)),
        is_forgetful=chance.random() < 0.3,
        is_polled=chance.random() < 0.3,
        has_lease=chance.random() < 0.8,
        has_links=chance.random() < 0.85,
    )
