"""What the mind knows about one edition on its way into the store.

The only mutable values of the mind live here, in ``series`` and in ``brain``. Progress is a level,
not a sequence of events: ``upload.missing`` reads it and says what is to be done next.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from ckptsyncd.core.facts import Begun, FileFact, Listing, Piece, Receipt
from ckptsyncd.core.lifecycle import State, checked_move
from ckptsyncd.core.records.manifest import Manifest, StoredFile
from ckptsyncd.core.sending.together.joint import Joint
from ckptsyncd.core.sightings import Settled

#: ``doubt``: the write may have happened although no good answer came; it is read back.
Certainty = Literal["no", "doubt", "yes"]


@dataclass(slots=True)
class FileProgress:
    """One regular file on its way: not begun, or some pieces in the store.

    ``todo`` holds the pieces that the store has not confirmed. ``doubt``: a finish may have
    happened; ``gone``: the store does not know the begun upload any more. ``has_stray``: an upload
    may have been begun whose token nobody told us. ``salts`` counts how often the data key had to
    be changed because a foreign object lies there. ``is_beginning``: an upload is being begun, and
    the answer has not come.
    """

    fact: FileFact
    key: str
    begun: Begun | None = None
    todo: dict[int, Piece] = field(default_factory=dict)
    receipts: dict[int, Receipt] = field(default_factory=dict)
    nonce: str = ""
    doubt: bool = False
    gone: bool = False
    has_stray: bool = False
    salts: int = 0
    is_beginning: bool = False

    @property
    def bytes_stored(self) -> int:
        """How many of its bytes the store has confirmed."""
        return sum(receipt.length for receipt in self.receipts.values())

    def restart(self) -> None:
        """Forget the begun upload and its pieces."""
        self.begun = None
        self.todo = {}
        self.receipts = {}
        self.nonce = ""
        self.doubt = False
        self.gone = False


@dataclass(slots=True)
class Edition:
    """One fixed content of one checkpoint name.

    ``number`` is 0 until one was chosen; ``expected`` is the one that was next when it settled.

    ``files`` are those still on their way, ``stored`` those that are in the store, ``stamps`` those
    there that the trainer's directory does not have. ``rivals`` are
    committed editions of the same name whose content may be this one; ``rival`` is the one whose
    sizes are equal and whose checksums are being compared (``sums``). ``source`` is the committed
    edition whose unchanged files it may share, until it is known whether that is still there.
    ``joint`` is how far it is where several machines store it together. ``bytes`` are all that its
    files hold, ``bytes_whole`` those of the files that are in the store.
    """

    settled: Settled
    save_id: str
    settled_at: float
    expected: int = 0
    state: State = "settled"
    reason: str = ""
    number: int = 0
    claimed: Certainty = "no"
    pinned: bool = False
    looked: bool = False
    sealed: Certainty = "no"
    manifest: Manifest | None = None
    files: dict[str, FileProgress] = field(default_factory=dict)
    stored: dict[str, StoredFile] = field(default_factory=dict)
    stamps: dict[str, StoredFile] = field(default_factory=dict)
    rivals: tuple[int, ...] = ()
    source: int = 0
    rival: Manifest | None = None
    sums: dict[str, int] = field(default_factory=dict)
    parked_until: float | None = None
    began: bool = False
    gave_way: bool = False
    joint: Joint = field(default_factory=Joint)
    saved_at: float = field(init=False)
    bytes: int = field(init=False)
    bytes_whole: int = field(init=False)

    def __post_init__(self) -> None:
        """Keep what is asked for in every turn: a listing may have a hundred thousand files."""
        self.saved_at = self.settled.listing.saved_at
        self.bytes = self.settled.listing.bytes
        self.bytes_whole = sum(stored.size for stored in self.stored.values())

    @property
    def checkpoint(self) -> str:
        """The name under which it is restored."""
        return self.settled.checkpoint

    @property
    def series(self) -> str:
        """The sequence of checkpoints that it belongs to."""
        return self.settled.series

    @property
    def listing(self) -> Listing:
        """The identity of its content."""
        return self.settled.listing

    @property
    def bytes_stored(self) -> int:
        """How many of its bytes the store has confirmed."""
        # Thousands of small files have no receipts, and this is asked for several times a second.
        begun = (progress for progress in self.files.values() if progress.receipts)
        return self.bytes_whole + sum(progress.bytes_stored for progress in begun)

    def keep(self, row: StoredFile) -> None:
        """Note that a file is in the store, which it was not before."""
        self.stored[row.path] = row
        self.bytes_whole += row.size

    def begin_anew(self) -> None:
        """Forget which files are on their way or in the store."""
        self.files, self.stored, self.stamps = {}, {}, {}
        self.bytes_whole = 0

    @property
    def wants_look(self) -> bool:
        """Whether only the second look stands between it and its manifest."""
        compared = self.pinned and not self.rivals
        laid_out = self.claimed == "yes" and not self.source
        return compared and laid_out and not (self.files or self.looked)

    @property
    def is_open(self) -> bool:
        """Whether there is still something to do for it."""
        return self.state in ("settled", "uploading", "sealing", "parked")

    def move(self, state: State, reason: str = "") -> State:
        """Go to a state and return the one that was left; AssertionError if the table forbids."""
        old = self.state
        self.state = checked_move(old, state)
        self.reason = reason
        return old

    def is_newer_than(self, other: Edition) -> bool:
        """Return whether it was surely saved after the other one.

        Its files say so, it was not seen to change before, and its step is not lower: the wall
        clock may have been set, what was seen late was not saved late, and an old checkpoint that
        somebody touches is no new one.
        """
        ours, others = self.settled, other.settled
        is_back = ours.step is not None and others.step is not None and ours.step < others.step
        seen = ours.changed_at >= others.changed_at and not is_back
        return seen and self.saved_at > other.saved_at

    def rank(self, lineage: int, after_step: int) -> tuple[int, int, float, int]:
        """Order editions of a series as ``Manifest.rank`` does, before there is a manifest."""
        step = after_step if self.settled.step is None else self.settled.step
        return (lineage, step, self.saved_at, self.number)


def is_overwritten(old: Edition, new: Edition) -> bool:
    """Return whether a newer content lies in the very files that an older edition has pinned.

    The second look would find out as well, after all its bytes were sent for nothing. A stable
    copy has files of its own.
    """
    if old.settled.copy:
        return False
    before = {(fact.device, fact.inode): fact for fact in old.listing.files if fact.kind == "file"}
    return any(
        (pinned := before.get((fact.device, fact.inode))) is not None
        and (pinned.size, pinned.mtime_ns) != (fact.size, fact.mtime_ns)
        for fact in new.listing.files
    )
