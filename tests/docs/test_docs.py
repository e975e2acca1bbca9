"""The documentation says what the code says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from ckptsyncd.cli.lazy import loaded
from ckptsyncd.cli.program import COMMANDS
from tests.docs.blocks import BLOCKS, ROOT, filled, pages

PAGES = pages()
README = (ROOT / "README.md").read_text(encoding="utf-8")
CODE = re.compile(r"^```(?:sh|shell|bash|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)
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


def shown_commands() -> list[str]:
    """Return every line of a page's code that types one of our commands."""
    texts = [
        page.read_text(encoding="utf-8") for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]
    ]
    lines = [
        line.strip() for text in texts for code in CODE.findall(text) for line in code.split("\n")
    ]
    return sorted({line for line in lines if re.search(r"(^|/|&& |exec |\$ )ckptsyncd ", line)})


@pytest.mark.parametrize("line", shown_commands())
def test_commands_that_are_shown_can_be_typed(line: str) -> None:
    """The commands and flags in the code of every page are those of the program."""
    words = shlex.split(re.split(r"(?:^|/| )ckptsyncd ", line, maxsplit=1)[1], comments=True)
    end = next((n for n, word in enumerate(words) if word[:1] in {"|", ">", ";", "&"}), len(words))
    command = loaded(COMMANDS[words[0]].target)
    assert isinstance(command, click.Command)
    with command.make_context(words[0], words[1:end]):
        pass


def test_the_readme_begins_with_two_commands() -> None:
    """The first starts the program; the second runs the tests, and the gate runs it as it is."""
    first, second, *_ = re.findall(r"^```sh\n(.*)\n```", README, re.MULTILINE)
    for command in (first, second):
        assert command.startswith("python3 -m venv .venv && .venv/bin/pip install -q ")
    assert first.endswith(' && .venv/bin/ckptsyncd run ./checkpoints "file://$PWD/durable"')
    assert second.endswith(" && .venv/bin/python -m pytest -q -n auto")
