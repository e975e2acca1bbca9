"""Is there room for what is to be fetched? Better asked before the first byte than at the last."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from ckptsyncd.core.records.manifest import StoredFile
from ckptsyncd.core.words import size_words
from ckptsyncd.errors import CkptsyncdError
from ckptsyncd.recover.staging import Staging

#: What ``st_blocks`` counts in, on every file system of Linux.
_BLOCK_BYTES = 512


def check_room(root: Path, files: Sequence[StoredFile], staging: Staging) -> None:
    """Raise CkptsyncdError where the target's disk has less room than the files need."""
    needed = sum(stored.size - _there(staging.file_of(stored), stored) for stored in files)
    disk = os.statvfs(root)
    free = disk.f_bavail * disk.f_frsize
    if needed > free:
        msg = f"{size_words(needed)} are to be fetched and {str(root)!r} has {size_words(free)}"
        hint = "make room, or take less with --only; what was fetched already is kept"
        raise CkptsyncdError(msg, hint=hint)


def _there(path: Path, stored: StoredFile) -> int:
    """Return how many bytes of a file an earlier attempt has put on the disk already."""
    try:
        fact = path.lstat()
    except FileNotFoundError:
        return 0
    return min(fact.st_blocks * _BLOCK_BYTES, stored.size)
