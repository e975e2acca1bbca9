"""The bytes of one piece."""

from __future__ import annotations

import errno
import gc
import os
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ckptsyncd.checksum import crc64nvme
from ckptsyncd.core.ports import Body
from ckptsyncd.edge.bodies import FileBody

DATA = bytes(range(256)) * 20_000  # 5.12 MB


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file of five and a bit blocks."""
    path = tmp_path_factory.mktemp("bodies") / "model.pt"
    path.write_bytes(DATA)
    return path


def body_of(path: Path, offset: int, length: int, *, drop_behind: bool = False) -> FileBody:
    """Return the body of a range of a file."""
    return FileBody(os.open(path, os.O_RDONLY), offset, length, drop_behind=drop_behind)


def read_all(body: Body, most_bytes: int) -> bytes:
    """Return everything from where the body stands."""
    found = bytearray()
    while block := body.read(most_bytes):
        assert len(block) <= most_bytes
        found += block
    return bytes(found)


@settings(max_examples=50, deadline=None)
@given(
    offset=st.integers(0, len(DATA)),
    length=st.integers(0, 3_000_000),
    most_bytes=st.integers(1000, 3_000_000),
)
def test_range_and_checksum(path: Path, offset: int, length: int, most_bytes: int) -> None:
    """Any range is read exactly, and its checksum is the one of what was read."""
    length = min(length, len(DATA) - offset)
    body = body_of(path, offset, length)
    wanted = DATA[offset : offset + length]
    assert read_all(body, most_bytes) == wanted
    assert body.crc64nvme() == crc64nvme(wanted)
    body.rewind()
    assert read_all(body, most_bytes) == wanted
    body.close()


def test_checksum_before_reading(path: Path) -> None:
    """The checksum may be asked first, or in the middle, without moving where reading goes on."""
    body = body_of(path, 100, 3_000_000)
    wanted = DATA[100:3_000_100]
    assert body.crc64nvme() == crc64nvme(wanted)
    body = body_of(path, 100, 3_000_000)
    first = bytes(body.read(1_000_000))
    assert body.crc64nvme() == crc64nvme(wanted)
    assert first + read_all(body, 1 << 20) == wanted
    assert body.crc64nvme() == crc64nvme(wanted)


def test_checksum_is_that_of_the_last_whole_reading(tmp_path: Path) -> None:
    """A file rewritten between two readings gives the checksum of what was read last."""
    path = tmp_path / "a.pt"
    path.write_bytes(b"old content")
    body = body_of(path, 0, 11)
    assert body.crc64nvme() == crc64nvme(b"old content")
    with path.open("r+b") as file:
        file.write(b"new")
    assert read_all(body, 100) == b"new content"
    assert body.crc64nvme() == crc64nvme(b"new content")


def test_file_that_ends_early_raises(tmp_path: Path) -> None:
    """A file cut under us is an error that says so, while reading and while summing."""
    path = tmp_path / "a.pt"
    path.write_bytes(b"12345")
    body = body_of(path, 0, 9)
    assert bytes(body.read(100)) == b"12345"
    with pytest.raises(OSError, match="ended 4 bytes early: it changed under us") as caught:
        body.read(100)
    assert caught.value.errno == errno.ESTALE
    with pytest.raises(OSError, match="ended 9 bytes early"):
        body_of(path, 5, 9).crc64nvme()


def test_memory_is_one_block(path: Path) -> None:
    """Reading 5 MB needs one block of 1 MiB."""
    tracemalloc.start()
    body = body_of(path, 0, len(DATA), drop_behind=True)
    while body.read(1 << 30):
        pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.2 * 1024 * 1024


def test_dropped_body_closes_its_file(path: Path) -> None:
    """A body that nobody keeps closes its descriptor; closing twice does no harm."""
    fd = os.open(path, os.O_RDONLY)
    body = FileBody(fd, 0, 10)
    del body
    gc.collect()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)
    body = body_of(path, 0, 10)
    body.close()
    body.close()
