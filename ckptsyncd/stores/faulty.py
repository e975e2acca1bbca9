"""A store around a store that fails where its owner says: the weather of the simulation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ckptsyncd.core.facts import Begun, Condition, Limits, ObjectFact, Piece, Receipt
from ckptsyncd.core.ports import Body, Store
from ckptsyncd.errors import StoreError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong: ``error`` is raised before the store acts, or after (the answer is lost).

    For ``after`` the error should be an ambiguous Again: that is what a lost answer looks like.
    """

    error: StoreError
    after: bool = False


Choose = Callable[[str, str], "Fault | None"]


class FaultyStore:
    """Passes every call on, except where ``choose(verb, key)`` returns a fault.

    ``verb`` is the method's name, ``key`` the object's key or the prefix. The randomness is the
    caller's, so a run can be repeated. A list fails at its first item, or after its last.
    """

    def __init__(self, inner: Store, choose: Choose) -> None:
        """Stand before ``inner``."""
        self._inner = inner
        self._choose = choose

    @property
    def limits(self) -> Limits:
        """The limits of the store behind."""
        return self._inner.limits

    def _through(self, verb: str, key: str, act: Callable[[], T]) -> T:
        fault = self._choose(verb, key)
        if fault and not fault.after:
            raise fault.error
        answer = act()
        if fault:
            raise fault.error
        return answer

    def _stream(self, verb: str, key: str, act: Callable[[], Iterable[T]]) -> Iterator[T]:
        fault = self._choose(verb, key)
        if fault and not fault.after:
            raise fault.error
        yield from act()
        if fault:
            raise fault.error

    def begin(self, key: str, size: int, piece_bytes: int, nonce: str) -> Begun:
        """Begin, or fail."""
        return self._through("begin", key, lambda: self._inner.begin(key, size, piece_bytes, nonce))

    def put_piece(self, begun: Begun, piece: Piece, body: Body) -> Receipt:
        """Put a piece, or fail."""
        return self._through(
            "put_piece", begun.key, lambda: self._inner.put_piece(begun, piece, body)
        )

    def finish(
        self, begun: Begun, receipts: Sequence[Receipt], crc64nvme: int, *, create_only: bool
    ) -> ObjectFact:
        """Finish, or fail."""
        return self._through(
            "finish",
            begun.key,
            lambda: self._inner.finish(begun, receipts, crc64nvme, create_only=create_only),
        )

    def abandon(self, begun: Begun) -> None:
        """Abandon, or fail."""
        self._through("abandon", begun.key, lambda: self._inner.abandon(begun))

    def put_whole(self, key: str, body: Body, nonce: str, *, create_only: bool) -> ObjectFact:
        """Put a small file, or fail."""
        return self._through(
            "put_whole",
            key,
            lambda: self._inner.put_whole(key, body, nonce, create_only=create_only),
        )

    def put_small(self, key: str, data: bytes, condition: Condition) -> str:
        """Put a record, or fail."""
        return self._through("put_small", key, lambda: self._inner.put_small(key, data, condition))

    def get_small(self, key: str, most_bytes: int) -> tuple[bytes, str]:
        """Get a record, or fail."""
        return self._through("get_small", key, lambda: self._inner.get_small(key, most_bytes))

    def stat(self, key: str) -> ObjectFact:
        """Look at an object, or fail."""
        return self._through("stat", key, lambda: self._inner.stat(key))

    def read_range(self, key: str, offset: int, length: int) -> Iterator[bytes]:
        """Read, or fail."""
        return self._stream("read_range", key, lambda: self._inner.read_range(key, offset, length))

    def list(self, prefix: str) -> Iterator[ObjectFact]:
        """List, or fail."""
        return self._stream("list", prefix, lambda: self._inner.list(prefix))

    def uploads(self, prefix: str) -> Iterator[Begun]:
        """List begun uploads, or fail."""
        return self._stream("uploads", prefix, lambda: self._inner.uploads(prefix))

    def delete(self, key: str) -> None:
        """Delete, or fail."""
        self._through("delete", key, lambda: self._inner.delete(key))

    def describe(self) -> str:
        """Say what stands behind."""
        return f"{self._inner.describe()} (with faults)"
