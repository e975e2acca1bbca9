"""The rules that a user may change, as plain numbers; ``settings`` fills them in and validates.

Durations are seconds on the boot clock. A number that nobody measured says that it was guessed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ckptsyncd.core.rules.retention import Retention

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Policy:
    """How patient, how eager and how careful the mind is."""

    #: Nothing open and nothing changed for this long: whole, where no better evidence exists.
    #: 5 s had no premature commit in 116 recorded runs, 3 s had one (see docs/layouts.md).
    quiet_seconds: float = 5.0
    #: The same for layouts that several ranks write without a barrier-backed marker.
    ranks_quiet_seconds: float = 30.0
    #: After a marker whose ranks still write without a barrier (HF rng_state files; 2 s seen).
    grace_seconds: float = 5.0
    #: A file of such a name (as in a shell) in a checkpoint, newer than all else in it, says that
    #: it is whole; empty: none does.
    done_file: str = ""
    #: No read lease before this long without events: a rewriting trainer is not held up.
    probe_seconds: float = 0.1
    #: The same after a rename, which also swallows the close that follows it (3.3 ms seen).
    rename_seconds: float = 0.02
    #: A name whose members differ from its siblings waits this much longer (guessed).
    shape_wait_seconds: float = 60.0
    #: Rewritten faster than it uploads: after so many torn uploads or so long, copy it aside.
    max_wait_saves: int = 2
    max_wait_seconds: float = 60.0
    #: Everything is looked at again this often, whatever the events said.
    sweep_seconds: float = 60.0
    #: A subtree without events is listed this often (guessed).
    poll_seconds: float = 2.0
    #: A companion is uploaded when it has been quiet this long, and at most this often (guessed).
    companion_seconds: float = 15.0
    companion_max_bytes: int = 64 * MIB
    #: Files up to this size go out as one object in one request (and are never resumed).
    whole_bytes: int = 16 * MIB
    #: Wanted size of a piece; grows where a store's piece count would not suffice.
    piece_bytes: int = 16 * MIB
    #: Orders to the store under way at most; nothing waits in a queue that cannot be reordered.
    hands: int = 4
    #: Bytes a second to the store at most; ``None`` is no limit. Lifted while draining.
    bandwidth: int | None = None
    #: Retry: exponential from the first to the last with full jitter; the last while draining.
    retry_first_seconds: float = 0.5
    retry_last_seconds: float = 60.0
    retry_drain_seconds: float = 5.0
    #: A refused or impossible edition is tried again this often (guessed).
    parked_seconds: float = 60.0
    #: latest.json is written at most this often except while draining (GCS: one write a second).
    latest_seconds: float = 2.0
    #: ``newest`` supersedes what has not begun; ``keep-all`` uploads every checkpoint.
    backlog: str = "newest"
    #: Stay this long after the last event before a SIGTERM ends the program.
    linger_seconds: float = 5.0
    #: The stop is over this long before the deadline (guessed: manifest and latest fit).
    stop_margin_seconds: float = 1.0
    #: On a notice the trainer is told, and so long is waited for its last checkpoint (guessed: a
    #: checkpoint of some GB on a local disk), never longer than the plan allows.
    tells_trainer: bool = False
    trainer_seconds: float = 30.0
    #: How long a notice probably comes before the end: what is at risk should fit into it.
    notice_seconds: float = 30.0
    #: What is kept in the store; where nothing is said, nothing is ever pruned.
    retention: Retention = field(default_factory=Retention)
    #: Data outlives its pruned checkpoint so long, and removals a second at most (guessed: a long
    #: restore fits into the hour, and nobody notices the requests).
    prune_grace: float = 3600.0
    prune_rate: int = 20
    #: From the end of one prune to the next at least (guessed: each reads every manifest).
    prune_interval: float = 600.0
    #: What writers left unfinished that are gone for a week is removed too.
    reap: bool = False
    #: Whether what is safe is still there is asked this often (guessed: one list); 0: never.
    recheck_seconds: float = 600.0
    #: Local copies of safe checkpoints go while all on the disk hold more than this.
    local_bytes: int | None = None
    #: There is a second destination.
    has_also: bool = False
    #: Companions are uploaded at all.
    companions: bool = True
    #: This machine's number among those that write one checkpoint, and how many they are; 0 where
    #: nobody counted them, and only an index tells which files there are.
    node: int = 0
    nodes: int = 1
    #: Orbax checkpoints get the mark that Orbax asks for in a bucket.
    orbax_stamp: bool = False
    #: Other daemons see the same watch root: the one that has the lease uploads.
    shared_root: bool = False
    #: So long the one that uploads may be silent before another takes over (guessed).
    lease_seconds: float = 60.0
    #: What two machines wrote under one name within this time is one save (guessed: far less than
    #: between two saves of a name, more than their disks and clocks differ by).
    save_window_seconds: float = 60.0
    #: The other machines' parts are waited for this long before it is said (guessed).
    incomplete_seconds: float = 300.0
    #: A step below the newest may become latest.
    allow_step_back: bool = False
    #: Take the run over although a newer daemon was seen.
    take_over: bool = False

    @property
    def is_joint(self) -> bool:
        """Whether several machines store one checkpoint, however many they are."""
        return self.nodes != 1
