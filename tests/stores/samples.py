"""What every suite about stores needs: names, bytes, bodies that lie, whole uploads in one call."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

from ckptsyncd.checksum import crc64nvme
from ckptsyncd.core.facts import Begun, Limits, ObjectFact, Piece, Receipt
from ckptsyncd.core.ports import Store
from ckptsyncd.errors import Again
from ckptsyncd.stores.memory import BytesBody
from ckptsyncd.stores.short import REST_REQUESTS

NONCE = "0123456789abcdef"

Answer = TypeVar("Answer")


def answered(ask: Callable[[], Answer], tries: int = 3) -> Answer:
    """Ask as the mind does: again, where a server closed a connection that was kept alive.

    fake-gcs-server does so now and then after a range that it refuses (seen once in many runs).
    """
    for _ in range(tries - 1):
        with contextlib.suppress(Again):
            return ask()
    return ask()


#: Names that trainers use or that stores were seen to break on, and the longest that fits S3.
ODD_KEYS = (
    "epoch=3-step=500.ckpt",
    "with space/and+plus",
    "percent%41/100%",
    "hash#mark/question?mark",
    "umlaut-ü/日本語/🚀",
    "quotes'\"/a&b;c:d@e,f$g!",
    "paren(1)[2]{3}~*|<>^`",
    ".hidden/-dash/_underscore",
    "/".join(["d" * 99] * 9),
)


class Behind(Protocol):
    """A look behind the store's back."""

    def __call__(self) -> Mapping[str, bytes]:
        """Return what is stored, key to bytes, without what is only begun."""
        ...


#: Tells which upload's nonce an object carries.
Mark = Callable[[str], str | None]


class LyingBody(BytesBody):
    """A body whose checksum is not that of its bytes."""

    def crc64nvme(self) -> int:
        """Return another checksum."""
        return super().crc64nvme() ^ 1


class BrokenBody(BytesBody):
    """A body whose file becomes shorter while it is read."""

    def read(self, most_bytes: int) -> bytes:
        """Return the first half, then fail as a file would."""
        if self._at >= self.length // 2:
            raise OSError(5, "the file became shorter")
        return super().read(min(most_bytes, max(self.length // 2 - self._at, 1)))


def piece_bytes_of(limits: Limits) -> int:
    """Return the smallest pieces that the store takes, or 1,000 bytes."""
    least = max(limits.min_piece_bytes, 1000)
    return -(-least // limits.piece_multiple) * limits.piece_multiple


def some_bytes(count: int, seed: int = 1) -> bytes:
    """Return bytes that no two pieces of a file share."""
    return random.Random(seed).randbytes(count)


def pieces_of(data: bytes, piece_bytes: int) -> list[tuple[Piece, bytes]]:
    """Cut data into its pieces."""
    return [
        (Piece(index, offset, len(data[offset : offset + piece_bytes])),
         data[offset : offset + piece_bytes])
        for index, offset in enumerate(range(0, len(data), piece_bytes))
    ]  # fmt: skip


def upload(store: Store, begun: Begun, data: bytes) -> list[Receipt]:
    """Send every piece, in order."""
    pieces = pieces_of(data, begun.piece_bytes)
    return [store.put_piece(begun, piece, BytesBody(part)) for piece, part in pieces]


def stored(store: Store, key: str, data: bytes, *, create_only: bool = True) -> ObjectFact:
    """Store data as one object in pieces."""
    begun = store.begin(key, len(data), piece_bytes_of(store.limits), NONCE)
    return store.finish(begun, upload(store, begun, data), crc64nvme(data), create_only=create_only)


def read(store: Store, key: str, size: int) -> bytes:
    """Read an object through."""
    return b"".join(store.read_range(key, 0, size))


def abandoned(store: Store, begun: Begun) -> None:
    """Abandon an upload as the brain does: again, when the store says Again."""
    for _ in range(3):
        try:
            store.abandon(begun)
        except Again:
            continue
        return
    msg = "the upload could not be abandoned"
    raise AssertionError(msg)


def let_go(store: Any, way: str) -> None:
    """Let the next bodies of a store go this way: short, or the SDK's."""
    assert store.limits
    store._wire._short._rest = 0 if way == "short" else REST_REQUESTS
    store.put_small("before", b"x", None)
    assert f"bodies go the {way} way" in store.describe()
