"""A hostile store touches nothing outside the target, and is refused in plain words."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ckptsyncd.checksum import crc64nvme
from ckptsyncd.core.facts import ObjectFact
from ckptsyncd.core.records import names
from ckptsyncd.core.records.documents import Pointer
from ckptsyncd.core.records.manifest import MAX_FILES, Manifest, StoredFile, Writer
from ckptsyncd.errors import CkptsyncdError, NothingVerifies, PathRefused
from ckptsyncd.recover.catalog import read_catalog
from ckptsyncd.recover.plan import Folds, check_names
from ckptsyncd.recover.request import RestoreRequest
from ckptsyncd.recover.restore import restore
from ckptsyncd.stores.memory import BytesBody, MemoryStore
from tests.recover import bench

SETTINGS = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

#: Names of which hostile paths are made.
GOOD = st.sampled_from(["a", "b", "c", "link", "\udcff"])
UGLY = (
    *("..", ".", "", ".ckptsyncd", "A", "canary", "n" * 300),
    *("\u00e9", "e\u0301", "\udcff", "\ud800", "x\0"),
)
PARTS = GOOD | st.sampled_from(UGLY)
MILD = st.lists(GOOD, min_size=1, max_size=3).map("/".join)
PATHS = (
    MILD
    | st.lists(PARTS, min_size=1, max_size=4).map("/".join)
    | st.sampled_from(
        ["/etc/passwd", "c", "c/a", "c/link", "c/link/x", "c/b/../../../x", "../canary"]
    )
)
TARGETS = PATHS | st.sampled_from(["..", "../..", "/", "a/../../..", "../../canary", "link/.."])


@contextmanager
def sandbox() -> Iterator[tuple[Path, Path]]:
    """Yield a target and the directory around it, which must stay as it is."""
    with tempfile.TemporaryDirectory() as around:
        root = Path(around)
        (root / "canary").write_bytes(b"alive")
        (root / "target").mkdir()
        (root / "target" / "mine.py").write_bytes(b"mine")
        yield root, root / "target"


def outside(root: Path) -> dict[str, bytes]:
    """Return what lies around the target, and the file of the user's that lies in it."""
    files = [path for path in root.rglob("*") if not path.is_symlink() and path.is_file()]
    mine = root / "target" / "mine.py"
    return {
        str(path): path.read_bytes()
        for path in files
        if root / "target" not in path.parents or path == mine
    }


def leads_out(target: Path) -> list[Path]:
    """Return the links in the target that lead out of it."""
    links = [path for path in target.rglob("*") if path.is_symlink()]
    root = target.resolve()
    return [link for link in links if not Path(os.path.realpath(link)).is_relative_to(root)]


@st.composite
def rows(draw: st.DrawFn) -> dict[str, Any]:
    """Draw one file's row of a manifest."""
    kind = draw(st.sampled_from(["file", "file", "symlink", "directory"]))
    row: dict[str, Any] = {
        "path": draw(PATHS),
        "kind": kind,
        "size": 1,
        "mode": draw(st.sampled_from([0, 0o644, 0o4755, 0o777])),
        "mtime_ns": draw(st.sampled_from([0, -(2**63), 2**63 - 1, bench.MTIME_NS])),
    }
    if kind == "file":
        row |= {"key": draw(st.sampled_from(["data", "c/a"])), "crc64nvme": CHECKSUM}
        if draw(st.booleans()):
            row["twin"] = draw(PATHS)
    if kind == "symlink":
        row["target"] = draw(TARGETS)
    return row


CHECKSUM = f"{crc64nvme(b'x'):016x}"


