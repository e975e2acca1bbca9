"""Holes: stretches of a file that hold nothing. They read as zeros and need not be read."""

from __future__ import annotations

import errno
import os

from ckptsyncd.statfs import magic_of

#: Zeros to stand for what lies in a hole: one block, whoever reads.
_BLOCK = bytes(1024 * 1024)
_VIEW = memoryview(_BLOCK)

#: ext4, XFS, btrfs, tmpfs: they know what was written, also before it is on the disk. Nobody else
#: is asked: releases of ZFS have called fresh data a hole, and a far server costs a round trip.
_TRUSTED = frozenset({0xEF53, 0x58465342, 0x9123683E, 0x01021994})


def zeros(count: int) -> memoryview:
    """Return so many zeros, at most a block, without making any."""
    return _VIEW[:count]


def is_zero(view: memoryview) -> bool:
    """Return whether a block, which is not empty, holds nothing but zeros.

    Two bytes answer for almost every block that does not.
    """
    if view.obj is _BLOCK:
        return True
    return view[0] == view[-1] == 0 and bytes(view) == _BLOCK[: len(view)]


def is_sparse(fd: int) -> bool:
    """Return whether an open file may have holes, on a file system that is trusted to tell.

    Less is allocated of such a file than it is long.
    """
    status = os.fstat(fd)
    return status.st_blocks * 512 < status.st_size and magic_of(fd) in _TRUSTED


def hole_at(fd: int, offset: int, end: int) -> int:
    """Return how many bytes from ``offset`` on, up to ``end``, are certainly a hole of the file.

    0 where data lies there, where the file has ended, and where the file system does not tell.
    Pages that were written and are not on the disk yet are data.
    """
    try:
        data = os.lseek(fd, offset, os.SEEK_DATA)
    except OSError as error:
        if error.errno != errno.ENXIO:
            return 0
        data = os.fstat(fd).st_size  # nothing but a hole from here to the end
    return max(min(data, end) - offset, 0)


def data_at(fd: int, offset: int, end: int) -> int:
    """Return how many bytes from ``offset`` on, up to ``end``, are to be taken for data at once."""
    try:
        hole = os.lseek(fd, offset, os.SEEK_HOLE)
    except OSError:
        return end - offset
    return min(hole, end) - offset if hole > offset else end - offset
