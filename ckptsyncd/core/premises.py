"""What was found out about this machine before a start, for ``check`` to judge."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

#: ``granted``: a lease was had, or was refused because somebody writes. ``refused``: not for us, or
#: not on this file system. ``unasked``: there was no file to ask for.
Lease = Literal["granted", "refused", "unasked"]
#: How a file of the trainer's can be pinned.
PinWay = Literal["link", "descriptor", "impossible", "unasked"]


@dataclass(frozen=True, slots=True)
class Census:
    """What lies below the watch root; counting stops at some number of entries.

    ``largest_bytes`` is the largest checkpoint, as far as names tell what belongs together.
    ``unreadable`` is how many files we may not read, ``example`` one of them. ``documents`` are the
    newest JSON files.
    """

    directories: int = 0
    files: int = 0
    bytes: int = 0
    largest: str = ""
    largest_bytes: int = 0
    unreadable: int = 0
    example: str = ""
    documents: tuple[str, ...] = ()
    is_cut_short: bool = False
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Watching:
    """What came of watching every directory once, with an inotify instance of our own.

    ``polled`` are the subtrees that could not be watched, each with its reason; ``limit`` is how
    many watches this user may have, ``None`` where the kernel hides it.
    """

    watched: int = 0
    polled: tuple[tuple[str, str], ...] = ()
    no_instance: str = ""
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Premises:
    """What the watch root and its file system are like.

    ``hides_writers`` is the file system's name where other machines may write unseen. The lease and
    the pin were tried on ``tried_on``, the newest file. ``shares_device``: the destination is a
    directory on the same device. ``target_free_bytes``: what is free there, ``None`` elsewhere.
    """

    root: str
    exists: bool = False
    file_system: str = ""
    hides_writers: str = ""
    census: Census = field(default_factory=Census)
    watching: Watching = field(default_factory=Watching)
    tried_on: str = ""
    lease: Lease = "unasked"
    lease_trouble: str = ""
    pin: PinWay = "unasked"
    pin_trouble: str = ""
    free_bytes: int = 0
    shares_device: bool = False
    target_free_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class StopBudget:
    """Who ends this program, and how long after SIGTERM the kill comes.

    ``unit`` is the service manager's unit, if there is one, with its own time. ``platform`` says
    what else runs us (``kubernetes``, ``container``, ``slurm``, ...), empty for a plain process.
    """

    unit: str = ""
    unit_seconds: float | None = None
    platform: str = ""