def document(checkpoint: str, files: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a manifest as JSON would have it."""
    return {
        "format": 1,
        "checkpoint": checkpoint,
        "edition": 1,
        "series": "",
        "step": 1,
        "layout": "directory",
        "evidence": "marker",
        "save_id": "../../evil",
        "saved_at": 1.0,
        "committed_at": 1.0,
        "files": files,
        "writer": {"host": "h", "epoch": 1, "nonce": "n", "version": "0"},
    }


def hostile(checkpoint: str, data: bytes) -> MemoryStore:
    """Return a store with this manifest, and with the objects that it may name."""
    store = MemoryStore()
    for key in ("data", "c/a"):
        store.put_whole(key, BytesBody(b"x"), "n", create_only=True)
    with suppress(UnicodeEncodeError):
        store.put_small(names.manifest_key(checkpoint, 1), data, None)
    return store


@given(checkpoint=MILD | PATHS, files=st.lists(rows(), min_size=1, max_size=6), force=st.booleans())
@SETTINGS
def test_names_never_lead_out(checkpoint: str, files: list[dict[str, Any]], force: bool) -> None:  # noqa: FBT001
    """Whatever paths and link targets a manifest has, nothing outside the target is touched."""
    with sandbox() as (root, target):
        before = outside(root)
        store = hostile(checkpoint, json.dumps(document(checkpoint, files)).encode())
        with suppress(CkptsyncdError):
            restore(store, target, RestoreRequest(force=force, workers=2), pace=bench.pace())
        assert outside(root) == before
        assert not leads_out(target)
        assert not [path for path in target.rglob("*") if path.lstat().st_mode & 0o6000]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["path", "kind", "size", "files", "key"]), inner, max_size=4
        )
    ),
    max_leaves=8,
)


@given(
    where=st.sampled_from([*document("c", []), "files.0", "files.0.size", "files.0.path"]),
    value=JSON,
)
@SETTINGS
def test_wrong_types_are_told(where: str, value: object) -> None:
    """Whatever stands in a field, the answer is a restore or one of our own errors."""
    good: dict[str, Any] = {"path": "c", "kind": "file", "size": 1, "mode": 0, "mtime_ns": 5}
    whole = document("c", [good | {"key": "data", "crc64nvme": CHECKSUM}])
    field, _, rest = where.partition(".")
    if not rest:
        whole[field] = value
    elif rest == "0":
        whole["files"][0] = value
    else:
        whole["files"][0][rest.partition(".")[2]] = value
    with sandbox() as (root, target):
        before = outside(root)
        with suppress(CkptsyncdError):
            store = hostile("c", json.dumps(whole).encode())
            restore(store, target, RestoreRequest(workers=1), pace=bench.pace())
        assert outside(root) == before


@given(data=st.binary(max_size=200) | st.sampled_from([b"[" * 100_000, b'{"a":' * 5000, b"1e999"]))
@SETTINGS
def test_rubbish_is_told(data: bytes) -> None:
    """A manifest that is no JSON is listed as broken, whatever it is."""
    catalog = read_catalog(hostile("c", data), bench.pace())
    assert not catalog.entries
    assert len(catalog.broken) == 1
    assert catalog.broken[0].reason


@given(path=PATHS, text=TARGETS, kind=st.sampled_from(["file", "symlink", "directory"]))
@SETTINGS
def test_pointers_never_lead_out(path: str, text: str, kind: str) -> None:
    """Whatever the stored pointers say, nothing outside is touched and no file of the user's."""
    with sandbox() as (root, target):
        store = MemoryStore()
        bench.write(root / "there", "c/a", b"x")
        manifest = bench.commit(store, root / "there", "c")
        bench.put_pointers(
            store, manifest, Pointer(path, kind, text), Pointer("mine.py", kind, "c")
        )
        before = outside(root)
        with suppress(CkptsyncdError):
            restore(store, target, RestoreRequest(), pace=bench.pace())
        assert outside(root) == before
        assert not leads_out(target)
        assert (target / "c/a").read_bytes() == b"x"


def file(path: str, kind: str = "file") -> StoredFile:
    """Return a file's row."""
    return StoredFile(path, kind, 1, 0o644, 1, "data", target="a")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rows", "folds", "words"),
    [
        ((file("c/A"), file("c/a")), Folds(case=True), "one for this file system"),
        ((file("C/a"), file("c/b")), Folds(case=True), "one for this file system"),
        ((file("\u00e9"), file("e\u0301")), Folds(normalisation=True), "one for this file system"),
        ((file("\u00c9"), file("e\u0301")), Folds(True, True), "one for this file system"),
        ((file("\u00e9"), file("\udcc3\udca9")), Folds(), "one for this file system"),
        ((file(".CKPTSYNCD/x"),), Folds(case=True), "directory of ours"),
        ((file("c/.ckptsyncd/x"),), Folds(), "directory of ours"),
        ((file("c", "symlink"), file("c/x")), Folds(), "through a file or a link"),
        ((file("c/x"), file("c")), Folds(), "through a file or a link"),
        ((file("c" * 256),), Folds(), "too long"),
        ((file("/".join(["c" * 100] * 31)),), Folds(), "too long"),
    ],
)
def test_names_that_cannot_be_together(
    rows: tuple[StoredFile, ...], folds: Folds, words: str
) -> None:
    """Names that are each harmless and together not are refused with the reason."""
    with pytest.raises(PathRefused, match=words):
        check_names(rows, folds)


