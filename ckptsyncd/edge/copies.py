"""Copy one open file: by reference where the file system can, else block by block."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Callable
from pathlib import Path

from ckptsyncd.core.facts import FileFact
from ckptsyncd.holes import hole_at, is_sparse

BLOCK_BYTES = 1024 * 1024

#: ``_IOW(0x94, 9, int)`` of linux/fs.h.
_FICLONE = 0x40049409

#: What a file system (or a pair of them) answers that cannot share blocks.
_NO_REFLINK = {
    errno.EOPNOTSUPP,
    errno.EXDEV,
    errno.EINVAL,
    errno.ENOTTY,
    errno.ENOSYS,
    errno.EPERM,
    errno.ETXTBSY,
}


def _no_bound(size: int) -> None:
    del size


def copy_file(
    source: int, fact: FileFact, target: str, admit: Callable[[int], None] = _no_bound
) -> None:
    """Make ``target`` a copy of the open file, with the size and mtime of its fact.

    ``admit`` is asked before so many bytes are written, and raises OSError where they must not be.
    The name appears when the copy is whole, over whatever was there. Raises OSError, and then
    leaves nothing behind.
    """
    part = target + ".part"
    out = os.open(part, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        if not _cloned(source, out):
            admit(fact.size)
            _copied(source, out, fact.size)
        os.fchmod(out, fact.mode | 0o400)
        os.utime(out, ns=(fact.mtime_ns, fact.mtime_ns))
        Path(part).rename(target)
    except OSError:
        Path(part).unlink(missing_ok=True)
        raise
    finally:
        os.close(out)


def _cloned(source: int, out: int) -> bool:
    try:
        fcntl.ioctl(out, _FICLONE, source)
    except OSError as error:
        if error.errno not in _NO_REFLINK:
            raise
        return False
    return True


def _copied(source: int, out: int, size: int) -> None:
    block = memoryview(bytearray(min(max(size, 1), BLOCK_BYTES)))
    offset, has_holes = 0, is_sparse(source)
    # Not past one byte more than expected: a file that grows would never end.
    while offset <= size:
        if has_holes and (hole := hole_at(source, offset, size)):
            offset += hole
            continue
        if not (count := os.preadv(source, [block], offset)):
            break
        written = 0
        while written < count:
            written += os.pwrite(out, block[written:count], offset + written)
        offset += count
    os.ftruncate(out, offset)  # it may end in a hole
