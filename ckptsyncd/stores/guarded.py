"""A store around a store that lets nothing through before it is known where the bucket lies."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from ckptsyncd.core.facts import Begun, Condition, Limits, ObjectFact, Piece, Receipt
from ckptsyncd.core.ports import Body, Expiring, Situated, Situation, Store, Timed
from ckptsyncd.core.rules.bucket import Location
from ckptsyncd.errors import Again, Never, PolicyRefused

T = TypeVar("T")

_HINT = "use another bucket, or change allowed_regions, country or egress"


class GuardedStore:
    """Asks for the bucket's place before the first call, and again after every failed one.

    A call that fails with *again* may have found another server behind the same name. Where the
    place is refused every call raises PolicyRefused, and ``refused`` is told; where it cannot be
    asked, what asking raised.
    """

    def __init__(
        self,
        inner: Store,
        judge: Callable[[Location], str],
        refused: Callable[[PolicyRefused], object],
    ) -> None:
        """Stand before ``inner``; ``judge`` returns why a place is refused, or nothing."""
        self.inner = inner
        self._judge = judge
        self._refused = refused
        self._is_known = False
        self._lock = threading.Lock()

    def ask(self) -> None:
        """Ask where the bucket lies unless it is known; raises PolicyRefused and StoreErrors."""
        with self._lock:
            if self._is_known:
                return
            if not isinstance(self.inner, Situated):
                self._refuse("this kind of store does not tell where it lies")
            else:
                self._refuse(self._judge(self.inner.situation().location()))
            self._is_known = True

    def _refuse(self, reason: str) -> None:
        if not reason:
            return
        error = PolicyRefused(f"no byte goes to this bucket: {reason}", hint=_HINT)
        self._refused(error)
        raise error

    def _through(self, act: Callable[[], T]) -> T:
        self.ask()
        try:
            return act()
        except Again:
            self._is_known = False
            raise

    def _stream(self, act: Callable[[], Iterable[T]]) -> Iterator[T]:
        self.ask()
        try:
            yield from act()
        except Again:
            self._is_known = False
            raise

    @property
    def limits(self) -> Limits:
        """The limits of the store behind."""
        return self._through(lambda: self.inner.limits)

    def begin(self, key: str, size: int, piece_bytes: int, nonce: str) -> Begun:
        """Begin an upload."""
        return self._through(lambda: self.inner.begin(key, size, piece_bytes, nonce))

    def put_piece(self, begun: Begun, piece: Piece, body: Body) -> Receipt:
        """Send a piece."""
        return self._through(lambda: self.inner.put_piece(begun, piece, body))

    def finish(
        self, begun: Begun, receipts: Sequence[Receipt], crc64nvme: int, *, create_only: bool
    ) -> ObjectFact:
        """Make the pieces one object."""
        return self._through(
            lambda: self.inner.finish(begun, receipts, crc64nvme, create_only=create_only)
        )

    def abandon(self, begun: Begun) -> None:
        """Drop a begun upload."""
        self._through(lambda: self.inner.abandon(begun))

    def put_whole(self, key: str, body: Body, nonce: str, *, create_only: bool) -> ObjectFact:
        """Store a small file."""
        return self._through(
            lambda: self.inner.put_whole(key, body, nonce, create_only=create_only)
        )

    def put_small(self, key: str, data: bytes, condition: Condition) -> str:
        """Store a record."""
        return self._through(lambda: self.inner.put_small(key, data, condition))

    def get_small(self, key: str, most_bytes: int) -> tuple[bytes, str]:
        """Read a record."""
        return self._through(lambda: self.inner.get_small(key, most_bytes))

    def stat(self, key: str) -> ObjectFact:
        """Ask about an object."""
        return self._through(lambda: self.inner.stat(key))

    def read_range(self, key: str, offset: int, length: int) -> Iterator[bytes]:
        """Yield a part of an object."""
        return self._stream(lambda: self.inner.read_range(key, offset, length))

    def list(self, prefix: str) -> Iterator[ObjectFact]:
        """Yield the objects below a prefix."""
        return self._stream(lambda: self.inner.list(prefix))

    def uploads(self, prefix: str) -> Iterable[Begun]:
        """Yield the begun uploads below a prefix."""
        return self._stream(lambda: self.inner.uploads(prefix))

    def delete(self, key: str) -> None:
        """Remove an object."""
        self._through(lambda: self.inner.delete(key))

    def describe(self) -> str:
        """Return what the store behind says of itself."""
        return self.inner.describe()

    def situation(self) -> Situation:
        """Return what answers for the bucket behind; Never where nothing does."""
        if not isinstance(self.inner, Situated):
            msg = "the store behind does not tell where it lies"
            raise Never(msg)
        return self.inner.situation()

    def clock_ahead_seconds(self) -> float | None:
        """Return how far our clock is ahead, where the store behind has heard its server's."""
        inner = self.inner
        return inner.clock_ahead_seconds() if isinstance(inner, Timed) else None

    def credentials_expire_at(self) -> float | None:
        """Return when the credentials end, where the store behind knows."""
        inner = self.inner
        return inner.credentials_expire_at() if isinstance(inner, Expiring) else None
