"""Where socket and state lie when nobody says so, and where they are looked for.

The service manager's directories come first, then those of the XDG base directory specification,
then a private one in ``/tmp``. Every watch root with its destination has its own names in them.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from ckptsyncd.errors import UsageError

#: The kernel takes 108 bytes for the path of a unix socket, the last of them zero.
MAX_SOCKET_BYTES = 107
_NAME = "ckptsyncd"
#: The ledger inside a state directory.
LEDGER = "ledger.sqlite"
_ELSEWHERE = "name another place with --state-dir and --socket"
_STICKY = stat.S_ISVTX | stat.S_IWOTH


def place_id(watch_root: str, url: str) -> str:
    """Name the pair of a watch root and a destination in 12 characters."""
    text = f"{os.path.realpath(watch_root)}\n{url.rstrip('/')}"
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:12]


def default_socket(watch_root: str, url: str, environ: Mapping[str, str]) -> Path:
    """Return where this pair's socket lies unless a user says otherwise."""
    return runtime_bases(environ)[0] / f"{place_id(watch_root, url)}.sock"


def default_state_dir(watch_root: str, url: str, environ: Mapping[str, str]) -> Path:
    """Return where this pair's ledger and lock lie unless a user says otherwise."""
    name = Path(watch_root).name[:40] or "root"
    return state_bases(environ)[0] / f"{name}-{place_id(watch_root, url)}"


def runtime_bases(environ: Mapping[str, str]) -> list[Path]:
    """Return the directories that may hold sockets, best first."""
    bases = [Path(part) for part in environ.get("RUNTIME_DIRECTORY", "").split(":") if part]
    session = environ.get("XDG_RUNTIME_DIR", "")
    if session and os.access(session, os.W_OK | os.X_OK):
        bases.append(Path(session) / _NAME)
    return [*bases, _private(os.geteuid())]


def state_bases(environ: Mapping[str, str]) -> list[Path]:
    """Return the directories that may hold state directories, best first."""
    bases = [Path(part) for part in environ.get("STATE_DIRECTORY", "").split(":") if part]
    if environ.get("XDG_STATE_HOME", "").startswith("/"):
        bases.append(Path(environ["XDG_STATE_HOME"]) / _NAME)
    home = environ.get("HOME", "")
    if home.startswith("/") and os.access(nearest(Path(home)), os.W_OK | os.X_OK):
        bases.append(Path(home) / ".local" / "state" / _NAME)
    return [*bases, _private(os.geteuid()) / "state"]


def found_sockets(environ: Mapping[str, str]) -> list[Path]:
    """Return every socket that a daemon may listen on, for this user or, for root, for all."""
    bases = [*runtime_bases(environ), Path("/run") / _NAME]
    if os.geteuid() == 0:
        bases += Path("/run/user").glob(f"*/{_NAME}")
        bases += Path("/tmp").glob(f"{_NAME}-*")  # noqa: S108  (only looked at)
    return _unique(path for base in bases for path in _below(base) if stat.S_ISSOCK(mode_of(path)))


def found_state_dirs(environ: Mapping[str, str]) -> list[Path]:
    """Return every state directory of this user's daemons, dead or alive."""
    bases = [*state_bases(environ), Path("/var/lib") / _NAME]
    return _unique(path.parent for base in bases for path in _below(base) if path.name == LEDGER)


def make_private(path: Path) -> None:
    """Make a directory, with all above it that are missing, for its owner only.

    Raises UsageError where a name in a directory that everybody may write into (``/tmp``) belongs
    to somebody else or is a symlink: whoever put it there could read and replace what we write.
    """
    for step in reversed([path, *path.parents]):
        _make(step)


def nearest(path: Path) -> Path:
    """Return the path, or the nearest directory above it that exists."""
    return next(step for step in (path, *path.parents) if mode_of(step) or step == step.parent)


def mode_of(path: Path) -> int:
    """Return what a path is, 0 where it is nothing or we may not know (pathlib would raise)."""
    try:
        return path.stat().st_mode
    except (OSError, ValueError):
        return 0


def is_directory(path: Path) -> bool:
    """Return whether a path is a directory, as far as we may know."""
    return stat.S_ISDIR(mode_of(path))


def _make(step: Path) -> None:
    try:
        step.mkdir(mode=0o700)
    except OSError as error:
        if not is_directory(step):
            msg = f"cannot make the directory {step}: {error.strerror}"
            raise UsageError(msg, hint=_ELSEWHERE) from error
        _check_owner(step)


def _check_owner(step: Path) -> None:
    if step.parent.stat().st_mode & _STICKY != _STICKY:
        return
    fact = step.lstat()
    if stat.S_ISLNK(fact.st_mode) or fact.st_uid not in (0, os.geteuid()):
        msg = f"{step} belongs to another user (uid {fact.st_uid})"
        raise UsageError(msg, hint=_ELSEWHERE)


def _private(uid: int) -> Path:
    return Path("/tmp") / f"{_NAME}-{uid}"  # noqa: S108  (make_private checks whose it is)


def _below(base: Path) -> Iterator[Path]:
    """Yield what lies in a directory and in those inside it; what cannot be read is left out."""
    for path in _listed(base):
        yield path
        if is_directory(path):
            yield from _listed(path)


def _listed(directory: Path) -> list[Path]:
    try:
        return sorted(directory.iterdir())
    except OSError:
        return []


def _unique(paths: Iterator[Path]) -> list[Path]:
    return list(dict.fromkeys(paths))
