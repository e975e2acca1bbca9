"""Faults in what several machines do together: the nights of crews must find each of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutants.crew_mutants import CREW_MUTANTS
from tests.mutants.mutants import Mutant
from tests.mutants.test_mutants import TESTS, with_fault

#: A fault that survives so many nights is not found (the control lives through as many).
MOST_NIGHTS = 60


def hunted(home: Path) -> subprocess.CompletedProcess[str]:
    """Hunt for a fault of the package in ``home`` in a process of its own."""
    path = os.pathsep.join([str(home), str(TESTS)])
    return subprocess.run(
        [sys.executable, "-m", "tests.simulation.hunt_crew", "1", str(MOST_NIGHTS)],
        cwd=home,
        env=os.environ | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize("mutant", CREW_MUTANTS, ids=lambda mutant: mutant.name)
def test_the_crews_find_the_fault(mutant: Mutant, tmp_path: Path) -> None:
    """A program with this fault tears a checkpoint or leaves one undone, and it is seen."""
    with_fault(tmp_path, mutant)
    result = hunted(tmp_path)
    assert result.stdout.startswith(str(tmp_path)), result.stdout + result.stderr
    assert "Traceback" not in result.stderr, result.stderr
    assert result.returncode == 1, f"{mutant.name} was not found:\n{result.stdout}"


@pytest.mark.slow
def test_the_crews_find_no_fault_where_there_is_none(tmp_path: Path) -> None:
    """The copy without a fault lives through the nights: what is found above is the fault."""
    with_fault(tmp_path, Mutant("none", ()))
    result = hunted(tmp_path)
    assert result.stdout.startswith(str(tmp_path)), result.stdout + result.stderr
    assert result.returncode == 0, result.stdout + result.stderr
