"""Bytes that the kernel shares with a volume, or copies into it: this program never holds them.

Where the watch root lies on the same file system (XFS and btrfs share extents, an NFS server copies
by itself) nothing is sent twice through memory. What arrived is read and summed there. A local disk
whose file system shares nothing (ext4) would copy each byte as well, and then have it read back
from the medium: reading, summing and writing it takes a quarter less CPU time there (measured).
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct

from ckptsyncd.checksum import crc64nvme
from ckptsyncd.core.ports import Body, OnDisk
from ckptsyncd.holes import data_at, hole_at, is_sparse
from ckptsyncd.stores.volume.copying import DIRTY_BYTES, drained, end_at, is_free, settle
from ckptsyncd.stores.volume.faults import faults

#: How file systems say that they cannot do it, or not between these two files.
_CANNOT = frozenset(
    {
        errno.EBADF,
        errno.EINVAL,
        errno.ENOSYS,
        errno.EOPNOTSUPP,
        errno.EPERM,
        errno.ETXTBSY,
        errno.EXDEV,
    }
)

#: The kernel's own number of the request to share a range of another file, and its argument: the
#: other file, where its range begins, how long it is, and where it goes.
_CLONE_RANGE, _RANGE = 0x4020940D, struct.Struct("=qQQQ")

#: How a file system says that it shares nothing at all.
_SHARES_NOTHING = frozenset({errno.EOPNOTSUPP, errno.ENOTTY, errno.ENOSYS})


def shared(descriptor: int, body: Body, offset: int, what: str, *, durable: bool) -> int | None:
    """Have the kernel put a body at an offset, and return the checksum of what is there then.

    ``None`` where it cannot, or where the body ends early: then it has to be read, and tells why.
    ``descriptor`` must be open for reading too. ``durable``: it is on the medium afterwards.
    """
    origin = body.origin() if isinstance(body, OnDisk) else None
    if origin is None or not body.length:
        return None
    with faults(what, writes=True):
        if os.fstat(origin[0]).st_dev != os.fstat(descriptor).st_dev:
            return None
        if not _arrived(origin, descriptor, offset, body.length):
            return None
        if durable:
            os.fdatasync(descriptor)
    checksum = 0
    for block in drained(descriptor, offset, body.length, what):
        checksum = crc64nvme(block, checksum)
    return checksum


def _arrived(origin: tuple[int, int], descriptor: int, offset: int, length: int) -> bool:
    """Share a range, or have the kernel copy it where that is cheaper than reading it.

    It is where there are holes, which the kernel skips, and on a file system without a device of
    its own, which lies elsewhere and may copy there.
    """
    source, start = origin
    if os.major(os.fstat(descriptor).st_dev) and not is_sparse(source):
        try:
            fcntl.ioctl(descriptor, _CLONE_RANGE, _RANGE.pack(source, start, length, offset))
        except OSError as error:
            if error.errno in _SHARES_NOTHING:
                return False
        else:
            return True
    return _copied(origin, descriptor, offset, length)


def _copied(origin: tuple[int, int], descriptor: int, offset: int, length: int) -> bool:
    """Copy inside the kernel, never with more in memory than may wait to be written."""
    source, start = origin
    done, has_holes = 0, is_sparse(source)
    while done < length:
        if has_holes and (hole := hole_at(source, start + done, start + length)):
            hole = min(hole, DIRTY_BYTES)
            if is_free(descriptor, offset + done, hole):
                done += hole
                continue
        end = start + min(length, done + DIRTY_BYTES)
        count = data_at(source, start + done, end) if has_holes else end - start - done
        try:
            copied = os.copy_file_range(source, descriptor, count, start + done, offset + done)
        except OSError as error:
            if error.errno in _CANNOT:
                return False
            raise
        if not copied:
            return False
        if done + copied < length:
            settle(descriptor, offset + done, copied)
        done += copied
    end_at(descriptor, offset + length)
    return True
