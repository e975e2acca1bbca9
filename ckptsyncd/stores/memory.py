"""A store in memory: a real one, for the simulation, the demo and everybody's tests."""

from __future__ import annotations

import errno
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ckptsyncd.checksum import BytesBody
from ckptsyncd.checksum import crc64nvme as checksum_of
from ckptsyncd.core.facts import (
    Begun,
    Condition,
    IfAbsent,
    IfMatches,
    Limits,
    ObjectFact,
    Piece,
    Receipt,
)
from ckptsyncd.core.ports import Body
from ckptsyncd.errors import Gone, Lost, Missing, Never
from ckptsyncd.stores.checks import (
    adds_up,
    check_key,
    check_piece,
    check_plan,
    check_sent,
    in_order,
    not_adding_up,
)

#: The body is told here too: who has a store in memory mostly has bytes there.
__all__ = ["ROOMY", "BytesBody", "MemoryStore", "read_all"]

#: As S3, but with pieces as small as a test likes.
ROOMY = Limits(
    min_piece_bytes=1,
    max_piece_bytes=5 * 1024**3,
    max_pieces=10_000,
    max_object_bytes=5 * 1024**4,
)


def read_all(body: Body) -> bytes:
    """Return everything a body holds, from its first byte; OSError where it ends early."""
    body.rewind()
    data = b"".join(bytes(block) for block in iter(lambda: body.read(1 << 20), b""))
    if len(data) != body.length:
        msg = f"the body ended after {len(data)} of {body.length} bytes"
        raise OSError(errno.EIO, msg)
    return data


@dataclass(slots=True)
class _Upload:
    """An upload that was begun and its pieces so far."""

    begun: Begun
    pieces: dict[int, tuple[bytes, int]] = field(default_factory=dict)


