"""What the mind's hands can do: the protocols that every room outside is built to.

Contracts are written at the methods. Whoever implements one raises only ``StoreError``s (stores)
or ``OSError`` (disks), and classifies; nobody outside the brain retries, sleeps or decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, runtime_checkable

from ckptsyncd.core.facts import (
    Begun,
    Condition,
    FileFact,
    FileLook,
    Limits,
    Listing,
    ObjectFact,
    Piece,
    Receipt,
)
from ckptsyncd.core.rules.bucket import BucketRule, Location


class Body(Protocol):
    """The bytes of one piece, read from the pin while they are sent; never the whole file at once.

    A body is read once from start to end; ``rewind`` starts it again (an SDK may sign first).
    """

    length: int

    def read(self, most_bytes: int) -> bytes | bytearray | memoryview:
        """Return the next bytes, at most ``most_bytes``, empty at the end.

        The answer may be a view of a buffer that the next call overwrites. Raises OSError where
        the file ends early (it changed under us).
        """
        ...

    def rewind(self) -> None:
        """Start again from the first byte."""
        ...

    def crc64nvme(self) -> int:
        """Return the CRC64-NVME of all bytes; reads them if they were not read yet."""
        ...


@runtime_checkable
class OnDisk(Protocol):
    """A body whose bytes lie in an open file: a store on the same file system need not read them.

    Whoever copies them inside the kernel has to sum what arrived: the body saw nothing of it.
    """

    def origin(self) -> tuple[int, int] | None:
        """Return descriptor and offset of the first byte; ``None`` where it wants to be read."""
        ...


class Store(Protocol):
    """A destination. Keys are relative to its prefix, ``/`` between components.

    Every method may raise any of the six kinds of StoreError; methods are called from several
    threads at once. No method lists anything but ``list``; none creates buckets; none waits
    longer than its own time-outs.
    """

    @property
    def limits(self) -> Limits:
        """What this store can do; the first reading may try it out, and raise as any method."""
        ...

    def begin(self, key: str, size: int, piece_bytes: int, nonce: str) -> Begun:
        """Begin an upload that will become one object; nothing is visible under the key yet."""
        ...

    def put_piece(self, begun: Begun, piece: Piece, body: Body) -> Receipt:
        """Send one piece; the store checked what it received as far as ``limits.checksum`` says.

        Sending a piece again replaces it. Raises Gone where the upload is not known any more.
        """
        ...

    def finish(
        self, begun: Begun, receipts: Sequence[Receipt], crc64nvme: int, *, create_only: bool
    ) -> ObjectFact:
        """Make the pieces one object, durable and visible as a whole; never visible in part.

        ``crc64nvme`` is that of the whole object, checked by the store where it can. With
        ``create_only`` raises Lost where the key is taken, as far as ``limits.create_only_finish``.
        Raises Gone where the upload is not known: ``stat`` tells whether an earlier finish won.
        """
        ...

    def abandon(self, begun: Begun) -> None:
        """Drop a begun upload and every piece of it; success where it is not known any more."""
        ...

    def put_whole(self, key: str, body: Body, nonce: str, *, create_only: bool) -> ObjectFact:
        """Store a small file (at most one piece) as one object; as ``begin`` to ``finish``."""
        ...

    def put_small(self, key: str, data: bytes, condition: Condition) -> str:
        """Store a small record durably and return its version; Lost where the condition fails."""
        ...

    def get_small(self, key: str, most_bytes: int) -> tuple[bytes, str]:
        """Return a record and its version. Missing where there is none, Never where too large."""
        ...

    def stat(self, key: str) -> ObjectFact:
        """Return what the store knows of an object; Missing where there is none.

        A store that keeps no checksum may read the object back to tell it.
        """
        ...

    def read_range(self, key: str, offset: int, length: int) -> Iterator[bytes]:
        """Yield ``length`` bytes from ``offset`` in blocks; Missing where there is no object."""
        ...

    def list(self, prefix: str) -> Iterator[ObjectFact]:
        """Yield every object whose key starts with ``prefix``, in no order to rely on.

        S3 itself sorts by key; its directory buckets and SeaweedFS do not.
        """
        ...

    def uploads(self, prefix: str) -> Iterable[Begun]:
        """Yield begun, unfinished uploads below ``prefix``, as far as the store tells them."""
        ...

    def delete(self, key: str) -> None:
        """Remove an object; success where there is none."""
        ...

    def describe(self) -> str:
        """Return the URL and what was found out about the store, for people. No secrets."""
        ...


@runtime_checkable
class Expiring(Protocol):
    """A store that knows when its credentials end."""

    def credentials_expire_at(self) -> float | None:
        """Return when (wall time) credentials end that nobody renews; asks nothing of the store.

        ``None`` where they are renewed by themselves, never end, or do not tell.
        """
        ...


@runtime_checkable
class Timed(Protocol):
    """A store that has heard its server's clock."""

    def clock_ahead_seconds(self) -> float | None:
        """Return how far this machine's clock is ahead; asks nothing. ``None``: not heard yet."""
        ...


