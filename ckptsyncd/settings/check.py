"""Refusing settings that cannot work together: missing, nested, unwritable; one line and a hint."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from ckptsyncd.errors import UsageError
from ckptsyncd.settings.gather import Said
from ckptsyncd.settings.keeping import stretches
from ckptsyncd.settings.places import MAX_SOCKET_BYTES, is_directory, nearest
from ckptsyncd.settings.table import BY_NAME, Settings

SCHEMES = ("s3", "gs", "az", "file")


def check(settings: Settings, said: Mapping[str, Said]) -> None:
    """Raise UsageError for what cannot work: missing, nested or unwritable places, node numbers."""
    _check_dir(settings, _where(said, "dir"))
    _check_url(settings.url, _where(said, "url"))
    _check_also(settings, said)
    _check_nesting(settings, said)
    _check_telling(settings, said)
    _check_keeping(settings, _where(said, "keep_every"))
    _check_nodes(settings, said)
    if len(os.fsencode(settings.socket)) > MAX_SOCKET_BYTES:
        msg = f"{_where(said, 'socket')}: the socket's path is longer than {MAX_SOCKET_BYTES} bytes"
        raise UsageError(msg, hint="name a shorter one with --socket")


def _check_nodes(settings: Settings, said: Mapping[str, Said]) -> None:
    """Refuse a machine without a number, a number too high, and shares of a shared root."""
    node, nodes = settings.node, settings.nodes
    if 0 < nodes <= node:
        msg = f"{_where(said, 'node')}: node = {node}, but there are {nodes} nodes"
        raise UsageError(msg, hint=f"allowed: 0 to {nodes - 1}; or set --nodes")
    if nodes != 1 and settings.shared_root:
        msg = f"{_where(said, 'shared_root')}: who shares a root stores no shares of its own"
        raise UsageError(msg, hint="set shared_root, or node and nodes, not both")
    if nodes != 1 and "node" not in said:
        msg = f"{_where(said, 'nodes')}: nobody said which of {nodes or 'the'} nodes this is"
        hint = f"set --node from 0 to {nodes - 1}, or --sharded" if nodes else "set --node"
        raise UsageError(msg, hint=hint)


def directory_of(url: str) -> str:
    """Return the directory that a ``file://`` URL names, or nothing for any other."""
    parts = urlsplit(url)
    return unquote(parts.path) if parts.scheme == "file" else ""


def absolute(path: str) -> str:
    """Return a path from the root of the file system; its symlinks stay as they are."""
    # pathlib's own expansion raises where there is no home; then ``~`` is a name like any other.
    return str(Path(os.path.expanduser(path)).absolute())  # noqa: PTH111


def _where(said: Mapping[str, Said], name: str) -> str:
    return said[name].where if name in said else BY_NAME[name].flag


def _check_dir(settings: Settings, where: str) -> None:
    path = Path(settings.dir)
    if not settings.dir:
        msg = "DIR is missing: the directory the trainer writes checkpoints into"
        hint = "ckptsyncd run DIR URL, or CKPTSYNCD_DIR, or dir in the config file"
    elif is_directory(path) and os.access(path, os.R_OK | os.X_OK):
        return
    elif is_directory(path):
        msg, hint = (
            f"{where}: {path} is not readable",
            "run as the trainer's user, or change its mode",
        )
    elif os.path.lexists(path):
        msg, hint = f"{where}: {path} is not a directory", "name the directory, not a file in it"
    elif is_directory(path.parent):
        return
    else:
        msg = f"{where}: {path} does not exist, nor does the directory above it"
        hint = "the watch root may appear later; the directory above it must exist"
    raise UsageError(msg, hint=hint)


def _check_also(settings: Settings, said: Mapping[str, Said]) -> None:
    """Refuse a second destination that is none, or is the first."""
    if not settings.also:
        return
    where = _where(said, "also")
    _check_url(settings.also, where)
    if settings.also.rstrip("/") == settings.url.rstrip("/"):
        msg = f"{where}: the second destination is the first"
        raise UsageError(msg, hint="name another bucket or volume")
    place, root = directory_of(settings.also), os.path.realpath(settings.dir)
    if place and _is_below(os.path.realpath(place), root):
        msg = f"{where}: the second destination lies inside the watch root"
        raise UsageError(msg, hint="keep the two apart, best on different disks")


