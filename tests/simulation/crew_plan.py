"""What kind of night several machines are to have: by its seed, everything that happens in it."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from ckptsyncd.core.facts import Limits
from ckptsyncd.core.rules.policy import Policy
from tests.simulation.plan import S3, STREAM

#: One save of a name is this far from the next one, and its nodes are not so far apart.
SAVE_SECONDS = 40.0
SKEW_SECONDS = 4.0
WINDOW_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Crew:
    """What kind of night it is to be: numbers say how often something happens.

    ``twice``: a node writes its shard again. ``pauses``, ``cuts``: a daemon is stopped or cut off.
    ``zombies``: a machine is replaced and its daemon lives on. ``losses``: of a ledger.
    ``jumps``: of one machine's clock. ``is_rewritten``: all saves have one name. ``is_marked``: a
    done-file names the save. ``dies``: one machine goes for good before the last save.
    ``is_uncounted``: no daemon knows how many there are, and an index names the shards.
    """

    seed: int
    nodes: int
    saves: int
    limits: Limits
    is_rewritten: bool = False
    fault: float = 0.0
    late: float = 0.0
    latency: float = 0.05
    kills: int = 0
    pauses: int = 0
    cuts: int = 0
    zombies: int = 0
    twice: int = 0
    losses: int = 0
    is_marked: bool = False
    dies: bool = False
    jumps: int = 0
    is_uncounted: bool = False


def crew_of(seed: int, most_nodes: int = 16) -> Crew:
    """Return the night that belongs to a seed."""
    chance = Random(f"crew {seed}")

    def maybe(share: float, most: int) -> int:
        return chance.randint(1, most) if chance.random() < share else 0

    calm = chance.random() < 0.2
    return Crew(
        seed=seed,
        nodes=chance.choice([n for n in (2, 2, 3, 4, 5, 8, 16) if n <= most_nodes]),
        saves=chance.randint(1, 3),
        limits=chance.choice((S3, S3, STREAM)),
        is_rewritten=chance.random() < 0.4,
        fault=0.0 if calm else chance.choice((0.0, 0.05, 0.2)),
        late=0.0 if calm else chance.choice((0.0, 0.05)),
        latency=chance.choice((0.02, 0.1, 0.5)),
        kills=0 if calm else maybe(0.6, 6),
        pauses=0 if calm else maybe(0.5, 3),
        cuts=0 if calm else maybe(0.5, 3),
        zombies=0 if calm else maybe(0.4, 2),
        twice=0 if calm else maybe(0.2, 1),
        losses=0 if calm else maybe(0.3, 2),
        is_marked=chance.random() < 0.3,
        dies=chance.random() < 0.15,
        jumps=0 if calm else maybe(0.3, 2),
        is_uncounted=chance.random() < 0.25,
    )


def crew_policy(crew: Crew) -> Policy:
    """Return the rules of every node."""
    return Policy(
        quiet_seconds=1.0,
        ranks_quiet_seconds=2.0,
        whole_bytes=1000 if crew.seed % 2 else 8,
        piece_bytes=16,
        done_file="DONE" if crew.is_marked else "",
        save_window_seconds=WINDOW_SECONDS,
        incomplete_seconds=60.0,
        companions=False,
    )