class Situation(Protocol):
    """What a store's bucket says about itself. Every method asks it once; raises StoreErrors."""

    def location(self) -> Location:
        """Return where the bucket lies; Refused where the credentials may not know."""
        ...

    def rules(self) -> tuple[BucketRule, ...] | None:
        """Return the enabled rules of its lifecycle; Refused where they may not be read.

        ``None`` where this kind of store tells them to nobody who only stores in it.
        """
        ...

    def server_wall(self) -> float | None:
        """Return the server's clock (seconds since the epoch), ``None`` where it shows none."""
        ...

    def endpoint(self) -> str:
        """Return the address to which requests go, empty where there is none; asks nobody."""
        ...

    def key_id(self) -> str:
        """Return by which name we are known there, empty where there is none; asks nobody."""
        ...


@runtime_checkable
class Situated(Protocol):
    """A store that can say where it is."""

    def situation(self) -> Situation:
        """Return what answers for the bucket; nothing is asked yet."""
        ...


class Disk(Protocol):
    """The watch root and its pins. Paths are relative to the watch root.

    Raises OSError as the system does. Never follows a symlink, never blocks on a FIFO.
    """

    def walk(self, path: str, *, recursive: bool) -> Iterator[FileFact]:
        """Yield the facts of everything at and below ``path``; what vanishes meanwhile is left out.

        ``""`` is the watch root. A path that does not exist yields nothing. Directories are
        yielded too (size and mtime 0), without their own pins directory.
        """
        ...

    def look(self, path: str) -> FileLook | None:
        """Examine one file closely: open writers by a read lease, format by head and tail.

        ``None`` where it is gone. A file that cannot be read has a ``fault`` that says why.
        """
        ...

    def pin(self, pin_id: str, listing: Listing) -> tuple[Listing, str]:
        """Make the listing's files readable under ``pin_id`` whatever the trainer does to them.

        Hard links, or open descriptors where a link is refused. Returns the listing taken from
        the pins and, if something went wrong, what (the pin is then not held). The order of the
        files' ctimes stays as it was, here and at ``unpin``.
        """
        ...

    def copy(self, pin_id: str, listing: Listing) -> tuple[Listing, str]:
        """Like ``pin``, with a stable copy (reflink, else bytes) of what is rewritten in place.

        Succeeds only where the listing was equal before and after and nobody had a file open.
        """
        ...

    def look_again(self, pin_id: str, listing: Listing) -> str:
        """Return why the pinned files are not what the listing says, or ``""``.

        By ``fstat`` on the pin, never on the path; an open writer counts as a change.
        """
        ...

    def unpin(self, pin_id: str) -> None:
        """Let go of the pinned files; success where nothing is pinned."""
        ...

    def discard(self, listing: Listing) -> str:
        """Remove the listing's files if every one is what the listing says; return why not.

        Directories go where they are empty then. What the listing does not name stays.
        """
        ...

    def open_piece(self, pin_id: str, listing: Listing, path: str, piece: Piece) -> Body:
        """Return the bytes of one piece of a pinned file."""
        ...

    def read_small(self, path: str, most_bytes: int) -> bytes | None:
        """Return the content of a small file by its path, ``None`` where it is gone."""
        ...
