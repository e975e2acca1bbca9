"""On the trainer's own file system a volume has the kernel share or copy where that is cheaper."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from ckptsyncd.checksum import crc64nvme
from ckptsyncd.core.facts import Piece
from ckptsyncd.edge.bodies import FileBody
from ckptsyncd.edge.clock import ticks
from ckptsyncd.edge.pace import Pace, PacedBody
from ckptsyncd.stores.counted import CountedStore
from ckptsyncd.stores.volume.store import VolumeStore
from tests.stores.mounts import mounted
from tests.stores.samples import NONCE, some_bytes

PIECE = 8 * 1024**2
DATA = some_bytes(3 * PIECE + 777)


class Unread(FileBody):
    """A body that counts how much of it was read."""

    read_bytes = 0

    def read(self, most_bytes: int) -> memoryview:
        """Read, and count."""
        block = super().read(most_bytes)
        type(self).read_bytes += len(block)
        return block


@pytest.fixture(params=["xfs", "ext4", "tmpfs", "overlayfs"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """Mount a file system for the trainer and the volume."""
    with mounted(request.param, tmp_path) as one:
        yield one.path


@pytest.fixture
def source(disk: Path) -> Path:
    """Write what the trainer saved."""
    file = disk / "saved"
    file.write_bytes(DATA)
    os.sync()
    return file


def body_of(file: Path, offset: int, length: int) -> Unread:
    """Return a part of a file."""
    return Unread(os.open(file, os.O_RDONLY), offset, length)


def stored(store: CountedStore, file: Path, pace: Pace) -> None:
    """Store a file in pieces, through what stands between a hand and the volume."""
    begun = store.begin("x", len(DATA), PIECE, NONCE)
    cuts = [(at, min(PIECE, len(DATA) - at)) for at in range(0, len(DATA), PIECE)]
    receipts = [
        store.put_piece(begun, Piece(index, at, size), PacedBody(body_of(file, at, size), pace))
        for index, (at, size) in enumerate(cuts)
    ]
    for receipt, (at, size) in zip(receipts, cuts, strict=True):
        assert receipt.crc64nvme == crc64nvme(DATA[at : at + size])
    store.finish(begun, receipts, crc64nvme(DATA), create_only=True)


def free_bytes(disk: Path) -> int:
    """Return how much room there is."""
    os.sync()
    found = os.statvfs(disk)
    return found.f_bfree * found.f_frsize


def test_what_the_kernel_copies_is_not_read_and_is_whole(
    request: pytest.FixtureRequest, disk: Path, source: Path
) -> None:
    """Every byte arrives and is summed where it arrived; XFS shares the blocks.

    ext4 shares nothing, and its disk would be read as well: there bytes are read once instead.
    """
    Unread.read_bytes = 0
    before = free_bytes(disk)
    stored(CountedStore(VolumeStore(str(disk / "durable")), ticks), source, Pace(ticks))
    assert (disk / "durable/x").read_bytes() == DATA
    assert Unread.read_bytes == (len(DATA) if "[ext4]" in request.node.name else 0)
    if "[xfs]" in request.node.name:
        assert before - free_bytes(disk) < PIECE


def test_a_capped_pace_is_kept(disk: Path, source: Path) -> None:
    """Where bytes must keep a pace they are read at it."""
    Unread.read_bytes = 0
    pace = Pace(ticks)
    pace.set(10**12)
    stored(CountedStore(VolumeStore(str(disk / "durable")), ticks), source, pace)
    assert (disk / "durable/x").read_bytes() == DATA
    assert Unread.read_bytes == len(DATA)


def test_between_two_file_systems_bytes_are_read(disk: Path, source: Path, tmp_path: Path) -> None:
    """The kernel could copy them, and would share nothing: one reading does."""
    Unread.read_bytes = 0
    assert disk.stat().st_dev != tmp_path.stat().st_dev
    stored(CountedStore(VolumeStore(str(tmp_path / "durable")), ticks), source, Pace(ticks))
    assert (tmp_path / "durable/x").read_bytes() == DATA
    assert Unread.read_bytes == len(DATA)


def test_a_file_that_became_shorter_is_told(disk: Path, source: Path) -> None:
    """What ends early under us raises its own error, as it does where it is read."""
    store = VolumeStore(str(disk / "durable"))
    body = body_of(source, 2 * PIECE, PIECE)
    os.truncate(source, 2 * PIECE + 10)
    begun = store.begin("x", len(DATA), PIECE, NONCE)
    with pytest.raises(OSError, match="changed under us") as caught:
        store.put_piece(begun, Piece(2, 2 * PIECE, PIECE), body)
    assert caught.value.errno == errno.ESTALE
