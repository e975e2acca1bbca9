"""A pretended directory with a pretended trainer, watched by real eyes under a clock of our own.

Every change sends the event that the watcher would send (it does not listen to every write: an
existing file that is opened and written is heard of when it is closed); every order of the eyes is
answered from what is there at that moment. Nothing here knows what the eyes should conclude.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

from ckptsyncd.core.facts import FileFact, FileLook, Kind, Writer
from ckptsyncd.core.messages import Looked, Message, Scanned, Touched
from ckptsyncd.core.orders import Look, Scan
from ckptsyncd.core.rules.policy import Policy
from ckptsyncd.core.seeing.eyes import Eyes
from ckptsyncd.core.seeing.layouts import BUILT_IN, Layout
from ckptsyncd.core.sightings import CompanionSeen, PointerSeen, Removed, Settled, Sighting

#: Suffixes whose formats end with a mark.
ENDED = (".pt", ".pth", ".ckpt", ".safetensors", ".keras", ".h5", ".npz", ".json")


@dataclass
class Thing:
    """One file, link or directory."""

    kind: Kind = "file"
    inode: int = 0
    size: int = 0
    changed_at: float = 0.0
    ctime: float = 0.0
    writers: int = 0
    is_whole: bool = True
    has_end: bool = True
    target: str | None = None


@dataclass
class Told:
    """A sighting, when it was told, and whether all files in it were finished when seen."""

    at: float
    sighting: Sighting
    is_finished: bool


@dataclass
class Stage:
    """The directory, the clock and the eyes.

    ``has_lease``: writers can be told from outside. ``commits``: what settles is safe at once.
    ``hears_writes``: every write sends an event, as from a watcher that listens to them.
    """

    policy: Policy = field(default_factory=Policy)
    layouts: tuple[Layout, ...] = BUILT_IN
    exclude: tuple[str, ...] = ()
    has_lease: bool = True
    has_events: bool = True
    commits: bool = False
    hears_writes: bool = False
    latency: float = 0.001
    now: float = 100.0
    things: dict[str, Thing] = field(default_factory=dict)
    told: list[Told] = field(default_factory=list)
    looks: list[tuple[float, Look]] = field(default_factory=list)
    scans: list[tuple[float, Scan]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Open the eyes."""
        self.eyes = Eyes(self.policy, self.layouts, self.exclude)
        self._answers: list[tuple[float, int, Message]] = []
        self._count = 0
        self._finished: set[FileFact] = set()

    # The trainer --------------------------------------------------------------------------------

    def _event(self, message: Message) -> None:
        if self.has_events:
            self.hear(message)

    def _inode(self) -> int:
        self._count += 1
        return self._count + 1000

    def make(self, path: str) -> None:
        """Make a directory."""
        self.things[path] = Thing("directory", self._inode())
        self._event(Touched(path, tree=True))

    def open(self, path: str, size: int = 100, *, has_end: bool | None = None) -> None:
        """Open a file for writing, truncating it."""
        ended = path.endswith(ENDED) if has_end is None else has_end
        is_new = path not in self.things
        thing = self.things.setdefault(path, Thing(inode=self._inode()))
        thing.writers += 1
        thing.size, thing.is_whole, thing.has_end = size, False, ended
        thing.changed_at = thing.ctime = self.now
        if is_new or self.hears_writes:
            self._event(Touched(path))

    def grow(self, path: str, size: int) -> None:
        """Write into an open file."""
        thing = self.things[path]
        thing.size, thing.changed_at, thing.ctime = size, self.now, self.now
        if self.hears_writes:
            self._event(Touched(path))

    def close(self, path: str, *, is_whole: bool = True) -> None:
        """Close a file that was open for writing; a killed writer leaves it in part."""
        thing = self.things[path]
        thing.writers -= 1
        thing.is_whole = is_whole
        self._event(Touched(path))

    def write(self, path: str, size: int = 100, *, has_end: bool | None = None) -> None:
        """Write a file whole, at once."""
        self.open(path, size, has_end=has_end)
        self.close(path)

    def link(self, path: str, target: str) -> None:
        """Make a symbolic link."""
        at = self.now
        self.things[path] = Thing("symlink", self._inode(), len(target), at, at, target=target)
        self._event(Touched(path))

    def remove(self, path: str) -> None:
        """Remove a file, or a directory with all that is in it, file by file."""
        inside = sorted((p for p in self.things if p.startswith(path + "/")), reverse=True)
        for each in [*inside, path]:
            if self.things.pop(each, None) is not None:
                self._event(Touched(each, gone=True))

    def rename(self, old: str, new: str) -> None:
        """Rename a file or a directory within the tree."""
        is_tree = self.things[old].kind == "directory"
        self._move(old, new)
        self._event(Touched(old, gone=True, tree=is_tree))
        self._event(Touched(new, arrived=True, tree=is_tree))

    def arrive(self, path: str, things: dict[str, Thing]) -> None:
        """Let a file (``""``) or a directory arrive by a rename from outside."""
        is_tree = "" not in things
        if is_tree:
            self.things[path] = Thing("directory", self._inode())
        for rel, thing in things.items():
            self.things[f"{path}/{rel}" if rel else path] = thing
            thing.inode = self._inode()
        self._event(Touched(path, arrived=True, tree=is_tree))

    def _move(self, old: str, new: str) -> None:
        for path in [p for p in self.things if p == old or p.startswith(old + "/")]:
            self.things[new + path[len(old) :]] = self.things.pop(path)
        self.things[new].ctime = self.now

    # The eyes -----------------------------------------------------------------------------------

    def hear(self, message: Message) -> None:
        """Let the eyes hear something and carry out what they want."""
        self.eyes.hear(message, self.now)
        self.turn()

    def turn(self) -> None:
        """Collect what the eyes saw and want at this moment."""
        for sighting in self.eyes.sightings(self.now):
            self.told.append(Told(self.now, sighting, is_finished=self._was_finished(sighting)))
            if self.commits and isinstance(sighting, Settled):
                self.eyes.committed(sighting.checkpoint, sighting.listing)
        for order in self.eyes.orders(self.now):
            self.eyes.ordered(order)
            answer: Message
            if isinstance(order, Scan):
                self.scans.append((self.now, order))
                facts = self._list((order.path,), recursive=order.recursive)
                answer = Scanned(order.errand, order.path, facts, order.recursive)
            else:
                self.looks.append((self.now, order))
                looks = [self.look(path) for path in sorted(order.closely)]
                facts = self._list(order.roots, recursive=True)
                answer = Looked(order.errand, facts, tuple(x for x in looks if x is not None))
            self._count += 1
            heapq.heappush(self._answers, (self.now + self.latency, self._count, answer))

    def run(self, seconds: float) -> None:
        """Let time pass."""
        self.run_until(self.now + seconds)

    def run_until(self, end: float) -> None:
        """Let time pass until a moment (boot seconds)."""
        self.turn()
        while True:
            alarm = self.eyes.next_alarm()
            assert alarm is None or alarm > self.now, "the eyes' alarm does not move"
            times = [t for t in (alarm, self._answers[0][0] if self._answers else None) if t]
            if not times or min(times) > end:
                break
            self.now = max(self.now, min(times))
            if self._answers and self._answers[0][0] <= self.now:
                self.hear(heapq.heappop(self._answers)[2])
            else:
                self.turn()
        self.now = end
        self.turn()

    # The disk -----------------------------------------------------------------------------------

    def fact(self, path: str) -> FileFact:
        """Return what ``lstat`` would say."""
        thing = self.things[path]
        is_folder = thing.kind == "directory"
        return FileFact(
            path=path,
            kind=thing.kind,
            device=1,
            inode=thing.inode,
            size=0 if is_folder else thing.size,
            mtime_ns=0 if is_folder else int(thing.changed_at * 1e9),
            target=thing.target,
            ctime_ns=int(thing.ctime * 1e9),
        )

    def look(self, path: str) -> FileLook | None:
        """Return what a close look would find."""
        thing = self.things.get(path)
        if thing is None:
            return None
        if thing.kind != "file":
            return FileLook(self.fact(path))
        writer: Writer = "unknown"
        if self.has_lease:
            writer = "open" if thing.writers else "none"
        if not thing.has_end:
            return FileLook(self.fact(path), writer)
        is_whole = thing.is_whole and not thing.writers
        return FileLook(
            fact=self.fact(path),
            writer=writer,
            shape="whole" if is_whole else "broken",
            has_end_mark=True,
            fault="" if is_whole else "the end is missing",
        )

    def _list(self, roots: tuple[str, ...], *, recursive: bool) -> tuple[FileFact, ...]:
        facts = []
        for path in sorted(self.things):
            for root in roots:
                below = path == root or (path.startswith(root + "/") if root else True)
                start = len(root) + 1 if root else 0
                if below and (recursive or "/" not in path[start:]):
                    facts.append(self._seen(path))
                    break
        return tuple(facts)

    def _seen(self, path: str) -> FileFact:
        fact, thing = self.fact(path), self.things[path]
        if thing.is_whole and not thing.writers:
            self._finished.add(fact)
        return fact

    def _was_finished(self, sighting: Sighting) -> bool:
        """Return whether everything that is listed was seen when its writer had finished."""
        if not isinstance(sighting, Settled):
            return True
        return all(fact in self._finished for fact in sighting.listing.files)

    # What was told ------------------------------------------------------------------------------

    def settled(self) -> list[Settled]:
        """Return every checkpoint that was told to be whole."""
        return [t.sighting for t in self.told if isinstance(t.sighting, Settled)]

    def evidence(self) -> dict[str, str]:
        """Return the last evidence of every checkpoint."""
        return {settled.checkpoint: settled.evidence for settled in self.settled()}

    def times(self, checkpoint: str) -> list[float]:
        """Return when a checkpoint was told to be whole."""
        return [
            told.at
            for told in self.told
            if isinstance(told.sighting, Settled) and told.sighting.checkpoint == checkpoint
        ]

    def removed(self) -> list[str]:
        """Return the checkpoints that were told to be gone."""
        return [t.sighting.checkpoint for t in self.told if isinstance(t.sighting, Removed)]

    def pointers(self) -> list[str]:
        """Return the pointers that were told."""
        return [t.sighting.path for t in self.told if isinstance(t.sighting, PointerSeen)]

    def companions(self) -> list[str]:
        """Return the companions that were told."""
        return [t.sighting.path for t in self.told if isinstance(t.sighting, CompanionSeen)]

    def reasons(self) -> dict[str, tuple[str, str]]:
        """Return state and reason of everything that is not whole."""
        return {view.checkpoint: (view.state, view.reason) for view in self.eyes.views()}


def save(stage: Stage, folder: str, *names: str, size: int = 100) -> None:
    """Write files into a directory, one after the other, 10 ms each."""
    if folder not in stage.things:
        stage.make(folder)
    for name in names:
        stage.open(f"{folder}/{name}", size)
        stage.run(0.01)
        stage.close(f"{folder}/{name}")
