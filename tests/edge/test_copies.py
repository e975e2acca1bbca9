"""Stable copies of what is rewritten in place."""

from __future__ import annotations

import itertools
import os
import threading
from collections import Counter
from pathlib import Path

import pytest

from ckptsyncd.core.facts import Listing, Piece, Shape
from ckptsyncd.edge.copies import BLOCK_BYTES
from ckptsyncd.edge.disk import RealDisk
from ckptsyncd.edge.pins import Check
from tests.edge.world import disk_at, listing, unchecked

OLD = b"old" * BLOCK_BYTES  # three blocks


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a watch root with one file of several blocks and an empty one."""
    root = tmp_path / "run"
    root.mkdir()
    (root / "ckpt.pt").write_bytes(OLD)
    (root / "ckpt.pt").chmod(0o640)
    (root / "empty").write_bytes(b"")
    return root


def content(disk: RealDisk, files: Listing) -> bytes:
    """Return all that is pinned of the first file."""
    fact = files.files[0]
    body = disk.open_piece("p1", files, fact.path, Piece(0, 0, fact.size))
    return b"".join(bytes(block) for block in iter(lambda: body.read(BLOCK_BYTES), b""))


def test_copy_survives_overwriting_in_place(root: Path) -> None:
    """The copy keeps the old content, under the original's facts, when the file is rewritten."""
    disk = disk_at(root)
    files = listing(disk)
    assert disk.copy("p1", files) == (files, "")
    (root / "ckpt.pt").write_bytes(b"new")
    assert disk.look_again("p1", files) == ""
    assert content(disk, files) == OLD
    assert disk_at(root).look_again("p1", files) == ""
    disk.unpin("p1")
    assert disk.held() == ()


def test_copy_is_no_link(root: Path) -> None:
    """A copy leaves the original's link count and ctime alone, and has its size, mtime and mode."""
    disk = disk_at(root)
    files = listing(disk)
    before = (root / "ckpt.pt").stat()
    disk.copy("p1", files)
    after = (root / "ckpt.pt").stat()
    assert (after.st_nlink, after.st_ctime_ns) == (1, before.st_ctime_ns)
    (copy,) = root.parent.glob(".ckptsyncd/pins/*/p1/0.copy")
    status = copy.stat()
    assert status.st_ino != before.st_ino
    assert (status.st_size, status.st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert status.st_mode & 0o777 == 0o640


def test_changed_copy_shows_at_the_second_look(root: Path) -> None:
    """A copy that somebody wrote into is not what the listing says."""
    disk = disk_at(root)
    files = listing(disk)
    disk.copy("p1", files)
    (copy,) = root.parent.glob(".ckptsyncd/pins/*/p1/0.copy")
    with copy.open("r+b") as file:
        file.write(b"new")
    assert "ckpt.pt was written again" in disk.look_again("p1", files)
    assert disk.copy("p1", files) == (files, "")
    assert disk.look_again("p1", files) == ""


def test_open_writer_prevents_a_copy(root: Path) -> None:
    """A file that somebody has open for writing is not copied; the holder is named."""
    disk = disk_at(root)
    files = listing(disk)
    with (root / "ckpt.pt").open("r+b"):
        pinned, error = disk.copy("p1", files)
    assert error.startswith(f"ckpt.pt is held open for writing by pid {os.getpid()} (")
    assert pinned.files == ()
    assert disk.held() == ()


def test_change_since_the_listing_prevents_a_copy(root: Path) -> None:
    """A file that is not what the listing says leaves nothing pinned."""
    disk = disk_at(root)
    files = listing(disk)
    (root / "ckpt.pt").write_bytes(b"new")
    assert disk.copy("p1", files) == (Listing(()), "ckpt.pt changed: 3145728 bytes became 3")
    assert disk.held() == ()


def test_copies_of_a_file_that_is_always_rewritten_are_never_torn(root: Path) -> None:
    """While a trainer rewrites one file in place, every copy that succeeds is of one save."""
    (root / "ckpt.pt").write_bytes(bytes(len(OLD)))
    done = threading.Event()

    def train() -> None:
        for number in itertools.cycle(range(256)):
            with (root / "ckpt.pt").open("r+b") as file:
                for _ in range(3):
                    file.write(bytes([number]) * BLOCK_BYTES)
            if done.wait(0.02):
                return

    trainer = threading.Thread(target=train)
    trainer.start()
    disk = disk_at(root)
    results: Counter[bool] = Counter()
    try:
        while results[True] < 10:
            files = listing(disk)
            _, error = disk.copy("p1", files)
            results[not error] += 1
            assert error or len(set(content(disk, files))) == 1
            disk.unpin("p1")
    finally:
        done.set()
        trainer.join()


def verdict(shape: Shape, *, has_end_mark: bool, fault: str = "") -> Check:
    """Return a format check that always says this."""
    return lambda _fd, _path, _size: (shape, has_end_mark, fault)


def test_copy_of_a_broken_file_is_not_kept(root: Path) -> None:
    """A copy whose format check fails is no copy of a save."""
    disk = RealDisk(root, verdict("broken", has_end_mark=True, fault="zip end record missing"))
    _, error = disk.copy("p1", listing(disk))
    assert error == "ckpt.pt: zip end record missing"
    assert disk.held() == ()


@pytest.mark.parametrize(
    ("check", "text"),
    [
        (unchecked, "nobody can tell whether ckpt.pt is being written"),
        (verdict("whole", has_end_mark=True), ""),
    ],
)
def test_without_leases_only_a_whole_format_is_copied(root: Path, check: Check, text: str) -> None:
    """Where nobody can tell whether there is a writer, the format's end mark decides."""
    disk = RealDisk(root, check)
    disk._writers._hidden[root.stat().st_dev] = True
    assert disk.copy("p1", listing(disk))[1] == text
