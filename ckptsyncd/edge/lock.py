"""One daemon for a watch root, and one for a state directory: locks that end with the process.

The lock is ``flock`` on the directory itself, so it holds across containers that share the volume
and needs no file that could be left over. Who holds it is written beside it, for the refusal only:
in the state directory's lock file, and below ``.ckptsyncd`` in the watch root, because a second
daemon may have another state directory, another container and another user.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import threading
from collections.abc import Iterator
from pathlib import Path

from ckptsyncd.edge.holder import Holder
from ckptsyncd.errors import AlreadyRunning, UsageError

_OURS = ".ckptsyncd"
_HOLDER = "daemon.json"
_LOCK = "lock"
_MAX_HOLDER_BYTES = 65536
#: Against those who only ask, who are never many (guessed).
_TRIES = 1000
_MOMENT_SECONDS = 0.002
#: So long is waited for a disk at the end: a deadline may be a second away (guessed).
_RELEASE_SECONDS = 0.5
#: What file systems say that cannot lock a directory (NFS: it wants it open for writing).
_NO_LOCKS = {errno.EBADF, errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL}
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class Locks:
    """The locks of one daemon. They end with ``release`` or with the process, however it dies.

    ``weakness`` is empty, or says why the watch root could not be locked at all. ``is_shared``: it
    is not to be locked.
    """

    def __init__(self, holder: Holder) -> None:
        """Hold nothing yet."""
        self._holder = holder
        self._state = -1
        self._root = -1
        self._root_lock = -1
        self.weakness = ""
        self.is_shared = False

    def take_state(self) -> None:
        """Lock the state directory (made with mode 0700); AlreadyRunning names who has it.

        Raises UsageError where the directory cannot be used.
        """
        path = Path(self._holder.state_dir)
        self._state = _opened(path)
        if not _locked(self._state):
            other = Holder.decode(os.pread(self._state, _MAX_HOLDER_BYTES, 0))
            self.release()
            refusal = _refusal("the state directory", str(path), other)
            raise refusal
        with contextlib.suppress(OSError):  # a full disk: the lock holds without our name in it
            os.ftruncate(self._state, 0)
            os.pwrite(self._state, self._holder.encode(), 0)

    def take_root(self) -> bool:
        """Lock the watch root and return whether it is there; AlreadyRunning names who has it.

        To be called again whenever the watch root appears: one that was made anew is locked anew.
        """
        try:
            number = os.open(self._holder.watch_root, _DIRECTORY)
        except FileNotFoundError:
            return False
        if self.is_shared:
            os.close(number)
            return True
        if self._root >= 0 and os.path.samestat(os.fstat(number), os.fstat(self._root)):
            os.close(number)
            return True
        self._leave_root()
        self._root = number
        self._lock_root()
        _write_holder(self._root, self._holder)
        return True

    def release(self) -> None:
        """Let go of everything that is held; what a hung disk holds up is left to the system."""
        leaves = (self._leave_root, self._leave_state)
        leaving = [threading.Thread(target=leave, name="locks", daemon=True) for leave in leaves]
        for thread in leaving:
            thread.start()
        for thread in leaving:
            thread.join(_RELEASE_SECONDS)

    def _leave_state(self) -> None:
        number, self._state = self._state, -1
        if number >= 0:
            os.close(number)

    def _lock_root(self) -> None:
        try:
            free = _locked(self._root)
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
            free = self._lock_file_in_root()
        if not free:
            other = _read_holder(self._root)
            self._close_root()
            refusal = _refusal("the watch root", self._holder.watch_root, other)
            raise refusal

    def _lock_file_in_root(self) -> bool:
        """Lock a file in the watch root, where its directory cannot be locked."""
        try:
            with _ours(self._root, make=True) as ours:
                flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
                self._root_lock = os.open(_LOCK, flags, 0o644, dir_fd=ours)
            return _locked(self._root_lock)
        except OSError as error:
            self.weakness = f"the watch root cannot be locked against a second daemon: {error}"
            return True

    def _leave_root(self) -> None:
        if self._root < 0:
            return
        with contextlib.suppress(OSError):  # it may be gone, or read-only: nothing to tidy up then
            with _ours(self._root, make=False) as ours:
                os.unlink(_HOLDER, dir_fd=ours)
            os.rmdir(_OURS, dir_fd=self._root)
        self._close_root()

    def _close_root(self) -> None:
        for number in (self._root_lock, self._root):
            if number >= 0:
                os.close(number)
        self._root = self._root_lock = -1


def lock_root(holder: Holder, *, is_shared: bool = False) -> Locks:
    """Lock the state directory and the watch root, if there is one yet; raises AlreadyRunning.

    A root that several daemons share (``is_shared``) is not locked: a lease in the store tells them
    apart.
    """
    locks = Locks(holder)
    locks.is_shared = is_shared
    locks.take_state()
    try:
        locks.take_root()
    except BaseException:
        locks.release()
        raise
    return locks


def state_holder(state_dir: Path) -> tuple[Holder | None, bool]:
    """Return the last daemon that used a state directory, and whether it is still alive.

    ``None`` where there never was one. Reads only; raises OSError where that is not allowed.
    """
    try:
        number = os.open(state_dir / _LOCK, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None, False
    try:
        alive = not _flocked(number, fcntl.LOCK_SH)
        return Holder.decode(os.pread(number, _MAX_HOLDER_BYTES, 0)), alive
    finally:
        os.close(number)


def _opened(state_dir: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.open(state_dir / _LOCK, flags, 0o600)
    except OSError as error:
        msg = f"cannot use the state directory {state_dir}: {error.strerror}"
        raise UsageError(msg, hint="make it writable, or name another one: --state-dir") from error


def _locked(number: int) -> bool:
    """Take the lock and return whether we have it; does not wait for a holder.

    Who only asks whether there is a holder (``state_holder``) has a shared lock for some
    microseconds, and must not keep a daemon from starting.
    """
    moment = threading.Event()
    for _ in range(_TRIES):
        if _flocked(number, fcntl.LOCK_EX):
            return True
        if not _flocked(number, fcntl.LOCK_SH):
            return False
        fcntl.flock(number, fcntl.LOCK_UN)
        # On a busy machine whoever asks may lose the processor with its lock in hand.
        moment.wait(_MOMENT_SECONDS)
    return False


def _flocked(number: int, how: int) -> bool:
    try:
        fcntl.flock(number, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _refusal(what: str, path: str, other: Holder) -> AlreadyRunning:
    ask = f"'ckptsyncd status --socket {other.socket}'" if other.socket else "'ckptsyncd status'"
    return AlreadyRunning(
        f"{what} {path} belongs to another daemon: {other.words()}",
        hint=f"stop the other one, or ask it: {ask}",
    )


@contextlib.contextmanager
def _ours(root: int, *, make: bool) -> Iterator[int]:
    """Open our directory in the watch root; never through a symlink that somebody put there."""
    if make:
        with contextlib.suppress(FileExistsError):
            os.mkdir(_OURS, 0o755, dir_fd=root)
    number = os.open(_OURS, _DIRECTORY | os.O_NOFOLLOW, dir_fd=root)
    try:
        yield number
    finally:
        os.close(number)


def _write_holder(root: int, holder: Holder) -> None:
    """Leave our name for a second daemon, as a whole; a read-only watch root does without."""
    draft = f"{_HOLDER}.{holder.pid}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with contextlib.suppress(OSError), _ours(root, make=True) as ours:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(draft, dir_fd=ours)
        with os.fdopen(os.open(draft, flags, 0o644, dir_fd=ours), "wb") as file:
            file.write(holder.encode())
        os.rename(draft, _HOLDER, src_dir_fd=ours, dst_dir_fd=ours)


def _read_holder(root: int) -> Holder:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        with _ours(root, make=False) as ours:
            number = os.open(_HOLDER, flags, dir_fd=ours)
        with os.fdopen(number, "rb") as file:
            return Holder.decode(file.read(_MAX_HOLDER_BYTES))
    except OSError:
        return Holder()
