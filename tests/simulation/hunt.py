"""Live through many nights: ``python -m tests.simulation.hunt FIRST COUNT``."""

from __future__ import annotations

import sys
import time

from tests.simulation.night import live_through


def main() -> int:
    first, count = int(sys.argv[1]), int(sys.argv[2])
    most = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    begun = time.perf_counter()
    bad = 0
    for seed in range(first, first + count):
        try:
            live_through(seed)
        except AssertionError as error:
            bad += 1
            text = str(error)
            print(text if most == 1 else text[:400])
            if bad >= most:
                break
    took = time.perf_counter() - begun
    print(f"{seed - first + 1} nights in {took:.1f} s, {bad} bad")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
