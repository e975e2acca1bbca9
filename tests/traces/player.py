"""Plays a recorded trace on the stage: the pretended directory has at each moment what was there.

Who writes is known from CREATE, OPEN and MODIFY without CLOSE_WRITE; a format with an end mark is
whole once its writer has finished, except in files that the row calls torn (the writer was killed).
"""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ckptsyncd.core.messages import Message, Touched
from tests.core.stage import ENDED, Stage, Thing

DATA = Path(__file__).parent / "data"
NAMES = sorted(path.name.removesuffix(".jsonl.gz") for path in DATA.glob("*.jsonl.gz"))

#: Boot seconds at which every trace begins.
START = 1000.0
#: After the last event, everything has so long to settle.
EPILOGUE_SECONDS = 150.0

#: What follows the OPEN of somebody who writes; a reader's is followed by ACCESS.
WRITES = ("MODIFY", "CLOSE_WRITE")

Row = dict[str, Any]


def rows_of(name: str) -> list[Row]:
    """Return a trace's events in order, without what the recorder itself caused."""
    with gzip.open(DATA / f"{name}.jsonl.gz", "rt") as lines:
        rows = [json.loads(line) for line in lines][1:]
    return [row for row in rows if row["events"][0] != "FINAL" and row["path"] != "."]


