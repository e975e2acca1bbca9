"""Which file system holds a file, by its number: statfs(2), which Python does not have."""

from __future__ import annotations

import ctypes
import os

_LIBC = ctypes.CDLL(None, use_errno=True)

#: ``struct statfs`` starts with the type as a C long and has 120 bytes on 64-bit Linux.
_STATFS_LONGS = 32


def magic_of(place: str | int) -> int:
    """Return the type number of the file system that holds a path or an open descriptor.

    Raises OSError as statfs(2) does.
    """
    buffer = (ctypes.c_long * _STATFS_LONGS)()
    if isinstance(place, int):
        answer = _LIBC.fstatfs(place, buffer)
    else:
        answer = _LIBC.statfs(os.fsencode(place), buffer)
    if answer != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), place)
    return int(buffer[0]) & 0xFFFFFFFF