class MemoryStore:
    """Keeps everything in this process and does what its limits say, no more.

    Where ``create_only_finish`` is false a second writer silently wins, where ``can_abandon`` is
    false an abandoned upload stays listed, where ``pieces_in_parallel`` is false a piece out of
    order is refused: whoever relies on more than the limits promise is found out here.
    """

    def __init__(self, limits: Limits = ROOMY) -> None:
        """Start empty."""
        self.limits = limits
        self._objects: dict[str, tuple[bytes, ObjectFact]] = {}
        self._uploads: dict[str, _Upload] = {}
        self._count = 0
        self._lock = threading.RLock()

    def objects(self) -> dict[str, bytes]:
        """Return everything that is stored, read behind the store's back: key to bytes."""
        with self._lock:
            return {key: data for key, (data, _) in self._objects.items()}

    def begin(self, key: str, size: int, piece_bytes: int, nonce: str) -> Begun:
        """Begin an upload; nothing is visible under the key yet."""
        check_plan(self.limits, key, size, piece_bytes)
        with self._lock:
            begun = Begun(key, f"upload-{self._next()}", nonce, size, piece_bytes)
            self._uploads[begun.token] = _Upload(begun)
        return begun

    def put_piece(self, begun: Begun, piece: Piece, body: Body) -> Receipt:
        """Keep one piece; sending it again replaces it."""
        check_piece(begun, piece, body)
        data = read_all(body)
        checksum = check_sent(begun.key, checksum_of(data), body)
        with self._lock:
            pieces = self._upload(begun).pieces
            if not self.limits.pieces_in_parallel and piece.index > len(pieces):
                msg = f"{begun.key}: piece {piece.index} came before piece {len(pieces)}"
                raise Never(msg)
            pieces[piece.index] = (data, checksum)
        return Receipt(piece.index, piece.length, checksum, token=f"{checksum:016x}")

    def finish(
        self, begun: Begun, receipts: Sequence[Receipt], crc64nvme: int, *, create_only: bool
    ) -> ObjectFact:
        """Make the pieces one object, at once and whole."""
        ordered = in_order(begun, receipts)
        with self._lock:
            pieces = self._upload(begun).pieces
            kept = [pieces.get(receipt.index, (b"", None)) for receipt in ordered]
            same = [found for _, found in kept] == [receipt.crc64nvme for receipt in ordered]
            if not same or not adds_up(ordered, crc64nvme):
                del self._uploads[begun.token]
                raise not_adding_up(begun.key)
            if create_only and self.limits.create_only_finish:
                self._refuse_taken(begun.key)
            del self._uploads[begun.token]
            return self._keep(begun.key, b"".join(data for data, _ in kept), begun.nonce, crc64nvme)

    def abandon(self, begun: Begun) -> None:
        """Drop a begun upload, where the limits say that one can."""
        with self._lock:
            if self.limits.can_abandon:
                self._uploads.pop(begun.token, None)

    def put_whole(self, key: str, body: Body, nonce: str, *, create_only: bool) -> ObjectFact:
        """Store a small file as one object."""
        check_plan(self.limits, key, body.length, self.limits.max_piece_bytes)
        data = read_all(body)
        checksum = check_sent(key, checksum_of(data), body)
        with self._lock:
            if create_only and self.limits.create_only_finish:
                self._refuse_taken(key)
            return self._keep(key, data, nonce, checksum)

    def put_small(self, key: str, data: bytes, condition: Condition) -> str:
        """Store a record and return its version."""
        check_key(key, self.limits)
        with self._lock:
            if isinstance(condition, IfAbsent):
                self._refuse_taken(key)
            elif isinstance(condition, IfMatches):
                self._refuse_other(key, condition.version)
            return self._keep(key, bytes(data), None, checksum_of(data)).version

    def get_small(self, key: str, most_bytes: int) -> tuple[bytes, str]:
        """Return a record and its version."""
        data, fact = self._object(key)
        if len(data) > most_bytes:
            msg = f"{key}: {len(data)} bytes are more than the {most_bytes} that were expected"
            raise Never(msg)
        return data, fact.version

    def stat(self, key: str) -> ObjectFact:
        """Return the fact of an object."""
        return self._object(key)[1]

    def read_range(self, key: str, offset: int, length: int) -> Iterator[bytes]:
        """Yield the bytes of a range in one block."""
        data, _ = self._object(key)
        if offset + length > len(data):
            msg = f"{key}: ends at {len(data)}, before {offset + length}"
            raise Never(msg)
        return iter([data[offset : offset + length]] if length else [])

    def list(self, prefix: str) -> Iterator[ObjectFact]:
        """Yield the objects whose keys start with the prefix, sorted, as they are now."""
        with self._lock:
            found = [(key, fact) for key, (_, fact) in self._objects.items()]
        named = (pair for pair in found if pair[0].startswith(prefix))
        return iter([fact for _, fact in sorted(named, key=lambda pair: pair[0].encode())])

    def uploads(self, prefix: str) -> Iterator[Begun]:
        """Yield the begun uploads of keys that start with the prefix."""
        with self._lock:
            begun = [upload.begun for upload in self._uploads.values()]
        return iter([one for one in begun if one.key.startswith(prefix)])

    def delete(self, key: str) -> None:
        """Remove an object; success where there is none."""
        with self._lock:
            self._objects.pop(key, None)

    def describe(self) -> str:
        """Say what this is."""
        return "memory: gone when this process ends"

    def _next(self) -> int:
        self._count += 1
        return self._count

    def _object(self, key: str) -> tuple[bytes, ObjectFact]:
        found = self._objects.get(key)
        if found is None:
            msg = f"{key}: no such object"
            raise Missing(msg)
        return found

    def _upload(self, begun: Begun) -> _Upload:
        found = self._uploads.get(begun.token)
        if found is None:
            msg = f"{begun.key}: the upload {begun.token} is not known"
            raise Gone(msg)
        return found

    def _keep(self, key: str, data: bytes, nonce: str | None, checksum: int) -> ObjectFact:
        fact = ObjectFact(key, len(data), f"v{self._next()}", checksum, nonce, "crc64nvme")
        self._objects[key] = (data, fact)
        return fact

    def _refuse_taken(self, key: str) -> None:
        if key in self._objects:
            msg = f"{key}: exists already"
            raise Lost(msg)

    def _refuse_other(self, key: str, version: str) -> None:
        found = self._objects.get(key)
        if found is None or found[1].version != version:
            msg = f"{key}: is not at version {version} any more"
            raise Lost(msg)
