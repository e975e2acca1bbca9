"""Layouts of the user's own: what a table may say, and what is said about one that is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from ckptsyncd.core.seeing.layouts import Layout, Marker
from ckptsyncd.errors import UsageError
from ckptsyncd.settings import load
from ckptsyncd.settings.layouts import KEYS, Layouts

WHOLE = r"""
[[layout]]
name = "mine"
folder = 'save-\d+'
marker = 'index\.json'
ranks = 'rank\d+\.bin'
step = 'save-(\d+)'

[[layout]]
name = "flat"
signs = ['weights\.bin', 'state\.bin']
claims = "flat"
members = '.+\.bin'
ranked = true
"""


def loaded(tmp_path: Path, text: str) -> tuple[Layout, ...]:
    """Return the layouts of a config file."""
    file = tmp_path / "c.toml"
    file.write_text(text)
    (tmp_path / "run").mkdir(exist_ok=True)
    flags = {"dir": str(tmp_path / "run"), "url": f"file://{tmp_path}/durable"}
    return load(flags, {"HOME": str(tmp_path)}, str(file)).settings.layout


def test_tables_become_layouts_in_their_order(tmp_path: Path) -> None:
    """Every key stands for the field of its name; the marker is what is written last."""
    mine, flat = loaded(tmp_path, WHOLE)
    mark = Marker(path=r"index\.json", ranks=r"rank\d+\.bin")
    assert (mine.name, mine.folder, mine.markers) == ("mine", r"save-\d+", (mark,))
    assert mine.step == r"save-(\d+)"
    assert (flat.signs, flat.claims) == ((r"weights\.bin", r"state\.bin"), "flat")
    assert (flat.members, flat.ranked) == (r".+\.bin", True)


def test_what_is_shown_can_be_read_again(tmp_path: Path) -> None:
    """``config --show`` prints layouts as a file may hold them."""
    layouts = loaded(tmp_path, WHOLE)
    assert loaded(tmp_path, f"layout = {Layouts().show(layouts)}\n") == layouts


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ('name = "x"\nfoldr = "a"', 'unknown key "foldr" in a layout; the nearest is "folder"'),
        ('name = "x"\nfolder = "("', "folder is no regular expression"),
        ('name = "x"\nfolder = 3', "a number, not a string"),
        ('name = "x"', "a layout needs one of folder, file, group, signs"),
        ('folder = "a"', "a layout's name is lower-case letters"),
        ('name = "x"\ngroup = "a.*"', "group needs a group (?P<unit>...)"),
        ('name = "x"\nfolder = "a"\nstep = "a"', "step needs a group"),
        ('name = "x"\nfolder = "a"\nranks = "a"', "there is none"),
        ('name = "x"\nfolder = "a"\nclaims = "all"', 'claims is "tree" or "flat"'),
        ('name = "x"\nsigns = "a"', "a string, not a list"),
    ],
)
def test_a_wrong_table_is_refused(table: str, words: str, tmp_path: Path) -> None:
    """The file, its line and what is wrong are named in one line; all keys in the hint."""
    with pytest.raises(UsageError) as caught:
        loaded(tmp_path, f"\n[[layout]]\n{table}\n")
    text = str(caught.value)
    assert words in text
    assert f"{tmp_path}/c.toml:2" in text
    assert all(key in caught.value.hint for key in KEYS)
