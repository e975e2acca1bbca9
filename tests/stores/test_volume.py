"""A directory keeps every promise, whichever way its file system lets it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ckptsyncd.core.ports import Store
from ckptsyncd.stores.volume.probe import Findings
from ckptsyncd.stores.volume.store import VolumeStore
from tests.stores.conformance import Conformance
from tests.stores.samples import Behind, Mark

WORK = ".ckptsyncd/tmp/"


class OnVolume(Conformance):
    """The suite on a directory."""

    @pytest.fixture
    def durable(self, tmp_path: Path) -> Path:
        """Name a directory that does not exist yet."""
        return tmp_path / "durable"

    @pytest.fixture
    def store(self, durable: Path) -> VolumeStore:
        """Return a store there."""
        return VolumeStore(str(durable))

    @pytest.fixture
    def behind(self, durable: Path) -> Behind:
        """Read the files."""

        def look() -> dict[str, bytes]:
            files = [path for path in durable.rglob("*") if path.is_file()]
            named = {path.relative_to(durable).as_posix(): path.read_bytes() for path in files}
            return {key: data for key, data in named.items() if not key.startswith(WORK)}

        return look

    @pytest.fixture
    def mark(self, durable: Path) -> Mark:
        """Read the extended attribute."""

        def of(key: str) -> str | None:
            name = "user.ckptsyncd.nonce"
            path = str(durable / key)
            return os.getxattr(path, name).decode() if name in os.listxattr(path) else None

        return of

    def reopened(self, store: Store) -> Store:
        """Open the same directory again."""
        assert isinstance(store, VolumeStore)
        return VolumeStore(store._tree.path)


class TestVolume(OnVolume):
    """The suite wherever the tests keep their files."""


class TestVolumeReadBack(OnVolume):
    """The suite with every object read back before it gets its name, as on FUSE."""

    @pytest.fixture
    def store(self, durable: Path) -> VolumeStore:
        """Return a store that reads back."""
        return VolumeStore(str(durable), read_back=True)


class TestVolumeWithoutLinks(OnVolume):
    """The suite on a file system that has locks and no hard links."""

    @pytest.fixture
    def store(self, durable: Path) -> VolumeStore:
        """Return a store that was told so."""
        known = Findings(
            links=False, renames=True, locks=True, writes_anywhere=True, file_system="vfat"
        )
        return VolumeStore(str(durable), findings=known)


def test_scraps_of_killed_processes_are_swept(tmp_path: Path) -> None:
    """A record that a killed process left is removed when it is old, and left alone when new."""
    workroom = tmp_path / ".ckptsyncd/tmp"
    workroom.mkdir(parents=True)
    old, new = workroom / "0123456789abcdef.record", workroom / "fedcba9876543210.record"
    for scrap in (old, new, workroom / "somebody.else"):
        scrap.write_bytes(b"x")
    os.utime(old, ns=(0, 0))
    os.utime(workroom / "somebody.else", ns=(0, 0))
    VolumeStore(str(tmp_path)).put_small("a", b"1", None)
    assert not old.exists()
    assert new.exists()
    assert (workroom / "somebody.else").exists()


def test_what_a_kill_leaves_of_small_files_is_swept(tmp_path: Path) -> None:
    """Nobody comes back to an object that was stored in one go: its directory goes when it is old.

    One that is still written, and an upload in pieces that a restarted daemon goes on with, stay.
    """
    workroom = tmp_path / ".ckptsyncd/tmp"
    VolumeStore(str(tmp_path)).put_small("a", b"1", None)
    for name in ("old.1.whole", "busy.1.whole", "pieces.1"):
        (workroom / name).mkdir()
        for inside in ("data", "begun.json"):
            (workroom / name / inside).write_bytes(b"x")
            os.utime(workroom / name / inside, ns=(0, 0))
        os.utime(workroom / name, ns=(0, 0))
    os.utime(workroom / "busy.1.whole" / "data")
    VolumeStore(str(tmp_path)).put_small("a", b"2", None)
    left = sorted(path.name for path in workroom.iterdir() if path.is_dir())
    assert left == ["busy.1.whole", "pieces.1"]
