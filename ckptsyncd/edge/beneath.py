"""Reach what lies below a directory name by name, so that no symlink below it leads elsewhere.

Others may write into the watch root. Between a listing and an open they can put a symlink where a
directory was, and a path that is opened as a whole would follow it to files that only we may read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from ckptsyncd.core.facts import FileFact
from ckptsyncd.edge.seen import absolute, fact_at

#: Flags to open a directory on the way to something.
WAY = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
#: Flags to read a file that others may own: never waits, never follows a symlink.
READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def within(root: str, path: str) -> Iterator[tuple[int, str]]:
    """Yield the open directory that holds what a path below the root means, and its name there.

    ``""`` is the root itself, which alone may be reached through symlinks. Raises
    NotADirectoryError where a symlink or a file is in the way; what the body raises names the path.
    """
    whole = absolute(root, path)
    try:
        *way, name = path.split("/")
        here = os.open(root, WAY)
        try:
            for part in way:
                above, here = here, os.open(part, WAY | os.O_NOFOLLOW, dir_fd=here)
                os.close(above)
            yield here, name or "."
        finally:
            os.close(here)
    except OSError as error:
        if error.filename is not None:
            error.filename = whole
        raise


def fact_below(root: str, path: str) -> FileFact:
    """Return the fact of what lies there, never following a symlink; OSError as the system does."""
    with within(root, path) as (directory, name):
        return fact_at(path, name, directory)


def open_below(root: str, path: str, flags: int = READ) -> int:
    """Open a file that others may own, write or replace: never waits, never follows a symlink."""
    with within(root, path) as (directory, name):
        return os.open(name, flags, dir_fd=directory)


def link_below(root: str, path: str, directory: int, name: str) -> None:
    """Give a file below the root another name, in an open directory."""
    with within(root, path) as (source, old):
        os.link(old, name, src_dir_fd=source, dst_dir_fd=directory, follow_symlinks=False)
