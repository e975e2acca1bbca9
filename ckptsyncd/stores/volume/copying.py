"""Bytes into and out of files, without leaving them in the page cache that the training needs."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator

from ckptsyncd.checksum import crc64nvme
from ckptsyncd.core.ports import Body
from ckptsyncd.errors import Again
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
            _write(descriptor, memoryview(block), offset + done)
            done += len(block)
            if done - synced >= DIRTY_BYTES:
                settle(descriptor, offset + synced, done - synced)
                synced = done
    if done != body.length:
        msg = f"the body ended after {done} of {body.length} bytes"
        raise OSError(errno.EIO, msg)
    if durable:
        with faults(what, writes=True):
            settle(descriptor, offset + synced, done - synced)
    return checksum


def drained(descriptor: int, offset: int, length: int, what: str) -> Iterator[bytes]:
    """Yield exactly ``length`` bytes from ``offset``; Again where the file became shorter."""
    end = offset + length
    while offset < end:
        with faults(what):
            block = os.pread(descriptor, min(BLOCK_BYTES, end - offset), offset)
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
