"""Names in the store: one name, one place, and nothing leaves its directory."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckptsyncd.core.records import names

CHECKPOINTS = st.text(min_size=1, max_size=300).filter(lambda name: "\0" not in name)


@pytest.mark.parametrize(
    ("checkpoint", "edition", "path", "salt", "key"),
    [
        ("a.pt", 1, "a.pt", "", "a.pt"),
        ("run/c-5", 1, "run/c-5/x.pt", "", "run/c-5/x.pt"),
        ("run/c-5", 2, "run/c-5/x.pt", "", ".ckptsyncd/editions/run%2Fc-5/2/run/c-5/x.pt"),
        ("run/c-5", 1, "run/c-5/x.pt", "7", ".ckptsyncd/editions/run%2Fc-5/1-7/run/c-5/x.pt"),
        ("a#b", 1, "a#b", "", "a%23b"),
    ],
)
def test_data_lies_where_the_format_says(
    checkpoint: str, edition: int, path: str, salt: str, key: str
) -> None:
    """Edition 1 lies at its plain path, everything else below the editions."""
    assert names.data_key(checkpoint, edition, path, salt) == key


@given(CHECKPOINTS, st.integers(1, 10**8))
def test_a_manifest_key_is_read_back(checkpoint: str, edition: int) -> None:
    """What a manifest's key names can be told from the key alone."""
    key = names.manifest_key(checkpoint, edition)
    assert names.parse_manifest_key(key) == (names.quoted(checkpoint), edition)


@given(CHECKPOINTS)
def test_a_quoted_name_is_one_short_component(checkpoint: str) -> None:
    """No name of a checkpoint can reach out of its place or grow over a store's limits."""
    text = names.quoted(checkpoint)
    assert "/" not in text
    assert text not in ("", ".", "..")
    assert len(text) <= names.MAX_QUOTED_BYTES


@given(st.lists(CHECKPOINTS, min_size=2, max_size=2, unique=True))
def test_different_names_are_quoted_differently(pair: list[str]) -> None:
    """Two checkpoints never share a manifest (the root has two spellings of one name)."""
    one, other = pair
    if {one, other} != {".", ""}:
        assert names.quoted(one) != names.quoted(other)


@given(st.text(min_size=1, max_size=80))
def test_a_data_key_is_read_back(path: str) -> None:
    """The path that a key was made from can be told from the key."""
    assert names.path_of_key(names.key_of_path(path)) == path


@pytest.mark.parametrize(
    "key",
    [
        "a.pt",
        ".ckptsyncd/manifests/a.pt.json",
        ".ckptsyncd/manifests/.1.json",
        ".ckptsyncd/manifests/a.pt.1",
        ".ckptsyncd/manifests/a.pt.99999999999.json",
        ".ckptsyncd/claims/a.pt.1.json",
    ],
)
def test_other_keys_are_no_manifests(key: str) -> None:
    """A key that is none of ours is not taken for a commit."""
    assert names.parse_manifest_key(key) is None
