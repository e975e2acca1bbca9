"""Faults are built in on purpose, one at a time: the pretended nights must find each of them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ckptsyncd
from tests.mutants.mutants import MUTANTS, Mutant

TESTS = Path(__file__).parents[2]
PACKAGE = Path(ckptsyncd.__file__).parent

#: A fault that survives so many nights is not found (the control lives through as many).
MOST_NIGHTS = 400
CONTROL_NIGHTS = 60


def hunted(home: Path, nights: int, first: int = 1) -> subprocess.CompletedProcess[str]:
    """Hunt for a fault of the package in ``home`` in a process of its own."""
    path = os.pathsep.join([str(home), str(TESTS)])
    hunt = [sys.executable, "-m", "tests.simulation.hunt", "--package"]
    command = [*hunt, str(first), str(nights)]
    return subprocess.run(
        command,
        cwd=home,
        env=os.environ | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def with_fault(home: Path, mutant: Mutant) -> None:
    """Copy the package into ``home`` and build the fault in."""
    shutil.copytree(PACKAGE, home / "ckptsyncd", ignore=shutil.ignore_patterns("__pycache__"))
    for module, old, new in mutant.edits:
        place = home / "ckptsyncd" / module
        text = place.read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{mutant.name} fits {text.count(old)} places of {module}"
        place.write_text(text.replace(old, new), encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_nights_find_the_fault(mutant: Mutant, tmp_path: Path) -> None:
    """A program with this fault breaks a promise within some hundred nights, and it is seen."""
    with_fault(tmp_path, mutant)
    result = hunted(tmp_path, MOST_NIGHTS, mutant.first)
    assert result.stdout.startswith(str(tmp_path)), result.stdout + result.stderr
    assert "Traceback" not in result.stderr, result.stderr
    assert result.returncode == 1, f"{mutant.name} was not found:\n{result.stdout}"


@pytest.mark.slow
def test_the_nights_find_no_fault_where_there_is_none(tmp_path: Path) -> None:
    """The copy without a fault lives through the nights: what is found above is the fault."""
    with_fault(tmp_path, Mutant("none", ()))
    result = hunted(tmp_path, CONTROL_NIGHTS)
    assert result.stdout.startswith(str(tmp_path)), result.stdout + result.stderr
    assert result.returncode == 0, result.stdout + result.stderr


def test_at_least_ten_faults_are_tried() -> None:
    """Every fault has its own name, and there are enough of them."""
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 10
