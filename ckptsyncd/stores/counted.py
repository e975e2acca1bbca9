"""A store around a store that counts what is asked of it: calls, bytes and seconds by verb."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from ckptsyncd.core.facts import Begun, Condition, Limits, ObjectFact, Piece, Receipt
from ckptsyncd.core.ports import Body, OnDisk, Store, Timed
from ckptsyncd.core.snapshot import StoreCalls
from ckptsyncd.errors import StoreError


@dataclass(slots=True)
class _Sum:
    count: int = 0
    bytes: int = 0
    seconds: float = 0.0


class _MovingBody:
    """A body that tells when bytes of it are read, again ones too."""

    def __init__(self, body: Body, moved: Callable[[int], None]) -> None:
        """Stand before ``body``."""
        self._body = body
        self._moved = moved
        self.length = body.length

    def read(self, most_bytes: int) -> bytes | bytearray | memoryview:
        """Return the next bytes."""
        block = self._body.read(most_bytes)
        self._moved(len(block))
        return block

    def rewind(self) -> None:
        """Start again."""
        self._body.rewind()

    def origin(self) -> tuple[int, int] | None:
        """Return where the bytes lie, if the body behind tells."""
        return self._body.origin() if isinstance(self._body, OnDisk) else None

    def crc64nvme(self) -> int:
        """Return the checksum of all bytes."""
        return self._body.crc64nvme()


class CountedStore:
    """Passes every call on unchanged; may be asked for its counts from any thread.

    A call is one use of a verb: a list of many pages is one call and several requests.
    """

    def __init__(self, inner: Store, seconds: Callable[[], float]) -> None:
        """Stand before ``inner``; ``seconds`` reads a monotonic clock."""
        self.inner = inner
        self._seconds = seconds
        self._lock = threading.Lock()
        self._sums: dict[tuple[str, str], _Sum] = {}
        self._moved = 0
        self._answers = 0

    def progress(self) -> int:
        """Return a number that stands still only while no byte is taken and no call returns."""
        with self._lock:
            return self._moved + self._answers

    def _move(self, count: int) -> None:
        with self._lock:
            self._moved += count

    def calls(self) -> tuple[StoreCalls, ...]:
        """Return the counts by verb and outcome, sorted."""
        with self._lock:
            rows = sorted(self._sums.items())
            return tuple(StoreCalls(*key, s.count, s.bytes, s.seconds) for key, s in rows)

    def _counted(self, verb: str, length: int = 0) -> AbstractContextManager[_Sum]:
        return self._count(verb, _Sum(bytes=length))

    @contextmanager
    def _count(self, verb: str, one: _Sum) -> Iterator[_Sum]:
        """Count one call; ``one.bytes`` are those that it moves if it is done."""
        began = self._seconds()
        outcome = "failed"
        try:
            yield one
            outcome = "done"
        except StoreError as error:
            outcome = error.kind
            raise
        finally:
            self._add(verb, outcome, one.bytes, self._seconds() - began)

    def _add(self, verb: str, outcome: str, length: int, seconds: float) -> None:
        with self._lock:
            self._answers += 1
            found = self._sums.setdefault((verb, outcome), _Sum())
            found.count += 1
            found.bytes += length if outcome == "done" else 0
            found.seconds += seconds

    @property
    def limits(self) -> Limits:
        """The limits of the store behind; counted as ``probe``."""
        with self._counted("probe"):
            return self.inner.limits

    def begin(self, key: str, size: int, piece_bytes: int, nonce: str) -> Begun:
        """Begin an upload."""
        with self._counted("begin"):
            return self.inner.begin(key, size, piece_bytes, nonce)

    def put_piece(self, begun: Begun, piece: Piece, body: Body) -> Receipt:
        """Send a piece."""
        with self._counted("put_piece", piece.length):
            return self.inner.put_piece(begun, piece, _MovingBody(body, self._move))

    def finish(
        self, begun: Begun, receipts: Sequence[Receipt], crc64nvme: int, *, create_only: bool
    ) -> ObjectFact:
        """Make the pieces one object."""
        with self._counted("finish"):
            return self.inner.finish(begun, receipts, crc64nvme, create_only=create_only)

    def abandon(self, begun: Begun) -> None:
        """Drop a begun upload."""
        with self._counted("abandon"):
            self.inner.abandon(begun)

    def put_whole(self, key: str, body: Body, nonce: str, *, create_only: bool) -> ObjectFact:
        """Store a small file."""
        with self._counted("put_whole", body.length):
            moving = _MovingBody(body, self._move)
            return self.inner.put_whole(key, moving, nonce, create_only=create_only)

    def put_small(self, key: str, data: bytes, condition: Condition) -> str:
        """Store a record."""
        with self._counted("put_small", len(data)):
            return self.inner.put_small(key, data, condition)

    def get_small(self, key: str, most_bytes: int) -> tuple[bytes, str]:
        """Read a record."""
        with self._counted("get_small") as one:
            data, version = self.inner.get_small(key, most_bytes)
            one.bytes = len(data)
            return data, version

    def stat(self, key: str) -> ObjectFact:
        """Ask about an object."""
        with self._counted("stat"):
            return self.inner.stat(key)

    def read_range(self, key: str, offset: int, length: int) -> Iterator[bytes]:
        """Yield a part of an object; counted when its last byte was read, or reading ended."""
        with self._counted("read_range") as one:
            for block in self.inner.read_range(key, offset, length):
                one.bytes += len(block)
                yield block

    def list(self, prefix: str) -> Iterator[ObjectFact]:
        """Yield the objects below a prefix; counted when the last was seen."""
        with self._counted("list"):
            yield from self.inner.list(prefix)

    def uploads(self, prefix: str) -> Iterable[Begun]:
        """Yield the begun uploads below a prefix; counted when the last was seen."""
        with self._counted("uploads"):
            yield from self.inner.uploads(prefix)

    def delete(self, key: str) -> None:
        """Remove an object."""
        with self._counted("delete"):
            self.inner.delete(key)

    def clock_ahead_seconds(self) -> float | None:
        """Return how far our clock is ahead, where the store behind has heard its server's."""
        inner = self.inner
        return inner.clock_ahead_seconds() if isinstance(inner, Timed) else None

    def describe(self) -> str:
        """Return what the store behind says of itself."""
        return self.inner.describe()
