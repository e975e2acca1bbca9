"""The complete list of what can be ordered: imperatives.

Every order that goes to a hand carries an ``errand``: what it is for. The answer brings it back, so
a late answer can only free a hand and never change what it was not about.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ckptsyncd.core.facts import Begun, Condition, Listing, Piece, Receipt
from ckptsyncd.core.records.manifest import Manifest
from ckptsyncd.core.rules.retention import Retention


@dataclass(frozen=True, slots=True)
class Errand:
    """What an order is for: a purpose, and as much of the address as it needs.

    ``attempt`` tells copies of an order that seems to be stuck from the first one.
    """

    purpose: str
    checkpoint: str = ""
    save_id: str = ""
    path: str = ""
    index: int = -1
    attempt: int = 0


# Orders to the hands ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Probe:
    """Find out what the store can do (once at start)."""

    errand: Errand


@dataclass(frozen=True, slots=True)
class Begin:
    """Begin an upload."""

    errand: Errand
    key: str
    size: int
    piece_bytes: int
    nonce: str


@dataclass(frozen=True, slots=True)
class PutPiece:
    """Send one piece of a pinned file."""

    errand: Errand
    begun: Begun
    piece: Piece
    pin_id: str
    listing: Listing


@dataclass(frozen=True, slots=True)
class Finish:
    """Make the pieces one object."""

    errand: Errand
    begun: Begun
    receipts: tuple[Receipt, ...]
    create_only: bool


@dataclass(frozen=True, slots=True)
class Abandon:
    """Drop a begun upload."""

    errand: Errand
    begun: Begun


@dataclass(frozen=True, slots=True)
class PutWhole:
    """Store a small pinned file as one object."""

    errand: Errand
    key: str
    pin_id: str
    listing: Listing
    piece: Piece
    nonce: str
    create_only: bool


@dataclass(frozen=True, slots=True)
class PutSmall:
    """Store a record. ``manifest``: what ``data`` says, where it is one."""

    errand: Errand
    key: str
    data: bytes
    condition: Condition
    manifest: Manifest | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class GetSmall:
    """Read a record."""

    errand: Errand
    key: str


@dataclass(frozen=True, slots=True)
class Stat:
    """Ask the store about an object, and tell what its checksum would be if it were ours.

    That is combined from ``receipts``, or computed from ``piece`` of the pinned file.
    """

    errand: Errand
    key: str
    pin_id: str
    listing: Listing
    receipts: tuple[Receipt, ...] = ()
    piece: Piece | None = None


@dataclass(frozen=True, slots=True)
class ListKeys:
    """List the keys below a prefix (once at start, never in steady state)."""

    errand: Errand
    prefix: str


@dataclass(frozen=True, slots=True)
class ListUploads:
    """List begun uploads below a prefix (once at start)."""

    errand: Errand
    prefix: str


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove an object."""

    errand: Errand
    key: str


@dataclass(frozen=True, slots=True)
class Sum:
    """Compute the CRC64-NVME of one pinned file."""

    errand: Errand
    pin_id: str
    listing: Listing
    piece: Piece


@dataclass(frozen=True, slots=True)
class PutCompanion:
    """Store a file that belongs to no checkpoint as it is now, overwriting the last one."""

    errand: Errand
    key: str
    path: str
    size: int


HandOrder = (
    Probe
    | Begin
    | PutPiece
    | Finish
    | Abandon
    | PutWhole
    | PutSmall
    | GetSmall
    | Stat
    | ListKeys
    | ListUploads
    | Delete
    | Sum
    | PutCompanion
)

# Orders to the scanner --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scan:
    """List everything at and below a path."""

    errand: Errand
    path: str
    recursive: bool = True


@dataclass(frozen=True, slots=True)
class Look:
    """List one checkpoint's paths anew and examine the ones named closely."""

    errand: Errand
    roots: tuple[str, ...]
    closely: frozenset[str]


@dataclass(frozen=True, slots=True)
class Pin:
    """Make a settled listing readable whatever the trainer does (``copy``: by a stable copy)."""

    errand: Errand
    listing: Listing
    copy: bool = False


@dataclass(frozen=True, slots=True)
class LookAgain:
    """Compare the pinned files with their listing: the second look before the manifest."""

    errand: Errand
    listing: Listing


@dataclass(frozen=True, slots=True)
class Unpin:
    """Let go of pinned files."""

    errand: Errand


@dataclass(frozen=True, slots=True)
class Discard:
    """Remove the local copy of a safe checkpoint: its files as they were committed, no others."""

    errand: Errand
    listing: Listing


@dataclass(frozen=True, slots=True)
class ReadPointer:
    """Read a framework's pointer: its text or its link target."""

    errand: Errand
    path: str


ScannerOrder = Scan | Look | Pin | LookAgain | Unpin | Discard | ReadPointer

# Orders to the ledger and the trainer -----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Remember:
    """Write a row that survives a restart; ``durable`` rows survive a power cut too."""

    table: str
    key: str
    value: str
    durable: bool = False


@dataclass(frozen=True, slots=True)
class Forget:
    """Remove a row."""

    table: str
    key: str


@dataclass(frozen=True, slots=True)
class ForgetBelow:
    """Remove the rows of several tables whose keys start with a prefix."""

    tables: tuple[str, ...]
    prefix: str


LedgerOrder = Remember | Forget | ForgetBelow


# Orders about a drain ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TellTrainer:
    """Tell the trainer that this machine will be lost, in the ways that the settings name.

    ``seconds`` from ``told_wall`` on are left for it to save (``None``: not known).
    """

    source: str
    text: str
    seconds: float | None
    told_wall: float


@dataclass(frozen=True, slots=True)
class RecallTrainer:
    """Take back what the trainer was told, as far as that can be taken back."""


@dataclass(frozen=True, slots=True)
class Acknowledge:
    """Tell a source that nothing stands in its notice's way any more, if it wants to know."""

    source: str
    notice_id: str


@dataclass(frozen=True, slots=True)
class KeepReport:
    """Keep the report of a drain in the state directory."""

    data: bytes


DrainOrder = TellTrainer | RecallTrainer | Acknowledge | KeepReport


# Orders about the store as a whole ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Prune:
    """Remove from the store what the rules do not keep, and what earlier prunes have left.

    Data goes ``grace_seconds`` after its checkpoint, at most ``per_second`` requests a second.
    ``reaps``: also what writers left that are gone.
    """

    number: int
    rules: Retention
    grace_seconds: float
    per_second: float
    reaps: bool


@dataclass(frozen=True, slots=True)
class HoldPrune:
    """Let the prune that is under way end before its next removal."""


@dataclass(frozen=True, slots=True)
class Mirror:
    """Bring the second destination up to date."""

    number: int


@dataclass(frozen=True, slots=True)
class HoldMirror:
    """Let that end before its next piece."""


TidyOrder = Prune | HoldPrune | Mirror | HoldMirror


@dataclass(frozen=True, slots=True)
class SetPace:
    """Send at most so many bytes a second from now on; ``None``: as fast as it goes."""

    bytes_per_second: int | None


@dataclass(frozen=True, slots=True)
class BeginAnew:
    """Forget what was thought, and begin with what ledger, disk and store say now.

    ``kept`` is to be told to who begins: what was heard once and still holds.
    """

    kept: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Stop:
    """End the process: everything that the stop was to wait for is done, or its time is over."""

    exit_code: int


Order = HandOrder | ScannerOrder | LedgerOrder | DrainOrder | TidyOrder | SetPace | BeginAnew | Stop
