"""Find out before a start what the watch root is like, by trying what the daemon will do there.

Nothing is left behind: watches end with their instance, the one pin is let go of again. A running
daemon and a trainer notice nothing but a link to one file that comes and goes.
"""

from __future__ import annotations

import contextlib
import heapq
import os
from collections import Counter
from pathlib import Path
from secrets import token_hex

from inotify_simple import INotify

from ckptsyncd.core.facts import FileFact
from ckptsyncd.core.premises import Census, Lease, PinWay, Premises, Watching
from ckptsyncd.core.seeing.layouts import BUILT_IN
from ckptsyncd.core.seeing.tree import Tree
from ckptsyncd.edge import lease, places
from ckptsyncd.edge.beneath import open_below
from ckptsyncd.edge.filesystems import name_of, without_events
from ckptsyncd.edge.seen import absolute, words
from ckptsyncd.edge.shelf import Shelf
from ckptsyncd.edge.walk import OURS, walk
from ckptsyncd.edge.watcher import MASK
from ckptsyncd.edge.watches import Watches

#: So many entries are counted at most (guessed: some seconds of lstat).
MOST_ENTRIES = 300_000
#: So many JSON files are named, the newest (guessed: a few checkpoints' worth).
MOST_DOCUMENTS = 50
_LIMIT = Path("/proc/sys/fs/inotify/max_user_watches")


def premises(root: str, target: str, *, polls: bool) -> Premises:
    """Return what a watch root is like; ``target`` is a destination's directory, or empty.

    ``polls``: events are not wanted, so no watch is tried. Raises nothing that a disk may do.
    """
    place = os.path.realpath(root)
    room = _free_bytes(_existing(target)) if target else None
    if not Path(place).is_dir():
        found = _name(os.path.dirname(place))  # noqa: PTH120
        return Premises(root, file_system=found, target_free_bytes=room)
    counted = _Counted(place)
    counted.count()
    trial = _Trial(place, counted.newest)
    return Premises(
        root=root,
        exists=True,
        file_system=_name(place),
        hides_writers=without_events(place),
        census=counted.census(),
        watching=Watching() if polls else watching(place),
        tried_on=counted.newest.path if counted.newest else "",
        lease=trial.lease,
        lease_trouble=trial.lease_trouble,
        pin=trial.pin,
        pin_trouble=trial.pin_trouble,
        free_bytes=_free_bytes(Path(place)),
        shares_device=bool(target) and _existing(target).stat().st_dev == Path(place).stat().st_dev,
        target_free_bytes=room,
    )


def watching(root: str) -> Watching:
    """Watch every directory once, as the daemon does, and end the watches again."""
    limit = _LIMIT.read_text(encoding="utf-8").strip() if _LIMIT.exists() else ""
    most = int(limit) if limit.isdecimal() else None
    try:
        inotify = INotify()
    except OSError as error:
        return Watching(no_instance=words(error), limit=most)
    try:
        found = Watches(root, inotify, MASK, lambda _path, _reason: None)
        found.cover("")
        return Watching(len(found), tuple(found.polled.items()), "", most)
    finally:
        inotify.close()


class _Counted:
    """The count of a tree, one entry after the other."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._tree = Tree(BUILT_IN)
        self._kinds: Counter[str] = Counter()
        self._sizes: Counter[str] = Counter()
        self._documents: list[tuple[int, str]] = []
        self._unreadable: list[str] = []
        self._trouble = ""
        self._is_cut_short = False
        self.newest: FileFact | None = None

    def count(self) -> None:
        """Count."""
        try:
            for number, fact in enumerate(walk(self._root, "", recursive=True)):
                if number >= MOST_ENTRIES:
                    self._is_cut_short = True
                    return
                self._add(fact)
        except OSError as error:
            self._trouble = words(error)

    def census(self) -> Census:
        """Return what was counted."""
        largest, most = max(self._sizes.items(), key=lambda row: row[1], default=("", 0))
        return Census(
            directories=self._kinds["directory"] + 1,
            files=self._kinds["file"],
            bytes=self._kinds["bytes"],
            largest=largest,
            largest_bytes=most,
            unreadable=len(self._unreadable),
            example=self._unreadable[0] if self._unreadable else "",
            documents=tuple(path for _, path in sorted(self._documents, reverse=True)),
            is_cut_short=self._is_cut_short,
            trouble=self._trouble,
        )

    def _add(self, fact: FileFact) -> None:
        self._kinds[fact.kind] += 1
        if fact.kind != "file":
            return
        self._kinds["bytes"] += fact.size
        place = self._tree.place(fact.path)
        if place.kind == "member":
            self._sizes[place.unit] += fact.size
        if self.newest is None or fact.mtime_ns > self.newest.mtime_ns:
            self.newest = fact
        if not os.access(absolute(self._root, fact.path), os.R_OK, effective_ids=True):
            self._unreadable.append(fact.path)
        if fact.path.endswith(".json"):
            heapq.heappush(self._documents, (fact.mtime_ns, fact.path))
            if len(self._documents) > MOST_DOCUMENTS:
                heapq.heappop(self._documents)


class _Trial:
    """A lease and a pin of one file, both let go of at once."""

    def __init__(self, root: str, fact: FileFact | None) -> None:
        self.lease: Lease = "unasked"
        self.lease_trouble = ""
        self.pin: PinWay = "unasked"
        self.pin_trouble = ""
        if fact is None:
            return
        try:
            self._try_lease(root, fact.path)
        except OSError as error:
            self.lease, self.lease_trouble = "refused", words(error)
        try:
            self._try_pin(root, fact)
        except OSError as error:
            self.pin, self.pin_trouble = "impossible", words(error)

    def _try_lease(self, root: str, path: str) -> None:
        descriptor = open_below(root, path)
        try:
            found = lease.probe(descriptor)
        finally:
            os.close(descriptor)
        if found.writer == "unknown":
            self.lease, self.lease_trouble = "refused", os.strerror(found.error)
        else:
            self.lease = "granted"

    def _try_pin(self, root: str, fact: FileFact) -> None:
        shelf, pin_id = Shelf(root), f"check-{token_hex(8)}"
        new = _new_directories(root)
        links = Path(absolute(root, fact.path)).stat().st_nlink
        try:
            shelf.keep(pin_id, 0, fact.path)
            descriptor, _ = shelf.opened(pin_id, 0)
            try:
                self.pin = "link" if os.fstat(descriptor).st_nlink > links else "descriptor"
            finally:
                os.close(descriptor)
        finally:
            shelf.drop(pin_id)
            for directory in new:
                with contextlib.suppress(OSError):  # not made, or in use by a daemon by now
                    directory.rmdir()


def _new_directories(root: str) -> list[Path]:
    """Return the directories that a first pin may make, the innermost first."""
    found: list[Path] = []
    for place in places.candidates(root):
        steps = [Path(place), *Path(place).parents]
        ours = next(number for number, step in enumerate(steps) if step.name == OURS)
        found += [step for step in steps[: ours + 1] if not step.exists()]
    return found


def _name(place: str) -> str:
    try:
        return name_of(place)
    except OSError as error:
        return words(error)


def _existing(target: str) -> Path:
    """Return a directory, or the nearest one above it that exists."""
    path = Path(target)
    while not path.exists() and path != path.parent:
        path = path.parent
    return path


def _free_bytes(place: Path) -> int:
    free = os.statvfs(place)
    return free.f_bavail * free.f_frsize
