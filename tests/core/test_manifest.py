"""The commit record: exact both ways, and hostile ones refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ckptsyncd.core.records.manifest import Manifest, StoredFile, decode, encode, safe_path
from ckptsyncd.errors import Never, PathRefused
from tests.core.parts import manifest, stored

NAMES = st.text(min_size=1, max_size=20).filter(lambda n: n not in (".", "..") and "\0" not in n)
PATHS = st.lists(NAMES.filter(lambda n: "/" not in n), min_size=1, max_size=4).map("/".join)
FILES = st.builds(
    stored,
    path=PATHS,
    size=st.integers(0, 2**60),
    mtime_ns=st.integers(-(2**62), 2**62),
    crc64nvme=st.integers(0, 2**64 - 1),
)


@given(
    files=st.lists(FILES, min_size=1, max_size=5, unique_by=lambda file: file.path),
    step=st.none() | st.integers(0, 2**40),
    late=st.booleans(),
)
def test_what_is_encoded_is_decoded(
    files: list[StoredFile], step: int | None, *, late: bool
) -> None:
    """Decoding is the exact inverse of encoding."""
    one = manifest(*files, step=step, late=late, stale=("x",))
    assert decode(encode(one)) == one


def test_links_and_directories_keep_what_they_are() -> None:
    """A symlink keeps its target, a directory has neither key nor checksum."""
    link = StoredFile("run/l", "symlink", 0, 0o777, 1, target="../x")
    folder = StoredFile("run/d", "directory", 0, 0o755, 0)
    one = manifest(stored(), link, folder)
    assert decode(encode(one)).files == (stored(), link, folder)


PIECES = stored(size=25, piece_bytes=10, piece_sums=(1, 2, 2**64 - 1))


def test_checksums_of_pieces_come_back() -> None:
    """A file that was sent in pieces keeps one checksum for each."""
    assert decode(encode(manifest(PIECES))).files == (PIECES,)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("piece_sums", "1" * 32),
        ("piece_sums", "x" * 48),
        ("piece_sums", ["1" * 16] * 3),
        ("piece_bytes", 0),
        ("piece_bytes", 2**70),
        ("piece_bytes", None),
    ],
)
def test_checksums_that_do_not_cover_the_file_are_refused(key: str, value: object) -> None:
    """Whoever reads a piece back may rely on its place and its checksum."""
    document = json.loads(encode(manifest(PIECES)))
    document["files"][0][key] = value
    with pytest.raises(Never):
        decode(json.dumps(document).encode())


@pytest.mark.parametrize(
    "path",
    ["", "/etc/passwd", "../x", "a/../../x", "a//b", "a/./b", ".", "a/", "a\0b", None, 7, "\ud800"],
)
def test_names_that_leave_the_root_are_refused(path: object) -> None:
    """No manifest can make a restore write outside its directory."""
    with pytest.raises(PathRefused):
        safe_path(path)
    document = json.loads(encode(manifest()))
    document["files"][0]["path"] = path
    with pytest.raises(PathRefused):
        decode(json.dumps(document).encode())


BROKEN: list[tuple[str, Any]] = [
    ("format", 2),
    ("format", "1"),
    ("edition", 0),
    ("edition", 2**63),
    ("edition", True),
    ("step", -1),
    ("saved_at", "now"),
    ("saved_at", 1e300),
    ("files", []),
    ("files", {}),
    ("files", [7]),
    ("files", [{"kind": "fifo"}]),
    ("writer", None),
    ("series", 7),
]


@pytest.mark.parametrize(("field", "value"), BROKEN)
def test_rubbish_is_refused(field: str, value: object) -> None:
    """A record of wrong types or absurd sizes is no manifest."""
    document = json.loads(encode(manifest()))
    document[field] = value
    with pytest.raises(Never):
        decode(json.dumps(document).encode())


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b"[" * 100_000, b'{"format":1}'])
def test_what_is_no_json_object_is_refused(data: bytes) -> None:
    """Neither damaged nor hostile bytes do more than raise."""
    with pytest.raises(Never):
        decode(data)


@pytest.mark.parametrize("text", ["", "12", "g" * 16, "-123456789abcdef"])
def test_a_checksum_must_be_one(text: str) -> None:
    """A checksum is 16 hexadecimal digits."""
    document = json.loads(encode(manifest()))
    document["files"][0]["crc64nvme"] = text
    with pytest.raises(Never):
        decode(json.dumps(document).encode())


def test_a_path_is_named_once() -> None:
    """Two files cannot be restored to the same place."""
    document = json.loads(encode(manifest()))
    document["files"] *= 2
    with pytest.raises(PathRefused):
        decode(json.dumps(document).encode())


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        (manifest(step=500), manifest(step=100, lineage=1)),
        (manifest(step=100, saved_at=9.0), manifest(step=200, saved_at=5.0)),
        (manifest(step=100), manifest(step=None, after_step=200)),
        (manifest(step=None, after_step=100), manifest(step=None, after_step=100, saved_at=9.0)),
        (manifest(edition=1), manifest(edition=2)),
    ],
)
def test_manifests_are_ranked(older: Manifest, newer: Manifest) -> None:
    """Newest is the highest lineage, then step, then save time, then edition."""
    assert older.rank() < newer.rank()
