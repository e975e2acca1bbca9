"""The complete list of what can happen (past participles) and of what can be ordered (imperatives).

Every order that goes to a hand carries an ``errand``: what it is for. The answer brings it back, so
a late answer can only free a hand and never change what it was not about.
"""

from __future__ import annotations

from dataclasses import dataclass

from ckptsyncd.core.facts import (
    Begun,
    Condition,
    FileFact,
    FileLook,
    Listing,
    Notice,
    ObjectFact,
    Piece,
    Receipt,
    StoreErrorKind,
)

# What an order is for ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Errand:
    """What an order is for: a purpose, and as much of the address as it needs."""

    purpose: str
    checkpoint: str = ""
    save_id: str = ""
    path: str = ""
    index: int = -1


# Orders to the hands ----------------------------------------------------------------------------


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
    """Store a record."""

    errand: Errand
    key: str
    data: bytes
    condition: Condition


@dataclass(frozen=True, slots=True)
class GetSmall:
    """Read a record."""

    errand: Errand
    key: str


@dataclass(frozen=True, slots=True)
class Stat:
    """Ask the store about an object."""

    errand: Errand
    key: str


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
    Begin
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
class ReadPointer:
    """Read a framework's pointer: its text or its link target."""

    errand: Errand
    path: str


ScannerOrder = Scan | Look | Pin | LookAgain | Unpin | ReadPointer

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


LedgerOrder = Remember | Forget


@dataclass(frozen=True, slots=True)
class Stop:
    """End the process: everything that the stop was to wait for is done, or its time is over."""

    exit_code: int


Order = HandOrder | ScannerOrder | LedgerOrder | Stop

# What happened ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Touched:
    """Something may have changed at a path: look there again.

    ``arrived``: the name came by a rename from a temporary name or from outside.
    ``gone``: the name was removed or renamed away. ``tree``: a whole subtree must be looked at.
    """

    path: str
    arrived: bool = False
    gone: bool = False
    tree: bool = False


@dataclass(frozen=True, slots=True)
class Overflowed:
    """Events were lost: everything must be looked at."""


@dataclass(frozen=True, slots=True)
class Polled:
    """A subtree cannot be watched and is polled from now on; ``reason`` names the remedy."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Scanned:
    """Everything at and below a path, as it was."""

    errand: Errand
    path: str
    facts: tuple[FileFact, ...]
    recursive: bool = True
    error: str = ""


@dataclass(frozen=True, slots=True)
class Looked:
    """One checkpoint's paths as they were, the named ones examined closely."""

    errand: Errand
    facts: tuple[FileFact, ...]
    looks: tuple[FileLook, ...]


@dataclass(frozen=True, slots=True)
class Pinned:
    """The files are pinned as ``listing`` says; ``error`` is why not."""

    errand: Errand
    listing: Listing
    error: str = ""


@dataclass(frozen=True, slots=True)
class LookedAgain:
    """The second look: ``difference`` is empty where the pinned files are what they were."""

    errand: Errand
    difference: str


@dataclass(frozen=True, slots=True)
class Unpinned:
    """The files are no longer pinned."""

    errand: Errand


@dataclass(frozen=True, slots=True)
class PointerRead:
    """A pointer's text, ``None`` where it is gone."""

    errand: Errand
    kind: str
    text: str | None


@dataclass(frozen=True, slots=True)
class UploadBegun:
    """An upload was begun."""

    errand: Errand
    begun: Begun


@dataclass(frozen=True, slots=True)
class PieceStored:
    """A piece is in the store, checked there."""

    errand: Errand
    receipt: Receipt
    seconds: float


@dataclass(frozen=True, slots=True)
class ObjectStored:
    """A whole object is in the store (after Finish or PutWhole); ``crc64nvme`` is what we sent."""

    errand: Errand
    fact: ObjectFact
    crc64nvme: int
    seconds: float


@dataclass(frozen=True, slots=True)
class UploadAbandoned:
    """A begun upload is dropped."""

    errand: Errand


@dataclass(frozen=True, slots=True)
class RecordPut:
    """A record was written."""

    errand: Errand
    version: str


@dataclass(frozen=True, slots=True)
class RecordRead:
    """A record was read; ``None`` where there is none."""

    errand: Errand
    data: bytes | None
    version: str


@dataclass(frozen=True, slots=True)
class ObjectSeen:
    """What the store says of an object; ``None`` where there is none."""

    errand: Errand
    fact: ObjectFact | None


@dataclass(frozen=True, slots=True)
class KeysListed:
    """The keys below a prefix."""

    errand: Errand
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UploadsListed:
    """The begun uploads below a prefix."""

    errand: Errand
    uploads: tuple[Begun, ...]


@dataclass(frozen=True, slots=True)
class Deleted:
    """An object is gone."""

    errand: Errand


@dataclass(frozen=True, slots=True)
class Summed:
    """The checksum of one pinned file."""

    errand: Errand
    crc64nvme: int


@dataclass(frozen=True, slots=True)
class Failed:
    """An order did not succeed.

    ``kind`` as in ``errors``, or ``local`` (our disk) or ``changed`` (the file was not what the
    listing said). ``ambiguous``: it may have taken effect.
    """

    errand: Errand
    kind: StoreErrorKind
    text: str
    wait_seconds: float | None = None
    ambiguous: bool = False


@dataclass(frozen=True, slots=True)
class Noticed:
    """A source saw an interruption notice (again: one drain per id)."""

    notice: Notice


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """A source no longer sees the notice that it saw."""

    source: str
    notice_id: str


@dataclass(frozen=True, slots=True)
class SourceHeard:
    """A source was heard (``blind`` empty) or could not be (why)."""

    source: str
    blind: str


@dataclass(frozen=True, slots=True)
class StopRequested:
    """A signal asked the daemon to stop; ``deadline_boot`` is when it will be killed."""

    deadline_boot: float


@dataclass(frozen=True, slots=True)
class CommitRequested:
    """A user says that what lies at this path is a whole checkpoint."""

    path: str


@dataclass(frozen=True, slots=True)
class RootLost:
    """The watch root is gone (``present`` false) or has come (back)."""

    present: bool


@dataclass(frozen=True, slots=True)
class Woken:
    """An alarm went off, or the loop overslept (``late_seconds``)."""

    late_seconds: float = 0.0


Answer = (
    UploadBegun
    | PieceStored
    | ObjectStored
    | UploadAbandoned
    | RecordPut
    | RecordRead
    | ObjectSeen
    | KeysListed
    | UploadsListed
    | Deleted
    | Summed
    | Failed
)

Report = Scanned | Looked | Pinned | LookedAgain | Unpinned | PointerRead

Message = (
    Answer
    | Report
    | Touched
    | Overflowed
    | Polled
    | Noticed
    | Withdrawn
    | SourceHeard
    | StopRequested
    | CommitRequested
    | RootLost
    | Woken
)
