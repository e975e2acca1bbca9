"""A directory keeps every promise on every kind of file system that can be mounted here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from itertools import count
from pathlib import Path

import pytest

from ckptsyncd.core.ports import Store
from tests.stores.mounts import Mounted, mounted
from tests.stores.test_volume import OnVolume

_numbers = count()

Mounting = Callable[[str], Mounted]


@pytest.fixture(scope="module")
def mounting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mounting]:
    """Mount each kind once, when it is asked for first."""
    with ExitStack() as stack:
        yield cache(lambda kind: stack.enter_context(mounted(kind, tmp_path_factory.mktemp(kind))))


class OnMount(OnVolume):
    """The suite on a directory of a mounted file system."""

    kind = ""
    checked = "crc64nvme"
    many = 25  # every record is flushed to a disk of its own

    @pytest.fixture
    def mount(self, mounting: Mounting) -> Mounted:
        """Return the file system of this class."""
        return mounting(self.kind)

    @pytest.fixture
    def durable(self, mount: Mounted) -> Path:
        """Name a directory on it that does not exist yet."""
        return mount.path / f"durable {next(_numbers)}"

    def test_it_is_what_it_is_taken_for(self, store: Store, mount: Mounted) -> None:
        """The probe names this file system and finds links, locks and writes anywhere."""
        limits = store.limits
        assert f": {mount.called}: create-only link; compare-and-set lock;" in store.describe()
        assert limits.create_only_finish
        assert limits.compare_and_set
        assert limits.pieces_in_parallel
        assert limits.checksum == self.checked


class TestOnExt4(OnMount):
    """ext4 on a loop device."""

    kind = "ext4"


class TestOnXfs(OnMount):
    """XFS with shared extents, on a loop device."""

    kind = "xfs"


class TestOnTmpfs(OnMount):
    """A file system in memory."""

    kind = "tmpfs"


class TestOnOverlay(OnMount):
    """Two layers, as in a container."""

    kind = "overlayfs"


class TestOnFuse(OnMount):
    """A program in user space: what it took is read back before it gets its name."""

    kind = "fuse"
    checked = "read back"
