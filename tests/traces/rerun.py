"""Plays a recorded trace as real file operations below a real directory, at the recorded times.

What was written is not recorded, so it is made up: every save of a file has content of its own, of
the recorded size, whole by its format when its writer closes it (or cut off, where the writer was
killed). What the trainer had finished is noted by checksum; nothing else may ever be committed.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ckptsyncd.checksum import crc64nvme
from tests.traces.content import content, pointer, scaled
from tests.traces.player import Player, Row

_SAVE = re.compile(r"(?:ckpt-|global_step|iter_|step_)\d+")


@dataclass
class Work:
    """A file that is being written: its final content, and how much of it is there."""

    data: bytes
    writes: int
    fd: int
    done: int = 0


@dataclass
class Rerun:
    """One replay below ``root``; ``outside`` is a directory of the same file system.

    ``finished``: checksums of everything that a writer had finished, with the recorded time.
    ``lag``: how much later than recorded an operation happened at worst. ``begun``: wall time of
    the start.
    """

    name: str
    root: Path
    outside: Path
    torn: frozenset[str] = frozenset()
    endless: frozenset[str] = frozenset()
    finished: dict[int, float] = field(default_factory=dict)
    begun: float = 0.0
    lag: float = 0.0

    def __post_init__(self) -> None:
        """Read the trace."""
        self._script = Player(self.name, self.torn, self.endless)
        self.rows = self._script.rows
        self._works: dict[str, Work] = {}
        self._inodes: dict[int, str] = {}
        self._saves = 0
        self._newest = "none"
        self._done: set[int] = set()
        self._now = 0.0

    def play(self) -> None:
        """Play everything, as late after the first call as it was recorded."""
        pause, begun = threading.Event(), time.monotonic()
        self.begun = time.time()
        for index, row in enumerate(self.rows):
            self._now = row["t"] or self._now
            wait = begun + self._now - time.monotonic()
            if wait > 0:
                pause.wait(wait)
            self.lag = max(self.lag, -wait)
            self._step(index, row)
        for path in list(self._works):
            self._close(path)

    # Operations ---------------------------------------------------------------------------------

    def _step(self, index: int, row: Row) -> None:
        kind, path = row["events"][0], row["path"]
        is_folder = "ISDIR" in row["events"]
        if index in self._done:
            return
        if kind in ("CREATE", "SYNTH_EXISTS") and is_folder:
            (self.root / path).mkdir(exist_ok=True)
            self._newest = path if _SAVE.fullmatch(path) else self._newest
        elif kind in ("CREATE", "SYNTH_EXISTS"):
            self._create(index, row)
        elif kind == "MODIFY" and not is_folder:
            self._write(index, row)
        elif path not in self._works and self._is_writer(index, row):
            self._open(index, path, os.O_WRONLY)
        elif kind == "CLOSE_WRITE":
            self._close(path)
        elif kind == "DELETE":
            self._delete(path, is_folder=is_folder)
        elif kind in ("MOVED_FROM", "MOVED_TO"):
            self._move(index, row, is_folder=is_folder)

    def _is_writer(self, index: int, row: Row) -> bool:
        """Return whether this is the OPEN of somebody who writes."""
        after = self._script._next(index, row["path"])
        return row["events"] == ["OPEN"] and after in ("MODIFY", "CLOSE_WRITE")

    def _create(self, index: int, row: Row) -> None:
        path = row["path"]
        place, twin = self.root / path, self._inodes.get(row["ino"] or -1, "")
        if row["type"] == "l":
            place.symlink_to(self._script._target(row))
        elif self._is_opened(index, row):
            self._open(index, path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        elif twin and (self.root / twin).exists() and twin != path:
            os.link(self.root / twin, place)
        elif not place.exists():
            self._whole(index, row, self.outside / "unnamed")
            (self.outside / "unnamed").rename(place)
        if row["ino"] and row["type"] != "l":
            self._inodes[row["ino"]] = path

    def _is_opened(self, index: int, row: Row) -> bool:
        is_seen = row["events"][0] == "SYNTH_EXISTS"
        is_opened = is_seen or self._script._next(index, row["path"]) == "OPEN"
        return is_opened and self._script._next_close(index, row["path"]) == "CLOSE_WRITE"

    def _open(self, index: int, path: str, how: int) -> None:
        if path in self._works:
            return
        data = self._content(index, path)
        fd = os.open(self.root / path, how, 0o644)
        self._works[path] = Work(data, self._writes_after(index, path), fd)

    def _content(self, index: int, path: str) -> bytes:
        self._saves += 1
        final, size = self._fate(index, path)
        if self._script.stage.eyes._gaze.tree.place(final, learns=False).kind == "pointer":
            return pointer(final, self._newest)
        if size and final in self.torn:
            return content(final, 2 * scaled(size), self._saves)[: scaled(size)]
        is_endless = final in self.endless
        return content(final, scaled(size), self._saves, endless=is_endless) if size else b""

    def _fate(self, index: int, path: str) -> tuple[str, int]:
        """Return the name and size that a file has when what is written now is complete."""
        size, is_closed = 0, False
        for later, row in enumerate(self.rows[index:], index):
            if row["path"] != path:
                continue
            kind = row["events"][0]
            if is_closed and (
                kind in ("CREATE", "DELETE", "MODIFY") or self._is_writer(later, row)
            ):
                break
            size = row["size"] or size if kind != "MOVED_FROM" else size
            is_closed = is_closed or kind == "CLOSE_WRITE"
            moved = [i for i, old in self._script._pairs.items() if old == path and i > later]
            if kind == "MOVED_FROM" and moved:
                name, after = self._fate(moved[0], self.rows[moved[0]]["path"])
                return name, after or size
        return path, size

    def _writes_after(self, index: int, path: str) -> int:
        count = 0
        for row in self.rows[index + 1 :]:
            if row["path"] == path and row["events"][0] in ("CLOSE_WRITE", "MOVED_FROM"):
                break
            count += row["path"] == path and row["events"][0] == "MODIFY"
        return max(1, count)

    def _write(self, index: int, row: Row) -> None:
        work = self._works.get(row["path"])
        if work is None:
            self._open(index, row["path"], os.O_WRONLY)
            work = self._works[row["path"]]
        work.done = min(work.done + 1, work.writes)
        self._fill(work, len(work.data) * work.done // (work.writes + 1))
        if row["size"] is not None:
            size = min(scaled(row["size"]), len(work.data))
            os.ftruncate(work.fd, max(size, 0))

    def _fill(self, work: Work, length: int) -> None:
        os.pwrite(work.fd, work.data[:length], 0)

    def _close(self, path: str) -> None:
        work = self._works.pop(path, None)
        if work is None:
            return
        os.ftruncate(work.fd, len(work.data))
        self._fill(work, len(work.data))
        if path not in self.torn:
            self.finished[crc64nvme(work.data)] = self._now
        os.close(work.fd)

    def _delete(self, path: str, *, is_folder: bool) -> None:
        place = self.root / path
        if is_folder:
            with contextlib.suppress(FileNotFoundError):
                place.rmdir()
        else:
            place.unlink(missing_ok=True)

    def _move(self, index: int, row: Row, *, is_folder: bool) -> None:
        kind, path = row["events"][0], row["path"]
        script = self._script
        if kind == "MOVED_FROM" and path in script._unpaired:
            away = self.outside / f"away-{index}"
            (self.root / path).rename(away)
        elif kind == "MOVED_TO" and index in script._pairs:
            old = script._pairs[index]
            (self.root / old).rename(self.root / path)
            self._works |= dict(self._renamed(old, path))
        elif kind == "MOVED_TO" and is_folder:
            self._move_in(index, path)
        elif kind == "MOVED_TO":
            self._whole(index, row, self.outside / "arriving")
            (self.outside / "arriving").rename(self.root / path)

    def _renamed(self, old: str, new: str) -> Iterator[tuple[str, Work]]:
        for path in list(self._works):
            if path == old or path.startswith(old + "/"):
                yield new + path[len(old) :], self._works.pop(path)

    def _whole(self, index: int, row: Row, place: Path) -> None:
        data = self._content(index, row["path"])
        self.finished[crc64nvme(data)] = self._now
        place.write_bytes(data)

    def _move_in(self, index: int, folder: str) -> None:
        """Make a directory outside with all that its first listing found, and move it in."""
        away = self.outside / f"in-{index}"
        away.mkdir()
        for later, row in enumerate(self.rows[index + 1 :], index + 1):
            if not row["path"].startswith(folder + "/") or row["events"][0] != "SYNTH_EXISTS":
                continue
            self._done.add(later)
            place = away / row["path"][len(folder) + 1 :]
            if "ISDIR" in row["events"]:
                place.mkdir(parents=True, exist_ok=True)
            else:
                self._whole(later, row, place)
        away.rename(self.root / folder)

    def clean(self) -> None:
        """Remove what was moved out."""
        shutil.rmtree(self.outside, ignore_errors=True)
