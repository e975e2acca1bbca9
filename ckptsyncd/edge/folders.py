"""Directories of ours that are kept open while their files are pinned, opened and looked at.

To reach one name by name takes a dozen system calls, and each of them lets another thread take the
interpreter. A checkpoint of thousands of small files asks three times for each.
"""

from __future__ import annotations

import os
import threading
import weakref

#: So many are kept open (guessed: as many checkpoints are rarely on their way at once).
MOST_FOLDERS = 8


class Folder:
    """An open directory; closed when nobody holds it any more. ``is_made``: we made or own it."""

    def __init__(self, fd: int, *, is_made: bool) -> None:
        """Take the descriptor over."""
        self.fd = fd
        self.is_made = is_made
        self._close = weakref.finalize(self, os.close, fd)


class Folders:
    """The open directories by the pins that lie there. Any thread may ask.

    What is told may have lost its name meanwhile: whoever finds nothing there looks for it again.
    """

    def __init__(self) -> None:
        """Keep none open yet."""
        self._kept: dict[str, Folder] = {}
        self._lock = threading.Lock()

    def get(self, pin_id: str) -> Folder | None:
        """Return the directory of a pin, if it is open."""
        return self._kept.get(pin_id)

    def put(self, pin_id: str, folder: Folder) -> None:
        """Keep a directory open, instead of the one that was kept longest if there are many."""
        with self._lock:
            self._kept.pop(pin_id, None)
            self._kept[pin_id] = folder
            while len(self._kept) > MOST_FOLDERS:
                del self._kept[next(iter(self._kept))]

    def forget(self, pin_id: str) -> None:
        """Close a directory as soon as nobody works in it."""
        with self._lock:
            self._kept.pop(pin_id, None)
