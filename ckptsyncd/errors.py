"""Every error of the program on one page, each with the exit code and the hint that a user sees.

::

    CkptsyncdError                 1  unexpected
    +-- UsageError                 2  flags, URLs, the config file
    |   +-- AlreadyRunning         2  another daemon holds the watch root or the state directory
    +-- NoCheckpoint               3  nothing was ever committed: a fresh start is right
    +-- NothingVerifies            4  checkpoints exist and none of them is whole: stop
    +-- StoreError                 5  the store answered with an error or not at all
    |   +-- Again                  5  may work later (time-out, 5xx, throttling, conflict)
    |   +-- Never                  5  will not work however often it is tried
    |   +-- Gone                   5  the begun upload is not known (any more)
    |   +-- Missing                5  no object has this key
    |   +-- Lost                   5  a condition (if absent, if matches) was not met
    |   +-- Refused                5  credentials or the store's policy say no
    +-- DaemonUnreachable          5  nobody answers on the socket
    +-- Postponed                  1  something more urgent has come
    +-- Unsynced                   6  finished checkpoints are not in the store
    +-- PolicyRefused              7  our own rules say no
        +-- PathRefused            7  a name would leave its directory
        +-- Fenced                 7  a newer daemon took this run over

A store's adapter classifies what its SDK raised into the six kinds below ``StoreError``; the brain
decides what to do. Exit codes are part of the command line's contract (see ``docs/exit-codes.md``).
"""

from __future__ import annotations


class CkptsyncdError(Exception):
    """Something that a user is told in one line, with what to do next."""

    exit_code = 1
    hint = "please report this with the log around it"

    def __init__(self, text: str, *, hint: str | None = None) -> None:
        """Keep the text, and a hint that fits better than the class's own."""
        super().__init__(text)
        if hint is not None:
            self.hint = hint


class UsageError(CkptsyncdError):
    """A flag, a URL, an environment variable or the config file is wrong."""

    exit_code = 2
    hint = "see 'ckptsyncd --help'"


class AlreadyRunning(UsageError):
    """Another daemon already works on this watch root or with this state directory."""

    hint = "stop the other one, or ask it with 'ckptsyncd status'"


class NoCheckpoint(CkptsyncdError):
    """The store holds no checkpoint under this URL: a fresh start is right."""

    exit_code = 3
    hint = "check the URL if you expected one; otherwise start from scratch"


class NothingVerifies(CkptsyncdError):
    """Checkpoints exist, and none of them is whole: starting afresh would waste them."""

    exit_code = 4
    hint = "do not start from scratch; look with 'ckptsyncd verify URL' first"


class StoreError(CkptsyncdError):
    """The store answered with an error, or not at all.

    ``ambiguous`` is true where the request may have taken effect although no good answer came,
    ``throttled`` where the store wants fewer requests.
    """

    exit_code = 5
    hint = "try 'ckptsyncd check'"
    kind = "again"

    def __init__(
        self,
        text: str,
        *,
        hint: str | None = None,
        wait_seconds: float | None = None,
        ambiguous: bool = False,
        throttled: bool = False,
    ) -> None:
        """Keep what the store said, how long it asked us to wait, and whether it may have acted."""
        super().__init__(text, hint=hint)
        self.wait_seconds = wait_seconds
        self.ambiguous = ambiguous
        self.throttled = throttled


class Again(StoreError):
    """May work later: a time-out, a 5xx, throttling, a conflict of writers."""

    kind = "again"
    hint = "it is tried again by itself; see 'ckptsyncd status'"


class Never(StoreError):
    """Will not work however often it is tried: a key too long, a size over the limit."""

    kind = "never"
    hint = "change what the message names; it is not tried again by itself"


class Gone(StoreError):
    """The begun upload is not known to the store (any more)."""

    kind = "gone"
    hint = "the file is begun anew by itself"


class Missing(StoreError):
    """No object has this key (or no bucket has this name)."""

    kind = "missing"
    hint = "check the URL"


class Lost(StoreError):
    """A condition on a write was not met: somebody else wrote first."""

    kind = "lost"
    hint = "the winner is read and the matter decided by itself"


class Refused(StoreError):
    """The store does not accept our credentials, or its policy forbids the request."""

    kind = "refused"
    hint = "check the credentials and the bucket's policy, then run 'ckptsyncd check'"


class DaemonUnreachable(CkptsyncdError):
    """No daemon answers on the socket."""

    exit_code = 5
    hint = "start one with 'ckptsyncd run', or name its socket with --socket"


class Postponed(CkptsyncdError):
    """Work that can wait was given up for now, because something more urgent has come."""

    hint = "what is left is done another time"


class Unsynced(CkptsyncdError):
    """Finished checkpoints are on this disk and not in the store."""

    exit_code = 6
    hint = "run 'ckptsyncd sync DIR URL' before this disk goes away"


class PolicyRefused(CkptsyncdError):
    """Our own rules say no."""

    exit_code = 7
    hint = "the rule and how to change it are named in the message"


class PathRefused(PolicyRefused):
    """A name in the store or on disk would leave its directory."""

    hint = "the store was not written by ckptsyncd, or somebody tampered with it"


class Fenced(PolicyRefused):
    """A newer daemon has taken this run over."""

    hint = "if this machine is the right one, start again with --take-over"
