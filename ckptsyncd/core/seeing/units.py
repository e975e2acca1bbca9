"""A checkpoint on disk as the eyes remember it: its members, when each last changed, what was seen.

Order among changes is told by a count of what was heard (``seq``): a clock would call two changes
that were heard together simultaneous. A change that no event told has only its ctime.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ckptsyncd.core.facts import FileFact, FileLook, Listing
from ckptsyncd.core.seeing.layouts.base import Layout, fits, step_of
from ckptsyncd.core.seeing.tree import Scope, parent, root_of
from ckptsyncd.core.sightings import Settled

#: What a directory is that arrived whole or that a user named, whatever is in it.
ANYTHING = Layout(name="directory", read_from="nothing: any directory")
#: An event can come this much behind the look that already saw its effect (guessed).
LATE_EVENT_SECONDS = 1.0
#: A first save visits a file twice (created, closed), whatever others do meanwhile; events on it
#: alone and within this time are one visit. From so many visits on it is being rewritten (guessed).
VISIT_SECONDS = 0.3
MANY_VISITS = 4
#: So many temporary names of one unit are watched, the newest ones (guessed).
MOST_WORKS = 64


def relative(name: str, path: str) -> str:
    """Return a member's path below its unit's directory (of a file or a group: the file's name)."""
    return path[_start(name, path) :]


def _start(name: str, path: str) -> int:
    if name == ".":
        return 0
    return len(name) + 1 if path.startswith(name + "/") else path.rfind("/") + 1


@dataclass(slots=True)
class Member:
    """One file of a checkpoint.

    ``touched``: count of its last event. ``event``: the same for the event that brought the content
    that is there now, 0 where a scan found it. ``seen``: count at which that content was first
    seen; ``changed_at``, ``seen_at``: when it came, when it was seen (boot seconds). ``known``:
    count at which ``fact`` was asked for.
    """

    path: str
    #: Where in it its path below the unit begins; a copy of that would be kept for every file.
    start: int
    fact: FileFact | None = None
    known: int = -1
    look: FileLook | None = None
    touched: int = 0
    touched_at: float = 0.0
    event: int = 0
    seen: int = 0
    ctime_ns: int = 0
    changed_at: float = 0.0
    seen_at: float = 0.0
    visits: int = 0
    has_rest: bool = False
    is_rewritten: bool = False

    @property
    def rel(self) -> str:
        """Its path below its unit's directory."""
        return self.path[self.start :]

    def move(self, name: str) -> None:
        """Make it a member of the unit of this name."""
        self.start = _start(name, self.path)

    def touch(self, seq: int, now: float) -> bool:
        """Note an event on it; return whether it is visited too often for a first save."""
        is_next = seq == self.touched + 1 and now - self.touched_at < VISIT_SECONDS
        self.visits += not is_next
        self.touched, self.touched_at = seq, now
        if self.fact is None or now - self.changed_at < LATE_EVENT_SECONDS:
            self.event, self.seen, self.changed_at = seq, seq, now
        return self.visits >= MANY_VISITS

    def learn(self, fact: FileFact, asked: int, now: float) -> bool:
        """Note what it is; return whether it changed without an event that told it."""
        is_silent = False
        if fact != self.fact:
            is_silent = self.touched == 0 or self.touched <= self.known
            self.event = 0 if is_silent else self.touched
            self.seen = asked if is_silent else self.touched
            self.ctime_ns = fact.ctime_ns
            self.is_rewritten |= self.has_rest
            self.has_rest = False
            self.changed_at = now if is_silent else self.touched_at
            self.seen_at = now
        if fact != self.fact or fact.mode != self.fact.mode:
            # One that says the same would be kept beside it: in the look, and in what settled.
            self.fact = fact
        self.known = max(self.known, asked)
        return is_silent

    def examine(self, look: FileLook) -> None:
        """Note what a close look found."""
        self.look = look
        self.fact = look.fact if look.fact == self.fact else self.fact
        self.has_rest |= look.writer == "none"

    @property
    def needs_look(self) -> bool:
        """Whether nobody looked closely at the content that is there now."""
        if self.fact is None:
            return True
        if self.fact.kind != "file":
            return False
        look = self.look
        if look is None or look.fact != self.fact or self.touched > self.known:
            return True
        return look.writer != "none" or bool(look.fault)


@dataclass(slots=True)
class Unit:
    """One checkpoint's name, with the content that is there now."""

    name: str
    scope: Scope
    layout: Layout
    met: set[tuple[int, int]] = field(default_factory=set)
    members: dict[str, Member] = field(default_factory=dict)
    #: Its directories as the last look found them.
    folders: tuple[FileFact, ...] = ()
    #: Count of the last thing that was heard of it, and of the last member's removal.
    stirred: int = 0
    removed: int = 0
    #: Count of the last event on a temporary name inside it, and those names with what they are.
    worked: int = 0
    works: dict[str, FileLook | None] = field(default_factory=dict)
    #: Boot seconds: of the last change, of the first one that is not safe, of the last look.
    changed_at: float = 0.0
    unsafe_since: float | None = None
    looked_at: float = float("-inf")
    #: Count and time of the directory's or file's own arrival by rename, 0 where it did not.
    arrived: int = 0
    arrived_at: float = 0.0
    #: It may have come from another name in the tree, if that one's inode was this.
    doubt: int = 0
    #: Something in it was visited more often than by a first save, since it last settled.
    has_returned: bool = False
    #: Count of the first event after its content was last handled; 0: nothing happened since.
    edition: int = 0
    is_found: bool = False
    is_explicit: bool = False
    unveiled: int = 0
    #: What the rest of the mind was told last, and what it said is safe.
    settled: Listing | None = None
    handled: Listing | None = None
    told: Settled | None = None
    voids: int = 0
    first_void_at: float | None = None
    #: A look is under way since count ``asked``; the last one that came back was ``last_asked``.
    asked: int | None = None
    closely: frozenset[str] = frozenset()
    asked_at: float = 0.0
    last_asked: int = -1
    state: str = "writing"
    reason: str = "just seen"
    until: float | None = None
    held_looks: int = 0
    #: Kept so that status need not count anew what did not change.
    weight: int | None = None
    numbered: tuple[Layout, int | None] | None = None
    refusals: int = 0
    is_said_removed: bool = False

    @property
    def series(self) -> str:
        """The parent of its name."""
        return "." if self.name == "." else parent(self.name) or "."

    @property
    def roots(self) -> tuple[str, ...]:
        """The paths that a look lists anew."""
        if self.scope == "tree":
            return (root_of(self.name),)
        return tuple(sorted(self.members))

    def member(self, path: str) -> Member:
        """Return a member, a new one if it was not known."""
        found = self.members.get(path)
        if found is None:
            found = self.members[path] = Member(path, _start(self.name, path))
        return found

    @property
    def step(self) -> int | None:
        """The training step that its name tells."""
        if self.numbered is None or self.numbered[0] is not self.layout:
            self.numbered = (self.layout, step_of(self.name, self.layout.step))
        return self.numbered[1]

    @property
    def bytes(self) -> int:
        """How many bytes its files hold, as far as they were seen."""
        if self.weight is None:
            facts = (member.fact for member in self.members.values())
            self.weight = sum(f.size for f in facts if f is not None and f.kind == "file")
        return self.weight

    def stir(self, seq: int, now: float) -> None:
        """Note that something happened in it."""
        self.stirred = max(self.stirred, seq)
        self.changed_at = now
        if self.unsafe_since is None:
            self.unsafe_since = now
        if self.edition == 0 and (self.settled is not None or self.handled is not None):
            self.edition = seq

    def work(self, path: str) -> None:
        """Note a temporary name inside it: somebody may be writing there."""
        if path not in self.works and len(self.works) >= MOST_WORKS:
            self.works.pop(next(iter(self.works)))
        self.works.setdefault(path, None)

    def drop(self, path: str, seq: int) -> bool:
        """Note that a member is gone; return whether it was one."""
        if self.members.pop(path, None) is None:
            return False
        self.removed, self.weight = max(self.removed, seq), None
        if not self.members:
            # What comes under this name next may be another framework's.
            self.layout = ANYTHING
            self.met.clear()
        return True

    def unseen(self) -> frozenset[str]:
        """Return the paths that are to be looked at closely."""
        members = (path for path, member in self.members.items() if member.needs_look)
        return frozenset((*members, *self.works))

    def listing(self) -> Listing:
        """Return the facts of all members, sorted by path, and of the directories."""
        facts = [m.fact for _, m in sorted(self.members.items()) if m.fact is not None]
        return Listing(tuple(facts), self.folders)

    def choose(self, layouts: tuple[Layout, ...], rel: str) -> None:
        """Let a member's name tell the layout: the first that fits all it knows."""
        base = self.name.rpartition("/")[2]
        is_group = self.scope == "group"
        for which, layout in enumerate(layouts):
            if layout is self.layout:
                return
            # A single file's member is named like the unit; a directory may be named like a file.
            named = fits(layout.file, base) or (rel != base and fits(layout.folder, base))
            is_named = fits(layout.group, rel) if is_group else named
            by_signs = not (layout.folder or layout.file or layout.group or is_group)
            if not (is_named or (by_signs and layout.signs)):
                continue
            self.met |= {(which, i) for i, text in enumerate(layout.signs) if fits(text, rel)}
            if sum(kind == which for kind, _ in self.met) == len(layout.signs):
                self.layout = layout
                return