def _check_url(url: str, where: str) -> None:
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]*)://", url)
    hint = "such as s3://bucket/run, gs://bucket/run, az://account/container/run, file:///mnt/run"
    if not url:
        msg = "URL is missing: where checkpoints are to go"
    elif not scheme and url.startswith(("/", ".", "~")):
        msg = f"{where}: {url!r} is a path, not a URL"
        hint = f"a directory is written file://{absolute(url)}"
    elif not scheme or scheme[1] not in SCHEMES:
        msg = f"{where}: {url!r} does not begin with {', '.join(s + '://' for s in SCHEMES)}"
    elif "@" in urlsplit(url).netloc:
        msg = f"{where}: a URL with credentials in it would end up in logs"
        hint = "give credentials as the store's own tools take them (environment, profile)"
    elif scheme[1] == "file":
        _check_file_url(url, where)
        return
    elif not urlsplit(url).netloc:
        msg = f"{where}: {url!r} names no bucket"
    else:
        return
    raise UsageError(msg, hint=hint)


def _check_telling(settings: Settings, said: Mapping[str, Said]) -> None:
    """Refuse somebody to tell without a signal to tell it by, and a signal that there is not."""
    known = {one.name for one in signal.valid_signals() if isinstance(one, signal.Signals)}
    for name in ("tell_pid", "tell_pid_file", "tell_process"):
        if getattr(settings, name) and not settings.tell_signal:
            msg = f"{_where(said, name)}: a process is named, and no signal that it is to get"
            raise UsageError(msg, hint="name one with --tell-signal, such as SIGUSR1")
    if settings.tell_signal and settings.tell_signal not in known:
        msg = f"{_where(said, 'tell_signal')}: there is no signal {settings.tell_signal}"
        raise UsageError(msg, hint="such as SIGUSR1, SIGUSR2 or SIGTERM; see 'kill -l'")


def _check_keeping(settings: Settings, where: str) -> None:
    """Refuse two stretches of one kind."""
    try:
        stretches(settings.keep_every)
    except ValueError as error:
        msg = f"{where}: {error}"
        raise UsageError(msg, hint='such as keep_every = ["1000", "24h"]') from error


def _check_file_url(url: str, where: str) -> None:
    path = directory_of(url)
    base = nearest(Path(path))
    if urlsplit(url).netloc not in ("", "localhost") or not path.startswith("/"):
        msg = f"{where}: {url!r} is not of the form file:///path"
        hint = "three slashes: file:///mnt/volume/run"
    elif not is_directory(base):
        msg, hint = f"{where}: {base} is not a directory", "name a directory"
    elif not os.access(base, os.W_OK | os.X_OK):
        msg = f"{where}: {base} is not writable"
        hint = "mount it writable, or change its owner, or name another destination"
    else:
        return
    raise UsageError(msg, hint=hint)


def _check_nesting(settings: Settings, said: Mapping[str, Said]) -> None:
    """Refuse places inside the watch root: what we write there would be taken for checkpoints."""
    root = os.path.realpath(settings.dir)
    target = os.path.realpath(directory_of(settings.url) or "/dev/null")
    if _is_below(target, root) or _is_below(root, target):
        inner, outer = (
            ("destination", "watch root")
            if _is_below(target, root)
            else ("watch root", "destination")
        )
        msg = f"{_where(said, 'url')}: the {inner} lies inside the {outer} ({root}, {target})"
        raise UsageError(msg, hint="keep the two apart, best on different disks")
    state = os.path.realpath(settings.state_dir)
    if _is_below(state, root):
        msg = f"{_where(said, 'state_dir')}: the state directory {state} lies inside the watch root"
        raise UsageError(msg, hint="name one elsewhere with --state-dir")


def _is_below(path: str, above: str) -> bool:
    return os.path.commonpath([path, above]) == above