def test_names_that_differ_are_no_conflict() -> None:
    """Where the file system keeps case and normalisation apart, so do we."""
    check_names((file("c/A"), file("c/a"), file("\u00e9"), file("e\u0301")), Folds())


def test_a_huge_manifest_is_not_read(tmp_path: Path) -> None:
    """A manifest of two gigabytes is refused by its size, before its first byte is read."""

    class Huge(MemoryStore):
        """A store that lists a manifest of two gigabytes, and must not be asked for it."""

        def list(self, prefix: str) -> Iterator[ObjectFact]:
            """List it."""
            return iter([ObjectFact(f"{prefix}c.1.json", 2 << 30)])

        def get_small(self, key: str, most_bytes: int) -> tuple[bytes, str]:
            """Fail the test."""
            msg = f"{key} was asked for ({most_bytes})"
            raise AssertionError(msg)

    with pytest.raises(NothingVerifies, match="2147483648 bytes"):
        restore(Huge(), tmp_path, RestoreRequest(), pace=bench.pace())


def test_too_many_files_are_refused() -> None:
    """A manifest with more files than any checkpoint has is refused by their number."""
    data = json.dumps(document("c", [])).encode()
    many = b'"files": [' + b"0," * MAX_FILES + b"0]"
    catalog = read_catalog(hostile("c", data.replace(b'"files": []', many)), bench.pace())
    assert catalog.broken[0].reason == f"a manifest with {MAX_FILES + 1} files is refused"


def test_a_size_that_lies_is_found_before_it_is_written(tmp_path: Path) -> None:
    """A size that no object has makes no file of that size."""
    row = {"path": "c", "kind": "file", "size": 1 << 62, "mode": 0, "mtime_ns": 5, "key": "data"}
    store = hostile("c", json.dumps(document("c", [row | {"crc64nvme": CHECKSUM}])).encode())
    with pytest.raises(NothingVerifies, match=r"has 1 bytes, not"):
        restore(store, tmp_path, RestoreRequest(), pace=bench.pace())
    assert [path.name for path in (tmp_path / ".ckptsyncd").iterdir()] == ["restore.lock"]


def test_a_long_checkpoint_name_has_its_own_key(tmp_path: Path) -> None:
    """A name whose key is a hash is restored like any other."""
    name = "/".join(["n" * 120] * 3)
    bench.write(tmp_path / "there", name, b"x")
    store = MemoryStore()
    bench.commit(store, tmp_path / "there", name)
    restore(store, tmp_path / "here", RestoreRequest(), pace=bench.pace())
    assert (tmp_path / "here" / name).read_bytes() == b"x"


def test_a_manifest_under_a_foreign_key_is_broken() -> None:
    """A manifest counts only under its own key, so a copy cannot be taken for another edition."""
    store = MemoryStore()
    manifest = Manifest(
        checkpoint="c",
        edition=2,
        series="",
        step=1,
        after_step=-1,
        lineage=0,
        layout="file",
        evidence="format",
        save_id="s",
        saved_at=1.0,
        committed_at=1.0,
        files=(file("c"),),
        writer=Writer("h", 1, "n", "0"),
    )
    bench.put_manifest(store, manifest)
    bench.put_manifest(store, replace(manifest, edition=1))
    store.put_small(names.manifest_key("c", 1), store.objects()[names.manifest_key("c", 2)], None)
    catalog = read_catalog(store, bench.pace())
    assert [entry.edition for entry in catalog.entries] == [2]
    assert [broken.edition for broken in catalog.broken] == [1]
    assert os.sep not in catalog.broken[0].checkpoint
