"""What the world looked like at one moment: frozen values that every room passes around.

Paths are relative to the watch root, with ``/`` between components; bytes that are not UTF-8 are
carried as surrogate escapes. Sizes are bytes, durations seconds, checksums CRC64-NVME as integers.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["file", "symlink", "directory"]
Writer = Literal["none", "open", "unknown"]
Shape = Literal["whole", "broken", "unknown"]
StoreErrorKind = Literal["again", "never", "gone", "missing", "lost", "refused", "local", "changed"]


@dataclass(frozen=True, slots=True)
class Instant:
    """One reading of the clocks: ``boot`` runs through suspend and never jumps, ``wall`` may."""

    boot: float
    wall: float


@dataclass(frozen=True, slots=True)
class FileFact:
    """One path as ``lstat`` saw it; equality is the identity of its content.

    ctime is no identity: our own hard link, the trainer's unlink and rename move it.
    """

    path: str
    kind: Kind
    device: int
    inode: int
    size: int
    mtime_ns: int
    target: str | None = None
    mode: int = field(default=0o644, compare=False)
    ctime_ns: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Listing:
    """The identity of a checkpoint's content: the facts of all its files, sorted by path.

    ``folders`` are its directories, its own among them: they come back with their modes, and are
    no identity (a restore must find an empty one again, and never upload anything for it).
    """

    files: tuple[FileFact, ...]
    folders: tuple[FileFact, ...] = field(default=(), compare=False, repr=False)

    @property
    def bytes(self) -> int:
        """How many bytes the regular files hold together."""
        return sum(fact.size for fact in self.files if fact.kind == "file")

    @property
    def saved_at(self) -> float:
        """When the trainer last wrote into it: the newest mtime, seconds since the epoch."""
        return max((fact.mtime_ns for fact in self.files), default=0) / 1e9

    def save_id(self) -> str:
        """Name this content so that a copy with the same sizes and mtimes gets the same name.

        Device and inode stay out: a restored copy on another machine is the same save.
        """
        digest = hashlib.sha256()
        for fact in self.files:
            mtime_ns = fact.mtime_ns if fact.kind == "file" else 0
            row = (fact.path, fact.kind, fact.size, mtime_ns, fact.target)
            digest.update(repr(row).encode("utf-8", "surrogateescape"))
        return digest.hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class FileLook:
    """One file examined closely: its fact, whether somebody can still write it, its format.

    ``lists``: the files beside it that it says belong to it (an index names its shards), and how
    many bytes they hold together, 0 where it does not say.
    """

    fact: FileFact
    writer: Writer = "unknown"
    writer_name: str = ""
    shape: Shape = "unknown"
    has_end_mark: bool = False
    fault: str = ""
    lists: tuple[str, ...] = ()
    lists_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Piece:
    """A byte range of one file: the unit of work, of resume, of retry."""

    index: int
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class Begun:
    """A begun upload. ``token`` is the store's own handle; ``nonce`` marks the object as ours."""

    key: str
    token: str
    nonce: str
    size: int
    piece_bytes: int


@dataclass(frozen=True, slots=True)
class Receipt:
    """The store's answer for one piece: what it was given, and the name by which it knows it."""

    index: int
    length: int
    crc64nvme: int
    token: str = ""


@dataclass(frozen=True, slots=True)
class ObjectFact:
    """One object as the store tells it. ``None`` where the store does not say.

    ``checked`` names what the store itself compared with what we sent: ``crc64nvme``, ``crc32c``,
    ``sha256``, ``md5``, ``read back``, ``size``, or empty for nothing.
    """

    key: str
    size: int
    version: str = ""
    crc64nvme: int | None = None
    nonce: str | None = None
    checked: str = ""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a store can do, as data; nobody asks a store for its name."""

    min_piece_bytes: int
    max_piece_bytes: int
    max_pieces: int
    max_object_bytes: int
    piece_multiple: int = 1
    max_key_bytes: int = 1024
    pieces_in_parallel: bool = True
    can_abandon: bool = True
    create_only_finish: bool = True
    compare_and_set: bool = True
    checksum: str = "crc64nvme"


@dataclass(frozen=True, slots=True)
class IfAbsent:
    """Write only where no object has the key."""


@dataclass(frozen=True, slots=True)
class IfMatches:
    """Write only over this very version."""

    version: str


Condition = IfAbsent | IfMatches | None


@dataclass(frozen=True, slots=True)
class Notice:
    """An interruption warning; ``deadline_boot`` is on the boot clock, ``None`` if not known."""

    source: str
    notice_id: str
    severity: Literal["binding", "advisory", "scheduled", "pause"]
    deadline_boot: float | None
    text: str = ""
