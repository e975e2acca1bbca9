"""Pretended nights: whatever happens, nothing is called safe that is not, and all ends well."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.simulation.hunt import bad_nights
from tests.simulation.night import live_through

#: So many nights are lived through; a person who hunts asks for more.
NIGHTS = int(os.environ.get("CKPTSYNCD_NIGHTS", "2000"))
FIRST = int(os.environ.get("CKPTSYNCD_FIRST_NIGHT", "1"))
#: So many make one test, for workers that share the work.
CHUNK = 100
SEEDS = sorted((Path(__file__).parent / "seeds").glob("*.txt"))


@pytest.mark.slow
@pytest.mark.parametrize("first", range(FIRST, FIRST + NIGHTS, CHUNK))
def test_every_night_ends_well(first: int) -> None:
    """No random night breaks a promise: every check in ``oracle`` and ``night`` holds."""
    bad = bad_nights(range(first, min(first + CHUNK, FIRST + NIGHTS)))
    assert not bad, bad[0]


@pytest.mark.parametrize("path", SEEDS, ids=lambda path: path.stem)
def test_a_night_that_once_failed_ends_well(path: Path) -> None:
    """What was found once stays found: the file's name is the seed, its text says what it was."""
    assert path.read_text(encoding="utf-8").strip()
    live_through(int(path.stem))
