"""Live through many nights: ``python -m tests.simulation.hunt FIRST COUNT [MOST_BAD]``.

Prints every night that went wrong and how long all of them took; exits with 1 if one did. With
``--package`` it first prints where the program under test was found.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable

import ckptsyncd
from tests.simulation.night import live_through


def bad_nights(seeds: Iterable[int], most: int = 1) -> list[str]:
    """Live through the nights in their order and return what went wrong, until so many did."""
    found: list[str] = []
    for seed in seeds:
        text = fault_of(seed)
        if text:
            found.append(text)
        if len(found) >= most:
            break
    return found


def fault_of(seed: int) -> str:
    """Live through one night and return what went wrong, or nothing."""
    try:
        live_through(seed)
    except AssertionError as error:
        return str(error)
    return ""


def main(arguments: list[str]) -> int:
    """Hunt, and tell what was found."""
    say = sys.stdout.write
    if arguments[:1] == ["--package"]:
        say(f"{ckptsyncd.__file__}\n")
        arguments = arguments[1:]
    first, count = int(arguments[0]), int(arguments[1])
    most = int(arguments[2]) if len(arguments) > 2 else 1
    begun = time.perf_counter()
    found = bad_nights(range(first, first + count), most)
    for text in found:
        say((text if most == 1 else text[:400]) + "\n")
    say(f"{count} nights, {len(found)} bad, {time.perf_counter() - begun:.1f} s\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
