"""Hunt for nights of several machines: ``python -m tests.simulation.hunt_crew FIRST COUNT``.

Prints where the program under test was found, every night that went wrong until three did, and how
long it took; exits with 1 if one did.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from itertools import islice

import ckptsyncd
from tests.simulation.crew import live_through
from tests.simulation.crew_plan import crew_of
from tests.simulation.oracle import Violation

#: So many nights that went wrong are enough to find out why.
MOST_BAD = 3


def bad_nights(seeds: Iterable[int]) -> list[str]:
    """Live through the nights and return what went wrong."""
    found = (text for seed in seeds if (text := fault_of(seed)))
    return list(islice(found, MOST_BAD))


def fault_of(seed: int) -> str:
    """Live through one night and return what went wrong, or nothing."""
    try:
        live_through(crew_of(seed))
    except Violation as error:
        return str(error)
    return ""


def main(arguments: list[str]) -> int:
    """Hunt, and tell what was found."""
    first, count = (int(text) for text in arguments)
    sys.stdout.write(f"{ckptsyncd.__file__}\n")
    begun = time.monotonic()
    bad = bad_nights(range(first, first + count))
    seconds = time.monotonic() - begun
    sys.stdout.write("\n\n".join([*bad, f"{count} nights, {len(bad)} bad, {seconds:.1f} s\n"]))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
