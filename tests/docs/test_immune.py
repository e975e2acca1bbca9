"""Every fault of the list has its rule, and every test that is named there exists."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest

from tests.docs.blocks import ROOT

PAGE = (ROOT / "docs" / "immune.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| ([KL]?\d+) \|(.*)\|$", re.MULTILINE)
NAMED = re.compile(r"`([\w/]+\.py)::(\w+)`")
#: So many public reports, so many roots that they come down to, so many attacks of our own.
REPORTS, ROOTS, ATTACKS = 129, 9, 18


def rows() -> dict[str, list[str]]:
    """Return the cells of each line by its number."""
    return {number: text.split("|") for number, text in ROW.findall(PAGE)}


@cache
def names_in(path: str) -> frozenset[str]:
    """Return the names of the tests of a file."""
    tree = ast.parse((ROOT / "tests" / path).read_text(encoding="utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def test_no_line_is_missing() -> None:
    """Each report, root and attack has one line, with a fault, a rule and at least one test."""
    wanted = [*map(str, range(1, REPORTS + 1)), *(f"K{n}" for n in range(1, ROOTS + 1))]
    wanted += [f"L{n}" for n in range(1, ATTACKS + 1)]
    assert [number for number, _ in ROW.findall(PAGE)] == wanted
    for number, cells in rows().items():
        assert all(cell.strip() for cell in cells), number
        assert NAMED.search(cells[-1]), number


@pytest.mark.parametrize("named", sorted(set(NAMED.findall(PAGE))), ids="::".join)
def test_a_test_that_is_named_exists(named: tuple[str, str]) -> None:
    """Whoever renames or moves a test finds out that the list names it."""
    path, name = named
    assert (ROOT / "tests" / path).exists(), f"docs/immune.md names {path}, which has moved"
    assert name in names_in(path), f"docs/immune.md names {name} in {path}"


def test_reports_can_be_looked_up() -> None:
    """Every line of a report leads to it, or says in words what it was."""
    for number, cells in rows().items():
        if number.isdecimal():
            links = re.findall(r"\]\((.*?)\)", cells[0])
            assert links or "documentation" in cells[0], number
            for link in links:
                assert re.fullmatch(
                    r"https://github\.com/[\w.-]+/[\w.-]+(/(issues|pull)/\d+)?", link
                )
