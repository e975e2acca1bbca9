"""Where pins may lie: beside the watch root, else inside it."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from ckptsyncd.edge.walk import OURS


def candidates(root: str) -> tuple[str, ...]:
    """Return the directories in which links to the root's files can be made, best first.

    Beside the root survives the trainer's removal of the root; it must be on the same device and
    writable. The directories are not made here.
    """
    inside = f"{root}/{OURS}/pins"
    parent, name = os.path.split(root)
    try:
        near = Path(parent).stat().st_dev == Path(root).stat().st_dev
    except OSError:  # the root is not there now: whatever was pinned beside it is still found
        near = True
    if not (name and near and os.access(parent, os.W_OK | os.X_OK)):
        return (inside,)
    tag = hashlib.sha256(os.fsencode(root)).hexdigest()[:8]
    return (f"{parent}/{OURS}/pins/{name}-{tag}", inside)


def make(directory: str, root: str) -> None:
    """Make a directory of ours and those above it that are missing; success where it exists.

    It belongs to whom the root belongs, with the root's mode: the trainer can remove it with the
    rest. Raises OSError where a directory on the way is a symlink or belongs to somebody else.
    """
    like = Path(root).stat()
    for step in _ours(directory):
        try:
            Path(step).mkdir(0o700)
        except FileExistsError:
            _trust(step, like.st_uid)
            continue
        if os.geteuid() == 0:
            with contextlib.suppress(OSError):  # a courtesy; a root without rights cannot do it
                os.chown(step, like.st_uid, like.st_gid)
        Path(step).chmod(stat.S_IMODE(like.st_mode) | stat.S_IRWXU)


def _ours(directory: str) -> Iterator[str]:
    """Yield the directories to make, from the outermost that is ours."""
    above, slash, _ = directory.partition(f"/{OURS}/")
    names = directory[len(above) + 1 :].split("/") if slash else [""]
    place = above if slash else directory
    for name in names:
        place = f"{place}/{name}" if name else place
        yield place


def _trust(step: str, owner: int) -> None:
    status = os.lstat(step)
    if not stat.S_ISDIR(status.st_mode):
        raise OSError(errno.ENOTDIR, "is no directory of ours", step)
    if status.st_uid not in (os.geteuid(), owner):
        raise OSError(errno.EPERM, f"belongs to uid {status.st_uid}", step)
