"""Where pins may lie: beside the watch root, else inside it."""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import os
import stat
from pathlib import Path

from ckptsyncd.edge.walk import OURS

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def candidates(root: str) -> tuple[str, ...]:
    """Return the directories in which links to the root's files can be made, best first.

    Beside the root survives the trainer's removal of the root; it must be on the same device and
    writable. The directories are not made here.
    """
    inside = f"{root}/{OURS}/pins"
    parent, name = os.path.split(root)
    try:
        near = os.stat(parent).st_dev == os.stat(root).st_dev  # noqa: PTH116 - for every file
    except OSError:  # the root is not there now: whatever was pinned beside it is still found
        near = True
    if not (name and near and os.access(parent, os.W_OK | os.X_OK)):
        return (inside,)
    return (f"{parent}/{OURS}/pins/{name}-{_tag(root)}", inside)


@functools.lru_cache(maxsize=16)
def _tag(root: str) -> str:
    return hashlib.sha256(os.fsencode(root)).hexdigest()[:8]


def make(directory: str, root: str) -> None:
    """Make a directory of ours and those above it that are missing; success where it exists.

    It belongs to whom the root belongs, with the root's mode: the trainer can remove it with the
    rest. Raises OSError where a directory on the way is a symlink or belongs to somebody else.
    """
    like = Path(root).stat()
    above, names = split(directory)
    here = os.open(above, _DIRECTORY)
    try:
        for name in names:
            upper, here = here, _step(here, name, like)
            os.close(upper)
    finally:
        os.close(here)


def split(directory: str) -> tuple[str, list[str]]:
    """Return where a directory of ours lies, and the names of ours that lead to it from there."""
    above, slash, below = directory.rpartition(f"/{OURS}/")
    if slash:
        return above or "/", [OURS, *below.split("/")]
    above, name = os.path.split(directory)
    return above, [name]


def _step(here: int, name: str, like: os.stat_result) -> int:
    """Open a directory of ours in an open one, made first where it is missing.

    What is changed is what was opened: others may put something else under the name meanwhile.
    """
    try:
        os.mkdir(name, 0o700, dir_fd=here)
        is_new = True
    except FileExistsError:
        is_new = False
    try:
        opened = os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=here)
    except NotADirectoryError:
        raise OSError(errno.ENOTDIR, "is no directory of ours", name) from None
    try:
        _trust(opened, name, (os.geteuid(),) if is_new else (os.geteuid(), like.st_uid))
        if is_new:
            _give(opened, like)
    except OSError:
        os.close(opened)
        raise
    return opened


def _trust(opened: int, name: str, owners: tuple[int, ...]) -> None:
    owner = os.fstat(opened).st_uid
    if owner not in owners:
        raise OSError(errno.EPERM, f"belongs to uid {owner}", name)


def _give(opened: int, like: os.stat_result) -> None:
    if os.geteuid() == 0:
        with contextlib.suppress(OSError):  # a courtesy; a root without rights cannot do it
            os.fchown(opened, like.st_uid, like.st_gid)
    os.fchmod(opened, stat.S_IMODE(like.st_mode) | stat.S_IRWXU)
