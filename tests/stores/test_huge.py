"""Five gibibytes and one byte, most of them holes: over what one request may carry.

Minutes and gigabytes, so only where CKPTSYNCD_TEST_HUGE is set.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from ckptsyncd.checksum import combined, crc64nvme
from ckptsyncd.core.facts import Piece, Receipt
from ckptsyncd.core.ports import Store
from ckptsyncd.edge.bodies import FileBody
from ckptsyncd.stores.s3.options import S3Options
from ckptsyncd.stores.s3.store import S3Store
from ckptsyncd.stores.volume.store import VolumeStore
from tests import servers
from tests.stores.samples import NONCE

pytestmark = pytest.mark.skipif(
    "CKPTSYNCD_TEST_HUGE" not in os.environ, reason="needs CKPTSYNCD_TEST_HUGE=1 and 12 GiB"
)

SIZE = 5 * 1024**3 + 1
PIECE = 64 * 1024**2
HANDS = 4


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Make the file: marks at its ends and at a border of pieces, holes between."""
    made = tmp_path / "huge"
    with made.open("wb") as out:
        out.truncate(SIZE)
        for offset, mark in ((0, b"first"), (7 * PIECE - 2, b"border"), (SIZE - 4, b"last")):
            out.seek(offset)
            out.write(mark)
    return made


@pytest.fixture(params=["volume", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Open a directory, and a real S3 server."""
    if request.param == "volume":
        yield VolumeStore(str(tmp_path / "durable"))
        return
    server: servers.S3Server = request.getfixturevalue("s3_server")
    with closing(S3Store(server.bucket, "huge", S3Options(endpoint_url=server.endpoint))) as s3:
        yield s3


def body_of(file: Path, piece: Piece) -> FileBody:
    """Return the bytes of a piece."""
    return FileBody(os.open(file, os.O_RDONLY), piece.offset, piece.length, drop_behind=True)


def sum_of(read: Callable[[int, int], Iterator[bytes]]) -> int:
    """Return the checksum of what can be read piece by piece."""
    total = 0
    for offset in range(0, SIZE, PIECE):
        for block in read(offset, min(PIECE, SIZE - offset)):
            total = crc64nvme(block, total)
    return total


def test_five_gibibytes_and_a_byte_come_back(store: Store, file: Path) -> None:
    """Every byte is stored, and every byte that is read back is the one that was sent."""
    begun = store.begin("huge.bin", SIZE, PIECE, NONCE)
    pieces = [
        Piece(index, offset, min(PIECE, SIZE - offset))
        for index, offset in enumerate(range(0, SIZE, PIECE))
    ]

    def put(piece: Piece) -> Receipt:
        return store.put_piece(begun, piece, body_of(file, piece))

    with ThreadPoolExecutor(HANDS) as pool:
        receipts = list(pool.map(put, pieces))
    total = combined((one.crc64nvme, one.length) for one in receipts)
    fact = store.finish(begun, receipts, total, create_only=True)
    assert (fact.size, fact.crc64nvme) == (SIZE, total)
    assert store.stat("huge.bin").crc64nvme == total
    assert sum_of(lambda offset, length: store.read_range("huge.bin", offset, length)) == total
