"""What the eyes tell the rest of the mind: checkpoints that are whole, and what lies beside them.

The eyes (``eyes``, ``layouts``, ``settle``) turn events and scans into these; the editions half of
the brain turns these into uploads. Neither knows how the other works.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from ckptsyncd.core.facts import FileFact, Listing


@dataclass(frozen=True, slots=True)
class Settled:
    """A checkpoint is whole, as far as anybody outside the trainer can know; ``evidence`` says how.

    ``found``: it lay there already when the daemon started, and nobody was seen writing it.
    ``copy``: it is rewritten faster than it uploads; pin it by a stable copy.
    ``stale``: members older than this save, uploaded with it all the same. ``changed_at``: when it
    was last seen to change (boot seconds), 0 where that is not known.
    """

    checkpoint: str
    series: str
    step: int | None
    layout: str
    evidence: str
    listing: Listing
    found: bool = False
    copy: bool = False
    stale: tuple[str, ...] = ()
    changed_at: float = field(default=0.0, compare=False)
    #: Of a share: the files that an index in it names; those of them that another machine has to
    #: have; and the files with data that are here and that no index here names.
    named: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    loose: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PointerSeen:
    """A framework's pointer (``latest``, ``last.ckpt`` as a link) is new or changed."""

    path: str
    series: str
    fact: FileFact


@dataclass(frozen=True, slots=True)
class CompanionSeen:
    """A file that belongs to no checkpoint is new or changed, and has been quiet for a while."""

    path: str
    fact: FileFact


@dataclass(frozen=True, slots=True)
class Removed:
    """The trainer removed (or is removing) a checkpoint: nothing of this name is whole any more."""

    checkpoint: str


Sighting = Settled | PointerSeen | CompanionSeen | Removed


@dataclass(frozen=True, slots=True)
class UnitView:
    """A checkpoint on disk that is not whole yet, for status.

    ``state`` is ``writing`` or ``parked``; ``reason`` says what is waited for, in plain words.
    ``until`` is when it may settle by the mere passing of time, ``None`` where it needs more.
    """

    checkpoint: str
    series: str
    step: int | None
    layout: str
    state: Literal["writing", "parked"]
    reason: str
    bytes: int
    files: int
    since: float
    until: float | None = None
