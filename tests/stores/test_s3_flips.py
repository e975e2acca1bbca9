"""A bit that flips on its way to an S3 server never becomes part of what is called safe."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from secrets import token_hex

import pytest

from ckptsyncd.checksum import crc64nvme
from ckptsyncd.core.facts import Begun, IfAbsent, ObjectFact
from ckptsyncd.errors import Again, Gone
from ckptsyncd.stores.memory import BytesBody
from ckptsyncd.stores.s3.options import S3Options
from ckptsyncd.stores.s3.store import S3Store
from tests import servers
from tests.proxy import Proxy, proxied
from tests.stores.gcs_bench import address
from tests.stores.samples import NONCE, piece_bytes_of, some_bytes, stored, upload

pytestmark = pytest.mark.server


@dataclass(frozen=True, slots=True)
class Line:
    """A store, the proxy before its server, and the server."""

    store: S3Store
    proxy: Proxy
    server: servers.S3Server

    def flip(self, target: str) -> None:
        """Have one bit of the next body that goes to such a target flipped."""
        self.proxy.rule("flip", "PUT", target)


@pytest.fixture(params=["s3_server", "moto_server", "nanio_server"])
def line(request: pytest.FixtureRequest) -> Iterator[Line]:
    """Stand before servers that check everything, nothing, and small files only."""
    server = request.getfixturevalue(request.param)
    with proxied(*address(server.endpoint)) as proxy:
        options = S3Options(endpoint_url=proxy.endpoint)
        with closing(S3Store(server.bucket, f"flips-{token_hex(4)}", options)) as store:
            assert store.limits
            yield Line(store, proxy, server)


def kept(line: Line) -> list[str]:
    """Return what lies below the prefix, as the server tells it."""
    return [fact.key for fact in line.store.list("")]


def finished(store: S3Store, begun: Begun, data: bytes) -> ObjectFact:
    """Send every piece and finish."""
    return store.finish(begun, upload(store, begun, data), crc64nvme(data), create_only=True)


def test_a_flipped_small_file_is_not_kept(line: Line) -> None:
    """Refused by the server or found by reading back, it is Again; the next try is right."""
    data = some_bytes(9000)
    line.flip("/small")
    with pytest.raises(Again):
        line.store.put_whole("small", BytesBody(data), NONCE, create_only=True)
    assert kept(line) == []
    put = line.store.put_whole("small", BytesBody(data), NONCE, create_only=True)
    assert put.crc64nvme == line.store.stat("small").crc64nvme == crc64nvme(data)


def test_a_flipped_record_is_not_kept(line: Line) -> None:
    """Claims, manifests and pointers are checked like data."""
    line.flip("/record")
    with pytest.raises(Again):
        line.store.put_small("record", some_bytes(3000), IfAbsent())
    assert kept(line) == []
    line.store.put_small("record", some_bytes(3000), IfAbsent())
    assert line.store.get_small("record", 3000)[0] == some_bytes(3000)


def test_a_flipped_piece_never_becomes_an_object(line: Line) -> None:
    """It is refused at once, or the whole is at its end; sent again the object is right."""
    piece_bytes = piece_bytes_of(line.store.limits)
    data = some_bytes(piece_bytes + 5000)
    begun = line.store.begin("large", len(data), piece_bytes, NONCE)
    line.flip(r"/large\?.*partNumber=1")
    with pytest.raises((Again, Gone)):
        finished(line.store, begun, data)
    assert kept(line) == []
    line.store.abandon(begun)
    put = stored(line.store, "large", data)
    assert put.crc64nvme == line.store.stat("large").crc64nvme == crc64nvme(data)
