"""Where uploads lie until they are whole: one directory each, found again after a crash."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from secrets import token_hex

from ckptsyncd.core.facts import Begun
from ckptsyncd.core.records.names import quoted
from ckptsyncd.errors import Gone, Missing, StoreError
from ckptsyncd.stores.volume.faults import faults
from ckptsyncd.stores.volume.naming import Place
from ckptsyncd.stores.volume.scraps import WHOLE
from ckptsyncd.stores.volume.tree import WORKROOM, Tree, closing

#: An upload's bytes, and what is known of it, in its directory.
DATA = "data"
BEGUN = "begun.json"

#: The extended attribute that carries the nonce of an object's upload.
NONCE = b"user.ckptsyncd.nonce"

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW

#: Largest note about an upload that is read (guessed: a key, twice escaped, and four numbers).
_MOST_NOTE_BYTES = 64 * 1024


class Workroom:
    """The directory of unfinished uploads of one volume."""

    def __init__(self, tree: Tree) -> None:
        """Work below this tree."""
        self._tree = tree

    def begin(
        self, key: str, size: int, piece_bytes: int, nonce: str, *, whole: bool = False
    ) -> Begun:
        """Make an upload's directory, with a note of what it is and an empty file.

        ``whole``: it is stored in one go. After a kill nobody comes back to it: it is a scrap.
        """
        token = f"{quoted(nonce)}.{token_hex(4)}{WHOLE if whole else ''}"
        note = {"key": key, "size": size, "piece_bytes": piece_bytes, "nonce": nonce}
        begun = Begun(key, token, nonce, size, piece_bytes)
        with self._tree.workroom() as workroom, faults(key, writes=True):
            os.mkdir(token, dir_fd=workroom)
        try:
            with self.upload(begun) as upload, faults(key, writes=True):
                _write_new(upload, BEGUN, json.dumps(note).encode())
                _write_new(upload, DATA, b"", nonce)
        except StoreError:
            with suppress(StoreError):  # a volume that is full can mostly still remove
                self.remove(begun)
            raise
        return begun

    @contextmanager
    def upload(self, begun: Begun) -> Iterator[int]:
        """Open an upload's directory; Gone where it is not there."""
        with self._tree.workroom():
            pass  # says Again where the whole volume has vanished
        gone = Gone(f"{begun.key}: the upload {begun.token} is not known")
        if "/" in begun.token or begun.token in ("", ".", ".."):
            raise gone
        try:
            opened = self._tree.open((*WORKROOM, begun.token))
        except Missing:
            raise gone from None
        with closing(opened) as descriptor:
            yield descriptor

    @contextmanager
    def data(self, begun: Begun, flags: int) -> Iterator[int]:
        """Open an upload's bytes; Gone where they are not there."""
        with self.upload(begun) as upload:
            try:
                with faults(begun.key):
                    flags |= os.O_NOFOLLOW | os.O_CLOEXEC
                    opened = os.open(DATA, flags, dir_fd=upload)
            except Missing:
                msg = f"{begun.key}: the upload {begun.token} has no bytes any more"
                raise Gone(msg) from None
        try:
            yield opened
        finally:
            with faults(begun.key, writes=flags & os.O_ACCMODE != os.O_RDONLY):
                os.close(opened)  # network file systems report lost writes here

    @contextmanager
    def record(self, data: bytes, what: str) -> Iterator[Place]:
        """Write a flushed file that waits for its name; removed if it gets none."""
        name = f"{token_hex(8)}.record"
        with self._tree.workroom() as workroom:
            try:
                with faults(what, writes=True):
                    _write_new(workroom, name, data, flush=True)
                yield workroom, name
            finally:
                with faults(what, writes=True):
                    _unlink(workroom, name)

    def remove(self, begun: Begun) -> None:
        """Remove an upload's directory; success where it is not there."""
        try:
            with self.upload(begun) as upload, faults(begun.key, writes=True):
                _unlink(upload, DATA)
                _unlink(upload, BEGUN)
        except Gone:
            return
        with self._tree.workroom() as workroom, faults(begun.key, writes=True):
            try:
                os.rmdir(begun.token, dir_fd=workroom)
            except FileNotFoundError:
                return

    def uploads(self, prefix: str) -> Iterator[Begun]:
        """Yield the uploads of keys below a prefix; one whose note is lost has an empty key."""
        try:
            opened = self._tree.open(WORKROOM)
        except Missing:
            return
        with closing(opened) as workroom, faults("/".join(WORKROOM)):
            tokens = sorted(
                entry.name for entry in os.scandir(workroom) if entry.is_dir(follow_symlinks=False)
            )
        for token in tokens:
            begun = self._noted(token)
            if begun.key.startswith(prefix):
                yield begun

    def _noted(self, token: str) -> Begun:
        """Return what an upload's note says; the note is ours, but a crash may have cut it."""
        try:
            with self._tree.file((*WORKROOM, token, BEGUN)) as descriptor, faults(token):
                note = json.loads(os.pread(descriptor, _MOST_NOTE_BYTES, 0))
            return Begun(
                key=str(note["key"]),
                token=token,
                nonce=str(note["nonce"]),
                size=int(note["size"]),
                piece_bytes=int(note["piece_bytes"]),
            )
        except (Missing, ValueError, KeyError, TypeError):
            return Begun("", token, "", 0, 0)


def nonce_of(descriptor: int) -> str | None:
    """Return the nonce that an object carries, None where it has none or none can be kept."""
    try:
        return os.getxattr(descriptor, NONCE).decode("utf-8", "replace")
    except OSError as error:
        if error.errno in _NO_ATTRIBUTES:
            return None
        raise


#: How file systems say that there is no such attribute, or that there are none at all.
_NO_ATTRIBUTES = frozenset(
    {errno.ENODATA, errno.EOPNOTSUPP, errno.ENOSYS, errno.EPERM, errno.EACCES, errno.EINVAL}
)


def _write_new(
    folder: int, name: str, data: bytes, nonce: str = "", *, flush: bool = False
) -> None:
    descriptor = os.open(name, _NEW, 0o666, dir_fd=folder)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        if nonce:
            _mark(descriptor, nonce)
        if flush:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _mark(descriptor: int, nonce: str) -> None:
    """Attach the nonce where the file system keeps attributes; where not, objects have none."""
    try:
        os.setxattr(descriptor, NONCE, nonce.encode())
    except OSError as error:
        if error.errno not in _NO_ATTRIBUTES:
            raise


def _unlink(folder: int, name: str) -> None:
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return
