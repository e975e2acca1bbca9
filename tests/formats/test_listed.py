"""Which files an index names: read off its text, never unpickled, bounded on whatever content."""

from __future__ import annotations

import json
import os
import pickle
import tempfile
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckptsyncd.formats.listed import Listed, listed


def read(name: str, data: bytes) -> Listed:
    """Return what a file of this name and content lists."""
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.flush()
        return listed(file.fileno(), name, os.fstat(file.fileno()).st_size)


def test_an_index_names_its_shards_once() -> None:
    """The values of the weight map, sorted, and the total of its metadata."""
    index = {
        "metadata": {"total_size": 77},
        "weight_map": {"a": "2.bin", "b": "1.bin", "c": "2.bin"},
    }
    assert read("x/m.bin.index.json", json.dumps(index).encode()) == (("1.bin", "2.bin"), 77)


class Shard:
    """What the metadata of a distributed checkpoint holds of each shard."""

    def __init__(self, name: str) -> None:
        """Name it."""
        self.relative_path = name

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        """Do harm where somebody loads it."""
        return os.abort, (self.relative_path,)


def test_metadata_is_searched_and_not_loaded() -> None:
    """Names are found in a pickle that would end the process if it were loaded."""
    data = pickle.dumps([Shard("__0_0.distcp"), Shard("__13_2.distcp"), Shard("__0_0.distcp")])
    assert read("step-1/.metadata", data) == (("__0_0.distcp", "__13_2.distcp"), 0)


def test_a_name_across_two_blocks_is_found() -> None:
    """Wherever a name lies, it is read as a whole."""
    for before in range(2**20 - 14, 2**20 + 2):
        assert read(".metadata", b"x" * before + b"__12_3.distcp!")[0] == ("__12_3.distcp",)


def test_metadata_that_is_too_long_lists_nothing() -> None:
    """Some of its names would pass for all of them."""
    with tempfile.TemporaryFile() as file:
        file.write(b"__0_0.distcp")
        file.truncate(256 * 2**20)
        assert listed(file.fileno(), ".metadata", 256 * 2**20)[0] == ("__0_0.distcp",)
        assert listed(file.fileno(), ".metadata", 256 * 2**20 + 1) == ((), 0)


@pytest.mark.parametrize(
    "index",
    [
        [],
        {},
        {"weight_map": []},
        {"weight_map": {"a": 1}},
        {"weight_map": {"a": "../out.bin"}},
        {"weight_map": {"a": "/etc/passwd"}},
        {"weight_map": {"a": ""}},
    ],
)
def test_other_json_lists_nothing(index: object) -> None:
    """What is no index, or names what could not lie beside it, is no evidence of anything."""
    assert read("a.index.json", json.dumps(index).encode())[0] == ()


@pytest.mark.parametrize("total", [-1, "9", True, None, 1e400, 2**80])
def test_odd_totals_say_nothing(total: object) -> None:
    """Only a sensible number of bytes is one."""
    index = {"metadata": {"total_size": total}, "weight_map": {"a": "1.bin"}}
    assert read("a.index.json", json.dumps(index).encode()) == (("1.bin",), 0)


@given(name=st.sampled_from(["a.index.json", ".metadata", "a.pt"]), data=st.binary(max_size=200))
def test_rubbish_never_raises(name: str, data: bytes) -> None:
    """Whatever it holds, names come back or none."""
    assert all(isinstance(one, str) for one in read(name, data)[0])
