"""Which daemon a command means, and what is known of one that is dead."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from ckptsyncd.client import Client, Json
from ckptsyncd.core.words import printable
from ckptsyncd.errors import DaemonUnreachable, UsageError
from ckptsyncd.settings import found_sockets, load_places


@dataclass(frozen=True, slots=True)
class Meant:
    """Where the daemon that is meant would be; empty where nobody said and none is found."""

    socket: str
    state_dir: str


def meant(socket: str | None, config: str | None) -> Meant:
    """Return the daemon that flags, variables or the config file name, else the only running one.

    Raises UsageError, listing them, where several run and none was named.
    """
    settings = load_places({"socket": socket}, os.environ, config)
    if settings.socket:
        return Meant(settings.socket, "" if socket else settings.state_dir)
    running = _running()
    if len(running) > 1:
        listed = "; ".join(f"{path} ({printable(root)})" for path, root in running)
        msg = f"{len(running)} daemons run here: {listed}"
        raise UsageError(msg, hint="name one with --socket")
    return Meant(str(running[0][0]) if running else "", settings.state_dir)


def client(socket: str | None, config: str | None) -> Client:
    """Return a client of the daemon that is meant; DaemonUnreachable where none runs."""
    return _client(meant(socket, config))


def asked(daemon: Meant) -> Json:
    """Return the status of the daemon that is meant; DaemonUnreachable where it does not answer."""
    return _client(daemon).status()


def _client(daemon: Meant) -> Client:
    if daemon.socket:
        return Client(Path(daemon.socket))
    msg = "no daemon runs here"
    raise DaemonUnreachable(msg)


def absolute(path: str) -> str:
    """Return a path as the daemon understands it: absolute where it exists as seen from here.

    Anything else is left to the daemon, which takes it as relative to its watch root.
    """
    return str(Path(path).absolute()) if os.path.lexists(path) else path


def _running() -> list[tuple[Path, str]]:
    """Return the sockets that are answered, each with its daemon's watch root."""
    found = []
    for path in found_sockets(os.environ):
        status = _status(path)
        if status is not None:
            daemon = status.get("daemon")
            root = daemon.get("watch_root") if isinstance(daemon, dict) else ""
            found.append((path, str(root)))
    return found


def _status(path: Path) -> Json | None:
    try:
        return Client(path).status()
    except DaemonUnreachable:
        return None
