"""The volume destination: ``file:///path``."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from ckptsyncd.checksum import combined
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
from ckptsyncd.errors import Again, Gone, Missing, Never, StoreError
from ckptsyncd.stores.checks import (
    adds_up,
    check_key,
    check_piece,
    check_plan,
    check_sent,
    in_order,
    not_adding_up,
)
from ckptsyncd.stores.volume.copying import drained, pour, summed
from ckptsyncd.stores.volume.listing import objects_below, remove_object
from ckptsyncd.stores.volume.naming import Naming, size_of
from ckptsyncd.stores.volume.probe import Findings, try_out
from ckptsyncd.stores.volume.sharing import shared
from ckptsyncd.stores.volume.situation import VolumeSituation
from ckptsyncd.stores.volume.tree import WORKROOM, Tree
from ckptsyncd.stores.volume.workroom import DATA, Workroom, nonce_of

#: Longest path that Linux takes (PATH_MAX), and what the workroom's names need of it.
MAX_PATH_BYTES = 4096


class VolumeStore:
    """One directory. Nothing is opened before the first use.

    The first write makes the directory (not its parent) and tries out what the file system can do.
    An object's version is its content's; its nonce is an extended attribute where there are any.
    """

    def __init__(
        self, path: str, *, read_back: bool | None = None, findings: Findings | None = None
    ) -> None:
        """Take an absolute path.

        ``read_back``: read every object from the volume again before it gets its name; unset, only
        where a program (FUSE) stands behind the volume. ``findings``: what the file system can do
        where that is known already; unset, it is tried out.
        """
        self._tree = Tree(path)
        self._work = Workroom(self._tree)
        self._read_back = read_back
        self._known = findings
        self._ready: tuple[Findings, Naming] | None = None
        self._lock = threading.Lock()
        self._limits = Limits(
            min_piece_bytes=1,
            max_piece_bytes=2**40,
            max_pieces=2**31,
            max_object_bytes=2**62,
            max_key_bytes=MAX_PATH_BYTES - len(os.fsencode(path)) - 2,
        )

    @property
    def limits(self) -> Limits:
        """What this file system can do; found out by the first reading, which may raise."""
        findings, _ = self._tried()
        return replace(
            self._limits,
            pieces_in_parallel=findings.writes_anywhere,
            create_only_finish=findings.create_only,
            compare_and_set=findings.locks,
            checksum=self._checked(findings),
        )

    def begin(self, key: str, size: int, piece_bytes: int, nonce: str) -> Begun:
        """Begin an upload in the workroom; its token names it there."""
        return self._begin(key, size, piece_bytes, nonce, whole=False)

    def put_piece(self, begun: Begun, piece: Piece, body: Body) -> Receipt:
        """Write one piece in its place; it is on the medium when this returns."""
        return self._pour(begun, piece, body, durable=True)

    def finish(
        self, begun: Begun, receipts: Sequence[Receipt], crc64nvme: int, *, create_only: bool
    ) -> ObjectFact:
        """Flush the file, then give it its name.

        Where flushing fails the upload is dropped: Linux reports a lost page only once, so the next
        flush would succeed over it.
        """
        ordered = in_order(begun, receipts)
        findings, naming = self._tried()
        if not adds_up(ordered, crc64nvme):
            self.abandon(begun)
            raise not_adding_up(begun.key)
        names = self._path(begun.key)
        self._flush(begun, crc64nvme, findings)
        with (
            self._work.upload(begun) as upload,
            self._tree.folder(names[:-1], make=True) as folder,
        ):
            self._name(begun, (upload, DATA), (folder, names[-1]), naming, create_only=create_only)
        self.abandon(begun)
        version = _version(begun.size, crc64nvme)
        checked = self._checked(findings)
        return ObjectFact(begun.key, begun.size, version, crc64nvme, begun.nonce, checked)

    def abandon(self, begun: Begun) -> None:
        """Remove an upload from the workroom; success where it is not there."""
        self._tried()
        self._work.remove(begun)

    def put_whole(self, key: str, body: Body, nonce: str, *, create_only: bool) -> ObjectFact:
        """Store a small file as one object: begun, written and finished in one go."""
        begun = self._begin(key, body.length, max(body.length, 1), nonce, whole=True)
        try:
            piece = Piece(0, 0, body.length)
            receipts = (self._pour(begun, piece, body, durable=False),) if body.length else ()
            checksum = combined((one.crc64nvme, one.length) for one in receipts)
            return self.finish(begun, receipts, checksum, create_only=create_only)
        except (StoreError, OSError):
            self.abandon(begun)
            raise

    def put_small(self, key: str, data: bytes, condition: Condition) -> str:
        """Write a record beside, flush it, then give it its name under the condition."""
        check_key(key, self._limits)
        names = self._path(key)
        _, naming = self._tried()
        with (
            self._work.record(data, key) as source,
            self._tree.folder(names[:-1], make=True) as folder,
        ):
            target = (folder, names[-1])
            if isinstance(condition, IfAbsent):
                naming.give(source, target, key, create_only=True)
            else:
                naming.replace(source, target, key, lambda: self._holds(key, condition))
        return _version(len(data), checksum_of(data))

    def get_small(self, key: str, most_bytes: int) -> tuple[bytes, str]:
        """Return a record and its version."""
        with self._opened(key) as descriptor:
            size = os.fstat(descriptor).st_size
            if size > most_bytes:
                msg = f"{key}: {size} bytes are more than the {most_bytes} that were expected"
                raise Never(msg)
            data = b"".join(drained(descriptor, 0, size, key))
        return data, _version(size, checksum_of(data))

    def stat(self, key: str) -> ObjectFact:
        """Read an object through and return its fact."""
        with self._opened(key) as descriptor:
            size, checksum = summed(descriptor, key)
            nonce = nonce_of(descriptor)
        return ObjectFact(key, size, _version(size, checksum), checksum, nonce, "read back")

    def read_range(self, key: str, offset: int, length: int) -> Iterator[bytes]:
        """Yield the bytes of a range; Never where the object ends before it."""
        with self._opened(key) as descriptor:
            size = os.fstat(descriptor).st_size
            if offset + length > size:
                msg = f"{key}: ends at {size}, before {offset + length}"
                raise Never(msg)
            yield from drained(descriptor, offset, length, key)

    def list(self, prefix: str) -> Iterator[ObjectFact]:
        """Yield the files below a prefix in the order of their keys; versions are not told."""
        return objects_below(self._tree, prefix)

    def uploads(self, prefix: str) -> Iterator[Begun]:
        """Yield the uploads that lie in the workroom."""
        return self._work.uploads(prefix)

    def delete(self, key: str) -> None:
        """Remove a file, and the directories that it leaves empty."""
        check_key(key, self._limits)
        remove_object(self._tree, self._path(key))

    def situation(self) -> VolumeSituation:
        """Return what answers for the directory."""
        return VolumeSituation()

    def describe(self) -> str:
        """Return the URL, and what was found out if something was written."""
        said = self._ready[0].in_words() if self._ready else "not tried out yet"
        return f"file://{self._tree.path}: {said}"

    def _tried(self) -> tuple[Findings, Naming]:
        with self._lock:
            if self._ready is None:
                self._tree.prepare()
                with self._tree.workroom() as workroom:
                    findings = self._known or try_out(self._tree.path, workroom)
                self._ready = (findings, Naming(self._tree, findings))
            return self._ready

    def _begin(self, key: str, size: int, piece_bytes: int, nonce: str, *, whole: bool) -> Begun:
        check_plan(self._limits, key, size, piece_bytes)
        self._path(key)
        self._tried()
        return self._work.begin(key, size, piece_bytes, nonce, whole=whole)

    def _checked(self, findings: Findings) -> str:
        return "read back" if self._reads_back(findings) else "crc64nvme"

    def _reads_back(self, findings: Findings) -> bool:
        return findings.is_fuse if self._read_back is None else self._read_back

    def _path(self, key: str) -> tuple[str, ...]:
        names = tuple(key.split("/"))
        if names[: len(WORKROOM)] == WORKROOM:
            msg = f"{key}: lies where uploads are made"
            raise Never(msg)
        return names

    @contextmanager
    def _opened(self, key: str) -> Iterator[int]:
        check_key(key, self._limits)
        with self._tree.file(self._path(key)) as descriptor:
            yield descriptor

    def _pour(self, begun: Begun, piece: Piece, body: Body, *, durable: bool) -> Receipt:
        check_piece(begun, piece, body)
        self._tried()
        with self._work.data(begun, os.O_RDWR) as descriptor:
            at, key = piece.offset, begun.key
            checksum = shared(descriptor, body, at, key, durable=durable)
            if checksum is None:
                written = pour(descriptor, body, at, key, durable=durable)
                checksum = check_sent(key, written, body)
        return Receipt(piece.index, piece.length, checksum, token=f"{checksum:016x}")

    def _flush(self, begun: Begun, crc64nvme: int, findings: Findings) -> None:
        """Make the upload durable and look at it again; drop it where that does not work out."""
        with self._work.data(begun, os.O_RDONLY) as descriptor:
            fault = _not_flushed(descriptor, begun)
        if not fault and self._reads_back(findings):
            with self._work.data(begun, os.O_RDONLY) as descriptor:
                if summed(descriptor, begun.key) != (begun.size, crc64nvme):
                    fault = "the volume holds other bytes than were written"
        if fault:
            self.abandon(begun)
            msg = f"{begun.key}: {fault}; the upload is dropped"
            raise Gone(msg)

    def _name(
        self,
        begun: Begun,
        source: tuple[int, str],
        target: tuple[int, str],
        naming: Naming,
        *,
        create_only: bool,
    ) -> None:
        """Give the upload its name, and see it there."""
        naming.give(source, target, begun.key, create_only=create_only)
        size = size_of(target, begun.key)
        if size != begun.size:
            msg = f"{begun.key}: the volume shows {size} of {begun.size} bytes under its name"
            raise Again(msg, ambiguous=True)

    def _holds(self, key: str, condition: Condition) -> bool:
        if not isinstance(condition, IfMatches):
            return True
        try:
            return self.stat(key).version == condition.version
        except Missing:
            return False


def _version(size: int, checksum: int) -> str:
    return f"{size}-{checksum:016x}"


def _not_flushed(descriptor: int, begun: Begun) -> str:
    try:
        os.fsync(descriptor)
    except OSError as error:
        return f"flushing failed: {error.strerror}"
    size = os.fstat(descriptor).st_size
    return "" if size == begun.size else f"{size} of {begun.size} bytes are there"
