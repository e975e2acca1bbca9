"""The documentation says what the code says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.blocks import BLOCKS, ROOT, filled, pages

PAGES = pages()
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("page", PAGES)
def test_what_is_made_from_code_is_up_to_date(page: str) -> None:
    """Tables and samples repeat the code word for word; 'python -m tests.docs' makes them anew."""
    assert (ROOT / page).read_text(encoding="utf-8") == PAGES[page], "run 'python -m tests.docs'"


@pytest.mark.parametrize("name", BLOCKS)
def test_every_block_is_on_a_page(name: str) -> None:
    """No table is made for nobody."""
    assert any(f"<!-- made: {name} -->" in text for text in PAGES.values())


def test_a_difference_is_noticed() -> None:
    """A table that says something else than the code is replaced, and nothing around it."""
    text = "before\n<!-- made: pure -->\n\nwrong\n<!-- end -->\nafter\n"
    right = filled(text)
    assert right != text
    assert filled(right) == right
    assert right.startswith("before\n<!-- made: pure -->\n\n`bisect`")
    assert right.endswith("\n\n<!-- end -->\nafter\n")
    with pytest.raises(KeyError):
        filled("<!-- made: nothing-of-this-name -->\n<!-- end -->")


@pytest.mark.parametrize(
    "page", sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]), ids=lambda page: page.name
)
def test_links_lead_somewhere(page: Path) -> None:
    """Every link to a file of ours names a file that is there."""
    links = LINK.findall(page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []
