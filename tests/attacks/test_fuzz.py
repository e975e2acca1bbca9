"""Whatever stands in what others write: an answer, or one of our own errors, and soon.

What once broke something is kept in ``corpus/``, one file each; its first part names the reader.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ckptsyncd.core.records import manifest, memory
from ckptsyncd.core.records.documents import (
    Claim,
    Epoch,
    Latest,
    Pointers,
    Restorations,
    Tombstone,
)
from ckptsyncd.core.words import printable
from ckptsyncd.errors import CkptsyncdError
from ckptsyncd.report.status_read import from_json
from ckptsyncd.settings.load import load
from tests.attacks.hearing import BYTES, hear

SETTINGS = settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
CORPUS = Path(__file__).parent / "corpus"


def read_config(data: bytes, place: Path) -> None:
    """Read it as a config file."""
    place.write_bytes(data)
    load({"dir": str(place.parent / "root"), "url": f"file://{place.parent}/d"}, {}, str(place))


def recall(data: bytes, place: Path) -> None:
    """Take it for a row of each table of the ledger."""
    del place
    text = data.decode("utf-8", "surrogateescape")
    memory.recall({table: [("a", text), ("a/b//", text)] for table in memory.TABLES})


def read_status(data: bytes, place: Path) -> None:
    """Take it for what a daemon answers."""
    del place
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return
    if isinstance(document, dict):
        from_json(document)


READERS: dict[str, Callable[[bytes, Path], object]] = {
    "config": read_config,
    "manifest": lambda data, _: manifest.decode(data),
    "latest": lambda data, _: Latest.decode(data),
    "claim": lambda data, _: Claim.decode(data),
    "epoch": lambda data, _: Epoch.decode(data),
    "pointers": lambda data, _: Pointers.decode(data),
    "restored": lambda data, _: Restorations.decode(data),
    "tombstone": lambda data, _: Tombstone.decode(data),
    "ledger": recall,
    "status": read_status,
    "inotify": hear,
}

#: Words that the readers look for, so that what is made up gets past the first check.
WORDS = st.sampled_from(
    [
        *("format", "checkpoint", "edition", "series", "step", "lineage", "files", "path", "size"),
        *("key", "crc64nvme", "epoch", "nonce", "nonces", "writer", "restored", "pointers", "kind"),
        *("name", "target", "value", "listing", "number", "save_id", "checkpoints", "daemon"),
    ]
)
NUMBERS = st.sampled_from([-1, 0, 1, 2**31, 2**63, 2**64, 10**400, -(10**400), 1.5, 1e308, True])
TEXTS = st.sampled_from(["", "a", "../..", "/", "a\x1b[31m\r\n", "\ud800", "\u202e", "a" * 5000])
LEAVES = st.none() | NUMBERS | TEXTS | WORDS
DOCUMENTS = st.recursive(
    LEAVES,
    lambda below: st.lists(below, max_size=4) | st.dictionaries(WORDS | TEXTS, below, max_size=8),
    max_leaves=25,
)


def tried(reader: str, data: bytes, place: Path) -> None:
    """Let a reader read; nothing but our own errors may come out, each in bounded words."""
    said = ""
    try:
        READERS[reader](data, place / "file")
    except CkptsyncdError as error:
        said = printable(str(error))
    assert len(said.encode()) < 10_000


@pytest.mark.parametrize("reader", READERS)
@SETTINGS
@given(document=DOCUMENTS)
def test_any_document(reader: str, document: Any, tmp_path: Path) -> None:
    """Any JSON of any types, with the names that are looked for."""
    tried(reader, json.dumps(document).encode(), tmp_path)


@pytest.mark.parametrize("reader", READERS)
@SETTINGS
@given(data=st.binary(max_size=300))
def test_any_bytes(reader: str, data: bytes, tmp_path: Path) -> None:
    """Any bytes at all."""
    tried(reader, data, tmp_path)


@pytest.mark.parametrize("path", sorted(CORPUS.iterdir()), ids=lambda path: path.name)
def test_what_once_broke_something(path: Path, tmp_path: Path) -> None:
    """Deep nesting, numbers of any size, text that is none: each as it is kept."""
    tried(path.name.partition(".")[0], path.read_bytes(), tmp_path)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("opening", [b"[", b'{"a":', b'{"files":[', b"a=[", b"a={b="])
def test_nesting_without_end(reader: str, opening: bytes, tmp_path: Path) -> None:
    """A hundred thousand levels end no reader."""
    tried(reader, opening * 100_000, tmp_path)
    tried(reader, b"a=" + opening * 100_000, tmp_path)


@SETTINGS
@given(
    key=st.sampled_from(["hands", "quiet_seconds", "piece_bytes", "exclude", "layout", "sources"]),
    value=st.sampled_from(
        [
            *("nan", "inf", "-inf", "1e400", "9" * 400, "-0", "''", "'\u202e'", "[[]]", "{}"),
            *("[{}]", "true", "1979-05-27T07:32:00Z", "0x7fffffffffffffff", "'9999999999999d'"),
        ]
    ),
)
def test_any_value_of_a_setting(key: str, value: str, tmp_path: Path) -> None:
    """Numbers of any size and kind, and values of another type, are refused in words."""
    tried("config", f"{key} = {value}\n".encode(), tmp_path)


@SETTINGS
@given(data=BYTES)
def test_any_events(data: bytes, tmp_path: Path) -> None:
    """Unknown watches, lengths that lie, cut events, names that lead out: nothing leads out."""
    tried("inotify", data, tmp_path)