@dataclass
class Player:
    """One replay.

    ``torn``: paths whose writer was killed before the end; ``endless``: paths whose suffix promises
    an end mark that their format does not have.
    """

    name: str
    torn: frozenset[str] = frozenset()
    endless: frozenset[str] = frozenset()
    has_lease: bool = True
    commits: bool = True
    hears_writes: bool = False
    stage: Stage = field(init=False)

    def __post_init__(self) -> None:
        """Set the stage."""
        self.stage = Stage(has_lease=self.has_lease, commits=self.commits, now=START - 1)
        self.rows = rows_of(self.name)
        self._closes: dict[str, list[tuple[int, str]]] = defaultdict(list)
        for index, row in enumerate(self.rows):
            self._closes[row["path"]].append((index, row["events"][0]))
        self._pairs = self._pair_renames()
        self._filled: set[int] = set()

    def _pair_renames(self) -> dict[int, str]:
        """Return, for each arrival from inside the tree, where it came from."""
        left: dict[int, str] = {}
        pairs = {}
        for index, row in enumerate(self.rows):
            if row["events"][0] == "MOVED_FROM":
                left[row["cookie"]] = row["path"]
            elif row["events"][0] == "MOVED_TO" and row["cookie"] in left:
                pairs[index] = left.pop(row["cookie"])
        self._unpaired = set(left.values())
        return pairs

    def play(self) -> Stage:
        """Play the whole trace and the time after it."""
        self.stage.run_until(START)
        for index, row in enumerate(self.rows):
            moment = START + (row["t"] or 0.0)
            if self.stage.now < moment:
                self.stage.run_until(moment)
            self._step(index, row)
        self.stage.run(EPILOGUE_SECONDS)
        return self.stage

    def units(self) -> set[str]:
        """Return the name of every checkpoint that the trace wrote files of."""
        tree = self.stage.eyes._gaze.tree
        names = set()
        for row in self.rows:
            place = tree.place(row["path"], learns=False)
            if row["type"] == "f" and place.kind == "member":
                names.add(place.unit)
        return names

    # Events -------------------------------------------------------------------------------------

    def _step(self, index: int, row: Row) -> None:
        kind, path = row["events"][0], row["path"]
        is_folder = "ISDIR" in row["events"]
        if index in self._filled:
            return
        if kind in ("CREATE", "SYNTH_EXISTS") and is_folder:
            self.stage.things[path] = Thing("directory", row["ino"] or 0)
            self._fill(index, path)
            self._tell(Touched(path, tree=True))
        elif kind in ("CREATE", "SYNTH_EXISTS"):
            self._created(index, row)
        elif kind == "MODIFY" and not is_folder:
            self._written(row)
        elif kind == "OPEN" and not is_folder and self._next(index, path) in WRITES:
            self.stage.things[path].writers = 1
        elif kind == "CLOSE_WRITE":
            self._closed(row)
        elif kind == "ATTRIB" and not is_folder and path in self.stage.things:
            if self.hears_writes:
                self._tell(Touched(path))
        elif kind in ("DELETE", "MOVED_FROM", "MOVED_TO"):
            self._moved(index, row, is_folder=is_folder)

    def _tell(self, message: Message) -> None:
        if self.stage.has_events:
            self.stage.hear(message)

    def _created(self, index: int, row: Row) -> None:
        kind, path = row["events"][0], row["path"]
        at = self.stage.now
        is_link = row["type"] == "l"
        thing = Thing("symlink" if is_link else "file", row["ino"] or 0, row["size"] or 0, at, at)
        thing.target = self._target(row) if is_link else None
        thing.has_end = self._has_end(path)
        follows = self._next_close(index, path)
        is_opened = kind == "SYNTH_EXISTS" or self._next(index, path) == "OPEN"
        thing.writers = int(is_opened and follows == "CLOSE_WRITE" and not is_link)
        thing.is_whole = not thing.writers
        self.stage.things[path] = thing
        if kind == "CREATE":
            self._tell(Touched(path))

    def _has_end(self, path: str) -> bool:
        return path.endswith(ENDED) and path not in self.endless

    def _target(self, row: Row) -> str:
        with gzip.open(DATA / f"{self.name}.jsonl.gz", "rt") as lines:
            for line in lines:
                found = json.loads(line)
                if found.get("path") == row["path"] and found.get("link"):
                    return str(found["link"])
        return "x" * int(row["size"] or 1)

    def _written(self, row: Row) -> None:
        thing = self.stage.things.get(row["path"])
        if thing is None:
            return
        thing.writers, thing.is_whole = 1, False
        thing.changed_at = thing.ctime = self.stage.now
        thing.size = row["size"] if row["size"] is not None else thing.size
        if self.hears_writes:
            self._tell(Touched(row["path"]))

    def _closed(self, row: Row) -> None:
        path = row["path"]
        thing = self.stage.things.get(path)
        if thing is None:
            return
        thing.writers = 0
        thing.is_whole = path not in self.torn
        if row["size"] is not None and row["size"] != thing.size:
            thing.size = row["size"]
            thing.changed_at = thing.ctime = self.stage.now
        self._tell(Touched(path))

    def _moved(self, index: int, row: Row, *, is_folder: bool) -> None:
        kind, path = row["events"][0], row["path"]
        things = self.stage.things
        if kind == "DELETE" or (kind == "MOVED_FROM" and path in self._unpaired):
            for each in [p for p in things if p == path or p.startswith(path + "/")]:
                del things[each]
            self._tell(Touched(path, gone=True, tree=is_folder))
        elif kind == "MOVED_TO" and index in self._pairs:
            old = self._pairs[index]
            for each in [p for p in things if p == old or p.startswith(old + "/")]:
                things[path + each[len(old) :]] = things.pop(each)
            things[path].ctime = self.stage.now
            things[path].has_end = self._has_end(path)
            self._tell(Touched(old, gone=True, tree=is_folder))
            self._tell(Touched(path, arrived=True, tree=is_folder))
        elif kind == "MOVED_TO":
            at = self.stage.now
            thing = Thing("file", row["ino"] or 0, row["size"] or 0, at, at)
            thing.has_end = self._has_end(path)
            things[path] = Thing("directory", thing.inode) if is_folder else thing
            if is_folder:
                self._fill(index, path)
            self._tell(Touched(path, arrived=True, tree=is_folder))

    def _fill(self, index: int, folder: str) -> None:
        """Put into a new directory what its first listing found: the eyes' own must find it too."""
        for later, row in enumerate(self.rows[index + 1 :], index + 1):
            is_below = row["path"] == folder or row["path"].startswith(folder + "/")
            if not is_below or row["events"][0] in ("CREATE", "MOVED_TO", "DELETE"):
                break
            if row["events"][0] == "SYNTH_EXISTS":
                self._filled.add(later)
                if "ISDIR" in row["events"]:
                    self.stage.things[row["path"]] = Thing("directory", row["ino"] or 0)
                else:
                    self._created(later, row)

    def _next(self, index: int, path: str) -> str:
        return next((kind for i, kind in self._closes[path] if i > index), "")

    def _next_close(self, index: int, path: str) -> str:
        """Return how the file that is open now is closed next (following one rename)."""
        ends = ("CLOSE_WRITE", "CLOSE_NOWRITE", "DELETE")
        for i, kind in self._closes[path]:
            if i <= index:
                continue
            if kind in ends:
                return kind
            if kind in ("CREATE", "SYNTH_EXISTS", "MOVED_TO"):
                return ""
            if kind == "MOVED_FROM":
                after = [j for j, old in self._pairs.items() if old == path and j > i]
                return self._next_close(after[0], self.rows[after[0]]["path"]) if after else ""
        return ""
