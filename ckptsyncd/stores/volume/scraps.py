"""What a process that was killed leaves in the workroom, and nobody comes back to."""

from __future__ import annotations

import contextlib
import os
import re
import stat

#: How the directory of an object ends that is stored in one go.
WHOLE = ".whole"

_RECORD = re.compile(r"[0-9a-f]{16}\.record|probe\.[0-9a-f]{16}(\.\d)?")
#: So old it is before nobody can be writing it any more (guessed: a record takes milliseconds, and
#: what is written for longer gets a new time with every block).
_AGE_NS = 3600 * 10**9


def sweep(folder: int, now_ns: int) -> None:
    """Remove the scraps in an open workroom; ``now_ns`` is the file system's own clock.

    Another process may sweep as well.
    """
    with os.scandir(folder) as entries:
        names = [entry.name for entry in entries]
    for name in names:
        with contextlib.suppress(FileNotFoundError):
            if _RECORD.fullmatch(name) and _is_old(folder, name, now_ns, stat.S_IFREG):
                os.unlink(name, dir_fd=folder)
            elif name.endswith(WHOLE) and _is_old(folder, name, now_ns, stat.S_IFDIR):
                _remove(folder, name, now_ns)


def _is_old(folder: int, name: str, now_ns: int, kind: int) -> bool:
    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    return now_ns - status.st_mtime_ns > _AGE_NS and stat.S_IFMT(status.st_mode) == kind


def _remove(folder: int, name: str, now_ns: int) -> None:
    """Remove an upload's directory if none of its files was written lately."""
    opened = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
    try:
        inside = os.listdir(opened)  # noqa: PTH208 - of an open directory
        if not all(_is_old(opened, one, now_ns, stat.S_IFREG) for one in inside):
            return
        for one in inside:
            os.unlink(one, dir_fd=opened)
    finally:
        os.close(opened)
    os.rmdir(name, dir_fd=folder)
