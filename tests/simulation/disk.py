"""A pretended disk: inodes, names, hard-link pins, open writers and coarse times, all in memory.

It implements ``core.ports.Disk`` for the daemon and gives the trainers what they need to write. A
pin shares its inode with the name it was made from, so writing in place shows through it and
unlinking does not. What every name ever held is kept, to judge later whether a checkpoint in the
store was really once on the disk as a whole.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from ckptsyncd.core.facts import FileFact, FileLook, Listing, Piece, Writer
from ckptsyncd.core.messages import Touched
from tests.simulation.history import History
from tests.simulation.inodes import Folder, Inode, Link, PinnedBody

#: Linux stamps files with the time of its last tick; two writes within one look the same.
TICK_NS = 4_000_000

#: Suffixes of formats with an end mark: what misses it is known to be cut off.
ENDED = (".pt", ".pth", ".ckpt", ".safetensors", ".json")

#: What the system says of a disk that is about to die.
UNREADABLE = "Input/output error"


@dataclass(slots=True)
class PretendDisk:
    """One machine's disk. ``wall`` reads its clock; ``touched`` are told of every event.

    ``has_lease``: an open writer can be told. ``has_links``: pins survive the process.
    ``fails``: whether a look fails this time.
    """

    device: int
    wall: Callable[[], float]
    has_lease: bool = True
    has_links: bool = True
    fails: Callable[[], bool] = lambda: False
    names: dict[str, Inode | Link | Folder] = field(default_factory=dict)
    pins: dict[str, dict[str, tuple[Inode, bool]]] = field(default_factory=dict)
    touched: list[Callable[[Touched], None]] = field(default_factory=list)
    history: History = field(default_factory=History)
    numbers: int = 0

    # What trainers do ---------------------------------------------------------------------------

    def mkdir(self, path: str) -> None:
        """Make a directory, and those above it."""
        for end in [i for i, char in enumerate(path) if char == "/"] + [len(path)]:
            if path[:end] not in self.names:
                self.names[path[:end]] = Folder(self._number())
                self._tell(Touched(path[:end], tree=True))

    def open(self, path: str, *, truncate: bool = True) -> OpenFile:
        """Open a file for writing, made where it is not there."""
        inode = self.names.get(path)
        if not isinstance(inode, Inode):
            inode = self.names[path] = Inode(self._number(), path=path)
            self._tell(Touched(path))
            self.changed(inode)
        elif truncate:
            inode.data = b""
            inode.is_whole = False
            self.changed(inode)
        inode.writers += 1
        return OpenFile(self, inode)

    def place(self, path: str, data: bytes, mtime_ns: int) -> None:
        """Put a whole file there with this time, as a restore does; under a new inode."""
        self._vanish(path)
        inode = Inode(self._number(), data, mtime_ns, self.now_ns(), is_whole=True, path=path)
        self.names[path] = inode
        self._record(inode)
        self._tell(Touched(path, arrived=True))

    def symlink(self, path: str, target: str) -> None:
        """Make or replace a symlink."""
        self.names[path] = Link(self._number(), target, self.now_ns())
        self._tell(Touched(path, arrived=True))

    def rename(self, old: str, new: str) -> None:
        """Rename a file or a directory with everything in it, over what was there."""
        moving = [name for name in self.names if name == old or name.startswith(old + "/")]
        for name in moving:
            target = new + name[len(old) :]
            self._vanish(target)
            node = self.names.pop(name)
            self.names[target] = node
            if isinstance(node, Inode):
                self.history.note(name, None)
                node.path = target
                node.ctime_ns = self.now_ns() if name == old else node.ctime_ns
                self._record(node)
        self._tell(Touched(old, gone=True))
        is_folder = isinstance(self.names.get(new), Folder)
        self._tell(Touched(new, arrived=True, tree=is_folder))

    def unlink(self, path: str) -> None:
        """Remove one name; an empty directory too."""
        self._vanish(path)
        if self.names.pop(path, None) is not None:
            self._tell(Touched(path, gone=True))

    def _vanish(self, path: str) -> None:
        node = self.names.get(path)
        if isinstance(node, Inode):
            node.path = ""
            self.history.note(path, None)

    def changed(self, inode: Inode, *, stamp: bool = True) -> None:
        """Note that a file's content changed; without ``stamp`` its time stays as it was."""
        if stamp:
            inode.mtime_ns = inode.ctime_ns = self.now_ns()
        self._record(inode)

    def closed(self, inode: Inode) -> None:
        """Note that a writer let go of it."""
        inode.writers -= 1
        if inode.path:
            self._tell(Touched(inode.path))

    def _record(self, inode: Inode) -> None:
        if inode.path:
            self.history.note(inode.path, inode.data)
        identity = (self.device, inode.number, len(inode.data), inode.mtime_ns)
        self.history.identify(identity, inode.data)

    def _number(self) -> int:
        self.numbers += 1
        return self.numbers

    def now_ns(self) -> int:
        """Return the time that a write now would leave."""
        return int(self.wall() * 1e9) // TICK_NS * TICK_NS

    def _tell(self, touched: Touched) -> None:
        for tell in self.touched:
            tell(touched)

    # What the daemon does (contracts at ``core.ports.Disk``) ------------------------------------

    def walk(self, path: str, *, recursive: bool) -> Iterator[FileFact]:
        """Yield the facts of everything at and below a path."""
        start = path + "/" if path else ""
        for name, node in list(self.names.items()):
            if name == path or (
                name.startswith(start) and (recursive or "/" not in name[len(start) :])
            ):
                yield self._fact(name, node)
        self._work()

    def _work(self) -> None:
        if self.fails():
            raise OSError(errno.EIO, UNREADABLE)

    def look(self, path: str) -> FileLook | None:
        """Examine one file closely."""
        self._work()
        node = self.names.get(path)
        if node is None:
            return None
        fact = self._fact(path, node)
        if not isinstance(node, Inode):
            return FileLook(fact, writer="none")
        writer = self._writer(node)
        if writer == "open":
            return FileLook(fact, "open", "python")
        if not path.endswith(ENDED):
            return FileLook(fact, writer)
        if node.is_whole:
            return FileLook(fact, writer, "", "whole", has_end_mark=True, lists=node.lists)
        return FileLook(fact, writer, "", "broken", has_end_mark=True, fault="it has no end record")

    def pin(self, pin_id: str, listing: Listing) -> tuple[Listing, str]:
        """Link every file, or say why not."""
        if self.fails():
            self.pins.pop(pin_id, None)
            return Listing(()), "Too many links"
        held = self.pins.get(pin_id, {})
        found: dict[str, tuple[Inode, bool]] = {}
        facts: list[FileFact] = []
        for fact in listing.files:
            kept = held.get(fact.path)
            if kept is not None and self._is_same(fact, kept):
                found[fact.path] = kept
                facts.append(fact)
                continue
            node = self.names.get(fact.path)
            now = None if node is None else self._fact(fact.path, node)
            if now is None or now != fact:
                self.pins.pop(pin_id, None)
                return Listing(()), f"{fact.path} {'vanished' if now is None else 'changed'}"
            facts.append(now)
            if isinstance(node, Inode):
                found[fact.path] = (node, False)
        self._relinked([kept[0] for path, kept in found.items() if path not in held])
        self.pins[pin_id] = found
        return Listing(tuple(facts)), ""

    def copy(self, pin_id: str, listing: Listing) -> tuple[Listing, str]:
        """Copy every file that nobody has open, or say why not."""
        if self.fails():
            return Listing(()), "No space left on device"
        found: dict[str, tuple[Inode, bool]] = {}
        for fact in listing.files:
            node = self.names.get(fact.path)
            if node is None or self._fact(fact.path, node) != fact:
                return Listing(()), f"{fact.path} changed"
            if isinstance(node, Inode):
                writer = self._writer(node)
                if writer == "open" or (writer == "unknown" and not node.is_whole):
                    return Listing(()), f"{fact.path} is held open for writing"
                found[fact.path] = (Inode(0, node.data, node.mtime_ns), True)
        self.pins[pin_id] = found
        return listing, ""

    def look_again(self, pin_id: str, listing: Listing) -> str:
        """Compare the pinned files with the listing."""
        return UNREADABLE if self.fails() else self.difference(pin_id, listing)

    def difference(self, pin_id: str, listing: Listing) -> str:
        """Return how the pinned files differ from the listing, or nothing."""
        held = self.pins.get(pin_id, {})
        for fact in listing.files:
            if fact.kind != "file":
                continue
            kept = held.get(fact.path)
            if kept is None:
                return f"{fact.path}: the pin is gone"
            if not self._is_same(fact, kept):
                return f"{fact.path} was written again"
            if not kept[1] and self._writer(kept[0]) == "open":
                return f"{fact.path} is held open for writing"
        return ""

    def unpin(self, pin_id: str) -> None:
        """Let go."""
        self._work()
        kept = self.pins.pop(pin_id, {})
        self._relinked([inode for inode, _ in kept.values()])

    def _relinked(self, inodes: list[Inode]) -> None:
        """Move the ctimes of what got or lost a link, one file each tick, the oldest first."""
        if not self.has_links:
            return
        inodes.sort(key=lambda inode: (inode.ctime_ns, inode.mtime_ns, inode.number))
        for index, inode in enumerate(inodes):
            inode.ctime_ns = self.now_ns() + index * TICK_NS

    def discard(self, listing: Listing) -> str:
        """Remove the files that are as the listing says, if all are."""
        for fact in listing.files:
            if fact.path in self.names and self._fact(fact.path, self.names[fact.path]) != fact:
                return f"{fact.path} is another one now"
        for fact in listing.files:
            self.unlink(fact.path)
        return ""

    def held(self) -> tuple[str, ...]:
        """Return the ids of all pins."""
        return tuple(sorted(self.pins))

    def open_piece(self, pin_id: str, listing: Listing, path: str, piece: Piece) -> PinnedBody:
        """Return the bytes of one piece, half of them read by now."""
        self._work()
        kept = self.pins.get(pin_id, {}).get(path)
        if kept is None:
            raise OSError(errno.ENOENT, f"{path}: the pin is gone")
        fact = next(fact for fact in listing.files if fact.path == path)
        if not self._is_same(fact, kept):
            raise OSError(errno.ESTALE, f"{path} was written again")
        inode = kept[0]
        return PinnedBody(lambda: inode.data, piece)

    def read_small(self, path: str, most_bytes: int) -> bytes | None:
        """Return the content of a small file."""
        self._work()
        node = self.names.get(path)
        return node.data[:most_bytes] if isinstance(node, Inode) else None

    def process_died(self) -> None:
        """Lose the pins that were open descriptors."""
        if not self.has_links:
            self.pins.clear()

    def _writer(self, inode: Inode) -> Writer:
        if not self.has_lease:
            return "unknown"
        return "open" if inode.writers else "none"

    def _is_same(self, fact: FileFact, kept: tuple[Inode, bool]) -> bool:
        inode, is_copy = kept
        same = (fact.size, fact.mtime_ns) == (len(inode.data), inode.mtime_ns)
        return same and (is_copy or inode.number == fact.inode)

    def _fact(self, path: str, node: Inode | Link | Folder) -> FileFact:
        if isinstance(node, Inode):
            size, mtime_ns = len(node.data), node.mtime_ns
            ctime_ns = node.ctime_ns
            return FileFact(
                path, "file", self.device, node.number, size, mtime_ns, ctime_ns=ctime_ns
            )
        if isinstance(node, Link):
            size, mtime_ns = len(node.target), node.mtime_ns
            return FileFact(path, "symlink", self.device, node.number, size, mtime_ns, node.target)
        return FileFact(path, "directory", self.device, node.number, 0, 0)


@dataclass(slots=True, eq=False)
class OpenFile:
    """A file that a trainer holds open for writing."""

    disk: PretendDisk
    inode: Inode

    def append(self, data: bytes) -> None:
        """Write at the end."""
        self.inode.data += data
        self.disk.changed(self.inode)

    def patch(self, offset: int, data: bytes, *, stamp: bool = True) -> None:
        """Write over what is there; a mapped file gets no new time (without ``stamp``)."""
        old = self.inode.data
        self.inode.data = old[:offset] + data + old[offset + len(data) :]
        self.disk.changed(self.inode, stamp=stamp)

    def close(self, *, is_whole: bool | None = True) -> None:
        """Let go of it; not whole where the process died, ``None``: as it was."""
        if is_whole is not None:
            self.inode.is_whole = is_whole
        self.disk.closed(self.inode)
