"""A power cut, as a model over the system calls that a real process made.

``record`` runs a program under strace and keeps every call that changes files. ``Medium`` plays
them on two layers: what processes see, and what is on the medium. Only ``fsync`` brings the one
into the other: a file's for its bytes, a directory's for its names. A cut at any moment leaves what
is on the medium and, of everything since, any part: none of it, all of it, or each change by
itself, the last write torn. That is less than any file system of Linux keeps, on purpose.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

CALLS = (
    "openat,mkdir,mkdirat,write,pwrite64,ftruncate,fsync,fdatasync,rename,renameat,renameat2,"
    "link,linkat,unlink,unlinkat,rmdir,close"
)
_CALL = re.compile(r"^(\w+)\((.*)\)\s+= (-?\d+)(?:<(\S*)>)?")
_PATH = re.compile(r"^-?\w+<(.*)>$")


@dataclass(frozen=True, slots=True)
class Call:
    """One call that succeeded: its name, its arguments as strace wrote them, what it returned."""

    name: str
    arguments: tuple[str, ...]
    result: int
    opened: str = ""

    @property
    def told(self) -> str:
        """What the program said with it on its standard output, or nothing."""
        if self.name != "write" or not self.arguments[0].startswith("1<"):
            return ""
        return text_of(self.arguments[1]).decode()


def text_of(argument: str) -> bytes:
    """Return the bytes of a string that strace wrote as hexadecimal escapes."""
    return bytes.fromhex(argument.strip('"').replace("\\x", ""))


def strace() -> str | None:
    """Return where strace is, if it can be used here."""
    found = shutil.which("strace")
    works = found and subprocess.run([found, "-qq", "true"], capture_output=True, check=False)
    return found if works and works.returncode == 0 else None


def record(program: Path, *arguments: str, log: Path) -> list[Call]:
    """Run a Python program to its end and return its calls; it must end well."""
    done = subprocess.run(
        [
            *("strace", "-qq", "-y", "-xx", "-s", "1000000", "-e", f"trace={CALLS}"),
            *("-o", str(log), sys.executable, str(program), *arguments),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    found = (_CALL.match(line) for line in log.read_text().splitlines())
    return [
        Call(match[1], tuple(match[2].split(", ")), int(match[3]), match[4] or "")
        for match in found
        if match and int(match[3]) >= 0
    ]


@dataclass(eq=False, slots=True)
class Node:
    """A file (bytes) or a directory (names): what is seen, what is kept, what came in between."""

    is_directory: bool
    data: bytearray = field(default_factory=bytearray)
    names: dict[str, Node] = field(default_factory=dict)
    kept_data: bytes = b""
    kept_names: dict[str, Node] = field(default_factory=dict)
    pending: list[Callable[[bytearray], None]] = field(default_factory=list)
    pending_names: list[tuple[str, Node | None]] = field(default_factory=list)

    def sync(self) -> None:
        """Bring everything onto the medium."""
        self.kept_data, self.pending = bytes(self.data), []
        self.kept_names, self.pending_names = dict(self.names), []

    def change(self, act: Callable[[bytearray], None]) -> None:
        """Change the bytes that are seen."""
        act(self.data)
        self.pending.append(act)

    def name(self, name: str, node: Node | None) -> None:
        """Give or take a name that is seen."""
        if node is None:
            self.names.pop(name, None)
        else:
            self.names[name] = node
        self.pending_names.append((name, node))


def _write(at: int, data: bytes) -> Callable[[bytearray], None]:
    def act(content: bytearray) -> None:
        if len(content) < at:
            content.extend(bytes(at - len(content)))
        content[at : at + len(data)] = data

    return act


def _cut(size: int) -> Callable[[bytearray], None]:
    def act(content: bytearray) -> None:
        del content[size:]
        content.extend(bytes(size - len(content)))

    return act


class Medium:
    """The disk below one directory, which was there and synced before the program began."""

    def __init__(self, top: Path) -> None:
        """Begin empty."""
        self.top = str(top)
        self.root = Node(is_directory=True)
        self.open: dict[str, tuple[Node, list[int]]] = {}

    def node(self, path: str) -> Node | None:
        """Return what is seen at an absolute path below the top."""
        here: Node | None = self.root
        for part in path[len(self.top) :].strip("/").split("/"):
            if part:
                here = here.names.get(part) if here is not None else None
        return here

    def play(self, call: Call) -> None:
        """Let a call have its effect; calls elsewhere have none."""
        act = getattr(self, f"_{call.name}", None)
        if act is not None:
            act(call)

    def _place(self, directory: str, name: str) -> tuple[Node, str] | None:
        """Return the directory and the name that a path means, if it lies below the top."""
        path = text_of(name).decode()
        if not path.startswith("/"):
            match = _PATH.match(directory)
            path = f"{text_of(match[1]).decode() if match else ''}/{path}"
        if not path.startswith(f"{self.top}/"):
            return None
        above, _, last = path.rpartition("/")
        parent = self.node(above)
        return None if parent is None else (parent, last)

    def _openat(self, call: Call) -> None:
        place = self._place(call.arguments[0], call.arguments[1])
        if place is None:
            self.open.pop(str(call.result), None)
            if text_of(call.arguments[1]).decode() == self.top:
                self.open[str(call.result)] = (self.root, [0])
            return
        parent, name = place
        if name not in parent.names:
            parent.name(name, Node(is_directory=False))
        node = parent.names[name]
        if "O_TRUNC" in call.arguments[2] and node.data:
            node.change(_cut(0))
        self.open[str(call.result)] = (node, [0])

    def _of(self, call: Call) -> tuple[Node, list[int]] | None:
        return self.open.get(call.arguments[0].partition("<")[0])

    def _close(self, call: Call) -> None:
        self.open.pop(call.arguments[0].partition("<")[0], None)

    def _write(self, call: Call) -> None:
        if found := self._of(call):
            node, position = found
            node.change(_write(position[0], text_of(call.arguments[1])[: call.result]))
            position[0] += call.result

    def _pwrite64(self, call: Call) -> None:
        if found := self._of(call):
            data = text_of(call.arguments[1])[: call.result]
            found[0].change(_write(int(call.arguments[3]), data))

    def _ftruncate(self, call: Call) -> None:
        if found := self._of(call):
            found[0].change(_cut(int(call.arguments[1])))

    def _fsync(self, call: Call) -> None:
        if found := self._of(call):
            found[0].sync()

    _fdatasync = _fsync

    def _mkdirat(self, call: Call) -> None:
        self._made(self._place(call.arguments[0], call.arguments[1]))

    def _mkdir(self, call: Call) -> None:
        self._made(self._place("", call.arguments[0]))

    def _made(self, place: tuple[Node, str] | None) -> None:
        if place is not None:
            place[0].name(place[1], Node(is_directory=True))

    def _renameat(self, call: Call) -> None:
        one, other, third, fourth = call.arguments[:4]
        self._moved(self._place(one, other), self._place(third, fourth), stays=False)

    _renameat2 = _renameat

    def _rename(self, call: Call) -> None:
        old, new = call.arguments[:2]
        self._moved(self._place("", old), self._place("", new), stays=False)

    def _linkat(self, call: Call) -> None:
        one, other, third, fourth = call.arguments[:4]
        self._moved(self._place(one, other), self._place(third, fourth), stays=True)

    def _link(self, call: Call) -> None:
        old, new = call.arguments[:2]
        self._moved(self._place("", old), self._place("", new), stays=True)

    @staticmethod
    def _moved(old: tuple[Node, str] | None, new: tuple[Node, str] | None, *, stays: bool) -> None:
        if old is None or new is None:
            return
        new[0].name(new[1], old[0].names[old[1]])
        if not stays:
            old[0].name(old[1], None)

    def _unlinkat(self, call: Call) -> None:
        if place := self._place(call.arguments[0], call.arguments[1]):
            place[0].name(place[1], None)

    def _unlink(self, call: Call) -> None:
        if place := self._place("", call.arguments[0]):
            place[0].name(place[1], None)

    _rmdir = _unlink


#: Decides about each change that was not synced: does it survive the cut?
Survives = Callable[[], bool]


def left(node: Node, survives: Survives, torn: Random | None = None) -> Node:
    """Return what a cut leaves of a node and everything below it."""
    if not node.is_directory:
        data = bytearray(node.kept_data)
        for act in node.pending:
            if survives():
                act(data)
        if torn is not None and node.pending and len(data) > len(node.kept_data):
            del data[torn.randrange(len(node.kept_data), len(data)) :]
        return Node(is_directory=False, data=data)
    names = dict(node.kept_names)
    for name, target in node.pending_names:
        if survives():
            names.pop(name, None) if target is None else names.update({name: target})
    return Node(
        is_directory=True,
        names={name: left(below, survives, torn) for name, below in names.items()},
    )


def lay_out(node: Node, place: Path) -> None:
    """Make real files of what a cut left."""
    place.mkdir()
    for name, below in node.names.items():
        if below.is_directory:
            lay_out(below, place / name)
        else:
            (place / name).write_bytes(below.data)


def cuts(
    calls: Sequence[Call], top: Path, place: Path, random: Random
) -> Iterator[tuple[list[str], str]]:
    """Lay out, for a cut after every call, what may be left; yield what had been told by then.

    Each state lies at ``place`` while it is looked at. The text says which cut it was.
    """
    medium = Medium(top)
    told: list[str] = []
    for number, call in enumerate(calls):
        if call.told:
            told.append(call.told)
        elif call.name in ("close", "openat"):
            medium.play(call)
            continue
        else:
            medium.play(call)
        ways: dict[str, Callable[[], Node]] = {
            "nothing": lambda: left(medium.root, lambda: False),
            "everything": lambda: left(medium.root, lambda: True),
            "some": lambda: left(medium.root, lambda: random.random() < 0.5, random),
        }
        for way, make in ways.items():
            shutil.rmtree(place, ignore_errors=True)
            lay_out(make(), place)
            yield told, f"after call {number} ({call.name}), {way} of the rest"
