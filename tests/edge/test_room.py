"""How much of a disk pins hold for us alone, on a real small one."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ckptsyncd.core.messages import PinsWeighed
from ckptsyncd.core.rules.room import Room
from ckptsyncd.edge.disk import RealDisk
from ckptsyncd.edge.weigher import Weigher
from tests.edge.world import listing, unchecked

MIB = 2**20


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    """Return a watch root with a file of one MiB on a disk of eight."""
    point = tmp_path / "disk"
    point.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "none", str(point)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount")
    (point / "run").mkdir()
    (point / "run/a.pt").write_bytes(b"a" * MIB)
    yield point / "run"
    subprocess.run(["umount", "-l", str(point)], check=True)


def test_a_link_weighs_once_it_is_the_last(root: Path) -> None:
    """A pin weighs nothing until the trainer removes the file, and nothing after it is dropped."""
    disk = RealDisk(root, unchecked, room=Room(5, 7))
    free = disk.weigh().free_bytes
    assert disk.pin("p1", listing(disk)) == (listing(disk), "")
    assert disk.weigh().pins == ()
    (root / "a.pt").unlink()
    found = disk.weigh()
    assert found.pins == (("p1", MIB),)
    assert (found.floor_bytes, found.most_bytes) == (5, 7)
    assert found.free_bytes <= free
    disk.unpin("p1")
    assert disk.weigh().pins == ()
    assert disk.weigh().free_bytes >= free + MIB


def test_a_descriptor_weighs_once_it_is_the_last(root: Path, tmp_path: Path) -> None:
    """The same where no link can be made and the file is held open."""
    disk = RealDisk(root, unchecked, pins=tmp_path / "elsewhere", room=Room(0, 0))
    disk.pin("p1", listing(disk))
    assert disk.weigh().pins == ()
    (root / "a.pt").unlink()
    assert disk.weigh().pins == (("p1", MIB),)
    disk.unpin("p1")


def test_a_copy_needs_room(root: Path) -> None:
    """A copy that would go below the floor, or above the cap, is refused; the reason says which."""
    for room, setting in ((Room(7 * MIB, None), "pins_floor_bytes"), (Room(0, 1), "pins_most_b")):
        disk = RealDisk(root, unchecked, room=room)
        found, error = disk.copy("p1", listing(disk))
        assert found.files == ()
        assert f"a copy of 1.0 MiB would {'leave less' if room.floor_bytes else 'be more'}" in error
        assert setting in error
        assert disk.held() == ()
    disk = RealDisk(root, unchecked, room=Room(6 * MIB, MIB))
    assert disk.copy("p1", listing(disk)) == (listing(disk), "")
    assert disk.weigh().pins == (("p1", MIB),)


def test_an_empty_disk_is_not_searched(root: Path) -> None:
    """Where all that lies on the disk is less than pins may hold, no pin is looked at."""
    disk = RealDisk(root, unchecked, room=Room(0, 4 * MIB))
    disk.pin("p1", listing(disk))
    (root / "a.pt").unlink()
    assert disk.weigh().pins == ()
    (root / "b.pt").write_bytes(b"b" * 4 * MIB)
    assert disk.weigh().pins == (("p1", MIB),)


def test_a_full_disk_is_told_until_it_is_not(root: Path) -> None:
    """The weigher tells nothing while there is room, each look while there is not, and the end."""
    disk = RealDisk(root, unchecked, room=Room(4 * MIB, None))
    told: list[PinsWeighed] = []
    weigher = Weigher(disk.weigh, told.append)
    weigher.turn()
    assert told == []
    filler = root.parent / "filler"
    with filler.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, 5 * MIB)
    weigher.turn()
    weigher.turn()
    assert len(told) == 2
    assert told[0].free_bytes < told[0].floor_bytes == 4 * MIB
    filler.unlink()
    weigher.turn()
    weigher.turn()
    assert len(told) == 3
    assert told[2].free_bytes >= told[2].floor_bytes


def test_no_root_is_no_trouble(tmp_path: Path) -> None:
    """Where there is no root, there is nothing to weigh and nothing to tell."""
    told: list[PinsWeighed] = []
    Weigher(RealDisk(tmp_path / "none", unchecked).weigh, told.append).turn()
    assert told == []
