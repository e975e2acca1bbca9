"""The complete list of what can happen: past participles; ``orders`` lists what can be ordered."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from ckptsyncd.core.facts import (
    Begun,
    FileFact,
    FileLook,
    Limits,
    Listing,
    Notice,
    ObjectFact,
    Receipt,
    StoreErrorKind,
)
from ckptsyncd.core.orders import Errand
from ckptsyncd.core.rules.policy import Policy


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
    """Everything at and below a path, as it was, parents first; read as often as one likes.

    With an ``error`` something could not be seen: what is missing is not known to be gone.
    """

    errand: Errand
    path: str
    facts: Collection[FileFact]
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
    """The files are no longer pinned; ``error`` says what could not be removed."""

    errand: Errand
    error: str = ""


@dataclass(frozen=True, slots=True)
class PinsWeighed:
    """Pins hold too much of the disk for us alone, or do so no longer.

    ``pins``: pin id and bytes, of those that hold any. ``free_bytes`` is what the trainer has left,
    ``floor_bytes`` what it should have, ``most_bytes`` what all pins together may hold.
    """

    pins: tuple[tuple[str, int], ...]
    free_bytes: int
    floor_bytes: int
    most_bytes: int


@dataclass(frozen=True, slots=True)
class Discarded:
    """The local copy of a safe checkpoint is removed; ``error`` says why it is not."""

    errand: Errand
    error: str = ""


@dataclass(frozen=True, slots=True)
class PointerRead:
    """A pointer's text, ``None`` where it is gone, or cannot be read for the ``error``."""

    errand: Errand
    kind: str
    text: str | None
    error: str = ""


@dataclass(frozen=True, slots=True)
class Probed:
    """What the store can do; ``description`` is for people."""

    errand: Errand
    limits: Limits
    description: str
    clock_ahead_seconds: float | None = None


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
    """What the store says of an object (``None``: none), and the checksum of our own content."""

    errand: Errand
    fact: ObjectFact | None
    crc64nvme: int | None = None


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
    listing said). ``ambiguous``: it may have taken effect. ``throttled``: the store wants fewer
    requests.
    """

    errand: Errand
    kind: StoreErrorKind
    text: str
    wait_seconds: float | None = None
    ambiguous: bool = False
    hint: str = ""
    throttled: bool = False


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
class TrainerSeen:
    """A trainer runs, our own or one that the settings name, or has ended: it writes no more."""

    is_alive: bool


@dataclass(frozen=True, slots=True)
class TrainerTold:
    """The trainer was told of a notice; ``text`` says in which ways, and what went wrong."""

    text: str


@dataclass(frozen=True, slots=True)
class CommitRequested:
    """A user says that what lies at this path is a whole checkpoint."""

    path: str


@dataclass(frozen=True, slots=True)
class RootLost:
    """The watch root is gone (``present`` false) or has come (back)."""

    present: bool


@dataclass(frozen=True, slots=True)
class Pruned:
    """An edition was removed from the store on purpose."""

    checkpoint: str
    edition: int


@dataclass(frozen=True, slots=True)
class PruneEnded:
    """A prune is over: so many checkpoints, objects and begun uploads went.

    ``waiting``: there is data whose time has not come. ``interrupted``: it gave way.
    """

    number: int
    pruned: int = 0
    objects: int = 0
    uploads: int = 0
    waiting: bool = False
    interrupted: bool = False
    error: str = ""


@dataclass(frozen=True, slots=True)
class MirrorEnded:
    """The second destination was served: so many checkpoints came over, so many did not.

    ``interrupted``: it gave way. ``error``: why something cannot come over.
    """

    number: int
    copied: int = 0
    bytes: int = 0
    behind: int = 0
    interrupted: bool = False
    error: str = ""


@dataclass(frozen=True, slots=True)
class Reconfigured:
    """Other rules hold from now on; number of hands and nodes are those of the start."""

    policy: Policy


@dataclass(frozen=True, slots=True)
class Woken:
    """An alarm went off, or the loop overslept (``late_seconds``)."""

    late_seconds: float = 0.0


Answer = (
    Probed
    | UploadBegun
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

Report = Scanned | Looked | Pinned | LookedAgain | Unpinned | Discarded | PointerRead

Message = (
    Answer
    | Report
    | Touched
    | Overflowed
    | Polled
    | PinsWeighed
    | Noticed
    | Withdrawn
    | SourceHeard
    | StopRequested
    | TrainerSeen
    | TrainerTold
    | CommitRequested
    | RootLost
    | Pruned
    | PruneEnded
    | MirrorEnded
    | Reconfigured
    | Woken
)
