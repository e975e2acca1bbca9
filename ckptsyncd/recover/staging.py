"""Where the bytes of a restore wait until all are there: ``.ckptsyncd/restore-<save>/``.

::

    data/<name>   one file's bytes each; the name is made of its path, size and checksum
    journal       which pieces of them were written, one line each
    tree/         the checkpoint as it will lie in the target, made of links to ``data``

A killed restore leaves all of it, and the next one goes on from there. A piece that the journal
names is read back before it is trusted: after a power cut the journal may know more than the disk.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import threading
from pathlib import Path

from ckptsyncd.core.records.manifest import StoredFile
from ckptsyncd.recover.stream import Span

_PREFIX = "restore-"
_PLAIN = re.compile(r"[0-9A-Za-z]{1,64}")
_LINE = re.compile(r"([0-9a-f]{32}) (\d{1,19}) (\d{1,19}) ([0-9a-f]{16})")
_DROPPED = re.compile(r"([0-9a-f]{32}) dropped")


class Staging:
    """One save's staging directory and its journal; ``note`` and ``drop`` from any thread."""

    def __init__(self, ours: Path, save_id: str) -> None:
        """Make the directory in ours, or take up what an earlier attempt left."""
        if not _PLAIN.fullmatch(save_id):
            save_id = hashlib.sha256(repr(save_id).encode()).hexdigest()[:32]
        self.path = ours / (_PREFIX + save_id)
        self.tree = self.path / "tree"
        self._data = self.path / "data"
        self._data.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.spans = _read_journal(self.path / "journal")
        self._lock = threading.Lock()
        self._journal = (self.path / "journal").open("a", encoding="ascii")
        self._journal.write("\n")  # a line that a kill tore stays on its own

    def file_of(self, stored: StoredFile) -> Path:
        """Return where a file's bytes wait."""
        return self._data / name_of(stored)

    def note(self, stored: StoredFile, span: Span) -> None:
        """Write down that a piece is there."""
        row = f"{name_of(stored)} {span.offset} {span.length} {span.crc64nvme:016x}"
        self._write(row)

    def drop(self, stored: StoredFile) -> None:
        """Write down that nothing of a file is to be trusted."""
        self._write(f"{name_of(stored)} dropped")

    def close(self) -> None:
        """Keep everything for the next attempt."""
        with self._lock:
            self._journal.close()

    def remove(self) -> None:
        """Remove everything; links to the data stay what they are."""
        self.close()
        clear(self.path)

    def _write(self, row: str) -> None:
        with self._lock:
            if not self._journal.closed:
                self._journal.write(row + "\n")
                self._journal.flush()


def name_of(stored: StoredFile) -> str:
    """Return the name of a file's bytes in staging: other content never has the same."""
    identity = repr((stored.path, stored.size, stored.crc64nvme))
    return hashlib.sha256(identity.encode("utf-8", "surrogateescape")).hexdigest()[:32]


def remains(ours: Path) -> list[Path]:
    """Return the staging directories that earlier attempts left."""
    if not ours.is_dir() or ours.is_symlink():
        return []
    found = (Path(entry.path) for entry in os.scandir(ours) if entry.name.startswith(_PREFIX))
    return sorted(path for path in found if path.is_dir() and not path.is_symlink())


def clear(path: Path) -> None:
    """Remove a staging directory, also where directories in it may not be written."""
    for place, inner, _ in os.walk(path):
        for name in inner:
            if not (inside := Path(place, name)).is_symlink():
                inside.chmod(0o700)
    shutil.rmtree(path)


def _read_journal(path: Path) -> dict[str, list[Span]]:
    """Return what the journal knows of each file; a torn or foreign line ends nothing."""
    known: dict[str, list[Span]] = {}
    if not path.is_file():
        return known
    with path.open(encoding="ascii", errors="replace") as lines:
        for line in lines:
            if match := _LINE.fullmatch(line.rstrip("\n")):
                name, offset, length, checksum = match.groups()
                span = Span(int(offset), int(length), int(checksum, 16))
                known.setdefault(name, []).append(span)
            elif match := _DROPPED.fullmatch(line.rstrip("\n")):
                known.pop(match.group(1), None)
    return known
