"""Bytes into and out of files, without leaving them in the page cache that the training needs."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator

from ckptsyncd.checksum import crc64nvme
from ckptsyncd.core.ports import Body
from ckptsyncd.errors import Again
from ckptsyncd.holes import hole_at, is_sparse, is_zero, zeros
from ckptsyncd.stores.volume.faults import faults

#: Bytes of one read or write.
BLOCK_BYTES = 1024 * 1024

#: Most bytes that wait in memory to be written: more would be flushed in one burst that also holds
#: up the trainer's own writes (guessed: a fraction of a second on a slow disk).
DIRTY_BYTES = 64 * 1024 * 1024


def pour(descriptor: int, body: Body, offset: int, what: str, *, durable: bool) -> int:
    """Write a body at an offset and return the checksum of the very bytes that were written.

    ``durable``: they are on the medium when this returns. What the body raises passes through;
    OSError also where it ends early.
    """
    body.rewind()
    checksum = done = synced = 0
    while block := body.read(BLOCK_BYTES):
        checksum = crc64nvme(block, checksum)
        with faults(what, writes=True):
            _place(descriptor, memoryview(block), offset + done)
            done += len(block)
            if done - synced >= DIRTY_BYTES:
                settle(descriptor, offset + synced, done - synced)
                synced = done
    if done != body.length:
        msg = f"the body ended after {done} of {body.length} bytes"
        raise OSError(errno.EIO, msg)
    with faults(what, writes=True):
        end_at(descriptor, offset + done)
        if durable:
            settle(descriptor, offset + synced, done - synced)
    return checksum


def end_at(descriptor: int, end: int) -> None:
    """Let a file that would end in a hole be long enough; other hands may write behind ``end``."""
    if os.fstat(descriptor).st_size < end:
        _write(descriptor, zeros(1), end - 1)


def _place(descriptor: int, view: memoryview, offset: int) -> None:
    """Write a block; one of zeros only where something else may lie."""
    if not is_zero(view) or not is_free(descriptor, offset, len(view)):
        _write(descriptor, view, offset)


def is_free(descriptor: int, offset: int, length: int) -> bool:
    """Return whether nothing was written into a range yet, inside the file or behind its end."""
    inside = max(min(os.fstat(descriptor).st_size, offset + length) - offset, 0)
    if not inside:
        return True
    return is_sparse(descriptor) and hole_at(descriptor, offset, offset + inside) == inside


def drained(descriptor: int, offset: int, length: int, what: str) -> Iterator[bytes]:
    """Yield exactly ``length`` bytes from ``offset``; Again where the file became shorter."""
    end = offset + length
    with faults(what):
        has_holes = is_sparse(descriptor)
    nothing = bytes(min(BLOCK_BYTES, length)) if has_holes else b""
    while offset < end:
        most = min(BLOCK_BYTES, end - offset)
        with faults(what):
            hole = hole_at(descriptor, offset, offset + most) if has_holes else 0
            block = nothing[:hole] if hole else os.pread(descriptor, most, offset)
            os.posix_fadvise(descriptor, offset, len(block), os.POSIX_FADV_DONTNEED)
        if not block:
            msg = f"{what}: became shorter while it was read"
            raise Again(msg)
        yield block
        offset += len(block)


def summed(descriptor: int, what: str) -> tuple[int, int]:
    """Return size and checksum of an open file, read from its medium where the system lets us."""
    with faults(what):
        size = os.fstat(descriptor).st_size
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    checksum = 0
    for block in drained(descriptor, 0, size, what):
        checksum = crc64nvme(block, checksum)
    return size, checksum


def _write(descriptor: int, view: memoryview, offset: int) -> None:
    while view:
        written = os.pwrite(descriptor, view, offset)
        if not written:
            raise OSError(errno.EIO, "nothing was written")
        view = view[written:]
        offset += written


def settle(descriptor: int, offset: int, length: int) -> None:
    """Bring a range to the medium and out of memory."""
    os.fdatasync(descriptor)
    os.posix_fadvise(descriptor, offset, length, os.POSIX_FADV_DONTNEED)
