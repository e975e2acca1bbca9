"""What an errno of a mounted volume means, as one table."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from ckptsyncd.errors import Again, Missing, Never, Refused, StoreError


@dataclass(frozen=True, slots=True)
class Verdict:
    """A kind of error; ``acted``: a write may have taken effect although this was the answer."""

    kind: type[StoreError]
    hint: str | None = None
    acted: bool = False


_ROOM = Verdict(Again, "make room on the volume, or raise its quota")
_RIGHTS = Verdict(Refused, "give this user the right to write there")
_MOUNT = Verdict(
    Again, "look whether the volume is still mounted and its server answers", acted=True
)
_SCARCE = Verdict(Again, "raise the limits of this process or machine")
_NAME = Verdict(Never, "shorten the names of the checkpoints or the path of the URL")
_IN_THE_WAY = Verdict(Never, "move away what stands in the way on the volume")

BY_ERRNO: Mapping[int, Verdict] = {
    errno.ENOENT: Verdict(Missing),
    errno.ENOSPC: _ROOM,
    errno.EDQUOT: _ROOM,
    errno.EROFS: Verdict(Refused, "mount the volume for writing"),
    errno.EACCES: _RIGHTS,
    errno.EPERM: _RIGHTS,
    errno.ESTALE: _MOUNT,
    errno.ENOTCONN: _MOUNT,
    errno.EHOSTDOWN: _MOUNT,
    errno.EHOSTUNREACH: _MOUNT,
    errno.ETIMEDOUT: _MOUNT,
    errno.EIO: _MOUNT,
    errno.ENODEV: _MOUNT,
    errno.ENXIO: _MOUNT,
    errno.EAGAIN: Verdict(Again),
    errno.EMFILE: _SCARCE,
    errno.ENFILE: _SCARCE,
    errno.ENOMEM: _SCARCE,
    errno.ENAMETOOLONG: _NAME,
    errno.ENOTDIR: _IN_THE_WAY,
    errno.EISDIR: _IN_THE_WAY,
    errno.ELOOP: Verdict(Never, "symlinks on the volume are not followed; use real directories"),
    errno.EFBIG: Verdict(Never, "the file system holds no file of this size"),
    errno.EOPNOTSUPP: Verdict(Never, "this file system cannot do what a store needs"),
    errno.ENOSYS: Verdict(Never, "this file system cannot do what a store needs"),
}


def classify(error: OSError, what: str, *, writes: bool) -> StoreError:
    """Return the store error that an error of the volume stands for.

    Where something is only read, a file where a directory was expected means: no such object.
    """
    verdict = BY_ERRNO.get(error.errno or 0, Verdict(Again, acted=True))
    if not writes and error.errno == errno.ENOTDIR:
        verdict = Verdict(Missing)
    text = f"{what}: {error.strerror or error}"
    return verdict.kind(text, hint=verdict.hint, ambiguous=verdict.acted and writes)


@contextmanager
def faults(what: str, *, writes: bool = False) -> Iterator[None]:
    """Turn every OSError inside into the store error it stands for.

    Nothing that reads a body may stand inside: what the body raises is not the volume's.
    """
    try:
        yield
    except OSError as error:
        raise classify(error, what, writes=writes) from error
