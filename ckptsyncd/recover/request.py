"""What a restore is asked for, what it answers, and to whom it tells its progress."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from ckptsyncd.recover.catalog import Entry

#: Ranged reads at the same time, at most (Litestream restores with 8; two more than saturate 25
#: Gbit/s at S3's 90 MB/s a stream are no use on a small machine, so guessed from there). How many
#: of them are of use is found out while it goes (``readers``).
WORKERS = 8
#: Bytes of one ranged read, and what is lost at most when a restore is killed (guessed).
PIECE_BYTES = 16 * 1024 * 1024

Step = Literal["chosen", "compared", "fetched", "built", "placed", "pointed", "recorded", "cleaned"]


@dataclass(frozen=True, slots=True)
class RestoreRequest:
    """Which checkpoint, how much of it, and what to do where something is in the way.

    ``checkpoint`` is ``NAME`` or ``NAME@EDITION``. ``only`` are globs that a path (whole, below
    the checkpoint, or its last part) must match one of. ``node`` takes what that node wrote,
    or with ``nodes`` the share of what was written that falls to it among so many.
    ``wait`` polls until a checkpoint is there, ``timeout_seconds`` at most. ``force`` sets aside
    what has the same name and other content.
    """

    checkpoint: str | None = None
    series: str | None = None
    step: int | None = None
    only: tuple[str, ...] = ()
    node: int | None = None
    nodes: int | None = None
    if_empty: bool = False
    wait: bool = False
    timeout_seconds: float | None = None
    dry_run: bool = False
    force: bool = False
    workers: int = WORKERS
    piece_bytes: int = PIECE_BYTES


@dataclass(frozen=True, slots=True)
class Skipped:
    """An edition that would have come first and could not be used, and why.

    ``refused``: a name in it would leave the root.
    """

    title: str
    reason: str
    refused: bool = False


@dataclass(frozen=True, slots=True)
class RestoreResult:
    """What a restore did, or would do.

    ``entry`` is ``None`` where nothing was to be done (``reason`` says why). ``placed`` came from
    the store, ``kept`` were there with equal content, ``set_aside`` says where what was in the way
    lies now; ``pointers`` were made. ``bytes_needed`` are those of what is not there yet;
    ``lineage`` is the one to commit with from now on.
    """

    entry: Entry | None
    reason: str = ""
    lineage: int = 0
    files: int = 0
    bytes: int = 0
    bytes_needed: int = 0
    bytes_fetched: int = 0
    bytes_resumed: int = 0
    placed: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    set_aside: tuple[str, ...] = ()
    pointers: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    warnings: tuple[str, ...] = ()
    dry_run: bool = False


class Progress(Protocol):
    """Hears how far a command is. ``moved`` is called from several threads, the others from one."""

    def said(self, text: str) -> None:
        """Hear a line for people."""
        ...

    def began(self, files: int, total_bytes: int, there_bytes: int) -> None:
        """Hear how much there is to fetch, and how much of it an earlier attempt left checked."""
        ...

    def moved(self, arrived_bytes: int) -> None:
        """Hear that so many more bytes arrived."""
        ...

    def reached(self, step: Step) -> None:
        """Hear that a step is done; whatever it wrote is on the disk."""
        ...


class Silence:
    """Tells nobody."""

    def said(self, text: str) -> None:
        """Ignore it."""

    def began(self, files: int, total_bytes: int, there_bytes: int) -> None:
        """Ignore it."""

    def moved(self, arrived_bytes: int) -> None:
        """Ignore it."""

    def reached(self, step: Step) -> None:
        """Ignore it."""
