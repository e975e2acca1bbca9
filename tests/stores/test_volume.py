"""A directory keeps every promise, whichever way its file system lets it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ckptsyncd.core.ports import Store
from ckptsyncd.stores.volume.probe import Findings
from ckptsyncd.stores.volume.store import VolumeStore
from tests.stores.conformance import Behind, Conformance

WORK = ".ckptsyncd/tmp/"


class TestVolume(Conformance):
    """The suite on a directory."""

    @pytest.fixture
    def store(self, tmp_path: Path) -> VolumeStore:
        """Return a store whose directory does not exist yet."""
        return VolumeStore(str(tmp_path / "durable"))

    @pytest.fixture
    def behind(self, tmp_path: Path) -> Behind:
        """Read the files."""
        root = tmp_path / "durable"

        def look() -> dict[str, bytes]:
            files = [path for path in root.rglob("*") if path.is_file()]
            named = {path.relative_to(root).as_posix(): path.read_bytes() for path in files}
            return {key: data for key, data in named.items() if not key.startswith(WORK)}

        return look

    def reopened(self, store: Store) -> Store:
        """Open the same directory again."""
        assert isinstance(store, VolumeStore)
        return VolumeStore(store._tree.path)


class TestVolumeReadBack(TestVolume):
    """The suite with every object read back before it gets its name, as on FUSE."""

    @pytest.fixture
    def store(self, tmp_path: Path) -> VolumeStore:
        """Return a store that reads back."""
        return VolumeStore(str(tmp_path / "durable"), read_back=True)


class TestVolumeWithoutLinks(TestVolume):
    """The suite on a file system that has locks and no hard links."""

    @pytest.fixture
    def store(self, tmp_path: Path) -> VolumeStore:
        """Return a store that was told so."""
        known = Findings(
            links=False, renames=True, locks=True, writes_anywhere=True, file_system="vfat"
        )
        return VolumeStore(str(tmp_path / "durable"), findings=known)
