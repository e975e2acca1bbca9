"""Holes cost nothing and read as zeros, whoever reads them; what was written is never one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ckptsyncd.checksum import crc64nvme
from ckptsyncd.core.facts import FileFact, Piece
from ckptsyncd.edge.bodies import FileBody
from ckptsyncd.edge.copies import copy_file
from ckptsyncd.holes import hole_at, is_sparse
from ckptsyncd.stores.memory import BytesBody
from ckptsyncd.stores.volume.store import VolumeStore

MIB = 2**20
SIZE = 5 * MIB + 77
STRETCHES = st.lists(
    st.tuples(st.integers(0, SIZE - 1), st.integers(1, MIB), st.integers(0, 255)), max_size=4
)


def laid(path: Path, stretches: list[tuple[int, int, int]]) -> bytes:
    """Write a file with holes around some stretches of one byte each; return its content."""
    with path.open("wb") as file:
        for start, length, byte in stretches:
            os.pwrite(file.fileno(), bytes([byte]) * min(length, SIZE - start), start)
        file.truncate(SIZE)
    return path.read_bytes()


def told(tmp_path: Path) -> bool:
    """Return whether holes are told here."""
    path = tmp_path / "probe"
    laid(path, [])
    with path.open("rb") as file:
        return is_sparse(file.fileno()) and hole_at(file.fileno(), 0, SIZE) == SIZE


@settings(max_examples=40, deadline=None)
@given(stretches=STRETCHES, start=st.integers(0, SIZE), length=st.integers(0, SIZE))
def test_every_reader_sees_the_same_bytes(
    tmp_path_factory: pytest.TempPathFactory,
    stretches: list[tuple[int, int, int]],
    start: int,
    length: int,
) -> None:
    """A body, a stable copy, and a volume that stores and gives back: all of them byte for byte."""
    tmp_path = tmp_path_factory.mktemp("holes")
    path = tmp_path / "source"
    data = laid(path, stretches)
    length = min(length, SIZE - start)
    body = FileBody(os.open(path, os.O_RDONLY), start, length)
    read = b"".join(bytes(block) for block in iter(lambda: body.read(MIB), b""))
    assert read == data[start : start + length]
    assert body.crc64nvme() == crc64nvme(data[start : start + length])
    with path.open("rb") as file:
        copy_file(file.fileno(), FileFact("source", "file", 1, 1, SIZE, 0), str(tmp_path / "copy"))
    assert (tmp_path / "copy").read_bytes() == data
    store = VolumeStore(str(tmp_path / "durable"))
    begun = store.begin("model", SIZE, 2 * MIB, "nonce")
    receipts = []
    for index, at in reversed(list(enumerate(range(0, SIZE, 2 * MIB)))):
        piece = Piece(index, at, min(2 * MIB, SIZE - at))
        source = FileBody(os.open(path, os.O_RDONLY), piece.offset, piece.length)
        # As from another file system: nothing is shared inside the kernel.
        sent = source if index % 2 else BytesBody(data[at : at + piece.length])
        receipts.append(store.put_piece(begun, piece, sent))
    fact = store.finish(begun, receipts[::-1], crc64nvme(data), create_only=True)
    assert (fact.size, fact.crc64nvme) == (SIZE, crc64nvme(data))
    assert store.stat("model").crc64nvme == crc64nvme(data)
    assert b"".join(store.read_range("model", start, length)) == data[start : start + length]
    assert (tmp_path / "durable/model").read_bytes() == data


def test_zeros_over_what_was_written_are_written(tmp_path: Path) -> None:
    """A piece of zeros that comes again, over another content, leaves nothing of that."""
    store = VolumeStore(str(tmp_path / "durable"))
    begun, piece = store.begin("model", 2 * MIB, 2 * MIB, "nonce"), Piece(0, 0, 2 * MIB)
    store.put_piece(begun, piece, BytesBody(b"x" * 2 * MIB))
    receipt = store.put_piece(begun, piece, BytesBody(bytes(2 * MIB)))
    store.finish(begun, [receipt], receipt.crc64nvme, create_only=True)
    assert (tmp_path / "durable/model").read_bytes() == bytes(2 * MIB)


def test_a_hole_of_a_gigabyte_costs_no_disk(tmp_path: Path) -> None:
    """A gigabyte of hole with a megabyte in its middle is a megabyte in the store and in a copy."""
    if not told(tmp_path):
        pytest.skip("this file system does not tell where holes are")
    path, size = tmp_path / "source", 2**30
    with path.open("wb") as file:
        os.pwrite(file.fileno(), os.urandom(MIB), size // 2)
        file.truncate(size)
    with path.open("rb") as file:
        copy_file(file.fileno(), FileFact("source", "file", 1, 1, size, 0), str(tmp_path / "copy"))
    store = VolumeStore(str(tmp_path / "durable"))
    begun, piece = store.begin("model", size, size, "nonce"), Piece(0, 0, size)
    receipt = store.put_piece(begun, piece, FileBody(os.open(path, os.O_RDONLY), 0, size))
    store.finish(begun, [receipt], receipt.crc64nvme, create_only=True)
    for kept in (tmp_path / "copy", tmp_path / "durable/model"):
        assert kept.stat().st_size == size
        assert kept.stat().st_blocks * 512 < 2 * MIB


def test_a_file_that_ended_early_is_no_hole(tmp_path: Path) -> None:
    """Behind its end there is nothing, not zeros: whoever reads on there is told."""
    path = tmp_path / "source"
    laid(path, [])
    body = FileBody(os.open(path, os.O_RDONLY), 0, SIZE)
    body.read(MIB)
    os.truncate(path, MIB)
    with pytest.raises(OSError, match="bytes early"):
        body.read(MIB)
