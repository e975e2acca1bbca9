"""What is judged, how patiently, and the verdicts: frozen values."""

from __future__ import annotations

from dataclasses import dataclass

from ckptsyncd.core.facts import FileFact, FileLook
from ckptsyncd.core.rules.policy import Policy
from ckptsyncd.core.seeing.layouts.base import Layout, Marker
from ckptsyncd.core.seeing.marks import Written, marks_here
from ckptsyncd.core.seeing.shapes import Shape

#: A matching shape settles after this much quiet (guessed: above the 0.96 s of a throttled copy).
SHAPE_SECONDS = 1.0
#: While draining (guessed).
HASTY_QUIET_SECONDS = 1.0
HASTY_RANKS_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Patience:
    """How long each kind of evidence has to hold, in seconds."""

    quiet: float
    ranks: float
    grace: float
    shape: float
    differs: float

    @classmethod
    def under(cls, policy: Policy, *, hasty: bool) -> Patience:
        """Return the user's patience, or what is left of it while draining."""
        quiet, ranks = policy.quiet_seconds, policy.ranks_quiet_seconds
        differs = policy.shape_wait_seconds
        if hasty:
            quiet, ranks = min(quiet, HASTY_QUIET_SECONDS), min(ranks, HASTY_RANKS_SECONDS)
            differs = min(differs, HASTY_RANKS_SECONDS)
        return cls(quiet, ranks, policy.grace_seconds, min(SHAPE_SECONDS, quiet), differs)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberView(Written):
    """One file as the last look found it; when its content came, and when it was first seen."""

    fact: FileFact
    look: FileLook | None = None
    changed_at: float = 0.0
    seen_at: float = 0.0


@dataclass(frozen=True, slots=True)
class View:
    """A checkpoint as a look found it at ``looked_at`` (boot seconds).

    ``changed_at``: when it was last seen to change. ``model``: the shape of its siblings.
    ``trusted``: the evidence on which this very content settled before, also in an earlier life.
    ``is_grown``: all that was whole is there unchanged, and files were added.
    ``works``: what lies in it under temporary names. ``is_busy``: one of them was written after
    everything else.
    ``is_complete_again``: it was whole before, and everything in it was written anew.
    ``is_rewritten``: it was seen at rest and written again, without ever settling.
    ``is_share``: other machines have the rest of it, perhaps its marker and what an index names.
    """

    name: str
    layout: Layout
    members: tuple[MemberView, ...]
    looked_at: float
    changed_at: float
    is_single: bool = False
    is_arrived: bool = False
    is_explicit: bool = False
    trusted: str = ""
    is_frozen: bool = False
    works: tuple[FileLook, ...] = ()
    is_busy: bool = False
    is_unveiled: bool = False
    veil: str = ""
    model: Shape | None = None
    is_grown: bool = False
    is_complete_again: bool = False
    is_rewritten: bool = False
    is_overdue: bool = False
    is_torn: bool = False
    is_share: bool = False

    @property
    def markers(self) -> tuple[Marker, ...]:
        """The marks that are to be in it: of a share those whose file is there at all."""
        return marks_here(self.layout, self.members) if self.is_share else self.layout.markers

    @property
    def stale(self) -> tuple[str, ...]:
        """The paths of members that are older than this save."""
        return tuple(m.fact.path for m in self.members if m.is_stale)


@dataclass(frozen=True, slots=True)
class Whole:
    """It is whole, and this is why."""

    evidence: str
    is_copy: bool = False


@dataclass(frozen=True, slots=True)
class Waits:
    """It may be whole at ``until`` by the mere passing of time; ``None``: it needs more."""

    until: float | None
    because: str


@dataclass(frozen=True, slots=True)
class Held:
    """Somebody holds a file of it open for writing."""

    because: str


@dataclass(frozen=True, slots=True)
class Parked:
    """It is not whole, and nothing suggests that it will be."""

    because: str
    is_broken: bool = False


Verdict = Whole | Waits | Held | Parked
