"""Making one frozen Settings of what was said, and refusing what cannot work together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ckptsyncd.core.draining.deadlines import stop_seconds
from ckptsyncd.errors import UsageError
from ckptsyncd.settings.check import absolute, check
from ckptsyncd.settings.gather import (
    FILE_VARIABLE,
    Given,
    gathered,
    said_by_flags,
    said_in_environment,
    value_of,
)
from ckptsyncd.settings.kinds import Path as PathKind
from ckptsyncd.settings.nodes import said_by_launcher, uncounted
from ckptsyncd.settings.places import default_socket, default_state_dir
from ckptsyncd.settings.table import BY_NAME, DEFINITIONS, Settings

#: What runs this process, by a variable that it sets.
_LAYERS = (
    ("kubernetes", "KUBERNETES_SERVICE_HOST"),
    ("slurm", "SLURM_JOB_ID"),
    ("runpod", "RUNPOD_POD_ID"),
)
#: A stop is over so long before the kill (guessed: a signal may come late, ours or the kill's).
BEFORE_KILL_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Loaded:
    """The settings, and for each that was said where (``origins``: name and place)."""

    settings: Settings
    origins: tuple[tuple[str, str], ...]
    config_file: str


def load(
    flags: Mapping[str, Given], environ: Mapping[str, str], config: str | None = None
) -> Loaded:
    """Return the settings that hold: flags before environment before file before defaults.

    ``flags`` maps names of settings to what was typed (``None``: not given). Paths come back
    absolute, ``socket`` and ``state_dir`` filled in. Raises UsageError, one line with a hint.
    """
    said, config_file = gathered(flags, environ, config)
    if "sharded" in said and value_of(BY_NAME["sharded"], said["sharded"]):
        said |= said_by_launcher(environ, said)
    said |= uncounted(said)
    values = {name: value_of(BY_NAME[name], what) for name, what in said.items()}
    values.setdefault("stop_timeout", _usual_stop(values.get("kill_after"), environ))
    settings = _placed(_absolute(Settings(**values)), environ)
    check(settings, said)
    origins = tuple((made.name, said[made.name].where) for made in DEFINITIONS if made.name in said)
    return Loaded(settings, origins, config_file)


def load_places(
    flags: Mapping[str, Given], environ: Mapping[str, str], config: str | None = None
) -> Settings:
    """Return only where a daemon would be: for commands that talk to one and need no more.

    ``socket`` and ``state_dir`` are empty where neither they nor DIR and URL are known. A default
    config file that this user may not read, or that is wrong, does not stand in the way.
    """
    try:
        said, _ = gathered(flags, environ, config)
    except UsageError:
        if config or environ.get(FILE_VARIABLE):
            raise
        said = said_in_environment(environ) | said_by_flags(flags)
    names = ("dir", "url", "socket", "state_dir")
    values = {name: value_of(BY_NAME[name], said[name]) for name in names if name in said}
    settings = _absolute(Settings(**values))
    return _placed(settings, environ) if settings.dir and settings.url else settings


def _usual_stop(kill_after: float | None, environ: Mapping[str, str]) -> float:
    """Return how long a stop may take where nobody said it: a little less than until the kill."""
    layers = [layer for layer, name in _LAYERS if environ.get(name)]
    return max(stop_seconds(layers, kill_after) - BEFORE_KILL_SECONDS, 0.0)


def _absolute(settings: Settings) -> Settings:
    """Return the settings with every path made absolute and the URL without its last slash."""
    changed: dict[str, Any] = {
        made.name: absolute(value)
        for made in DEFINITIONS
        if isinstance(made.kind, PathKind) and (value := getattr(settings, made.name))
    }
    if settings.url:
        scheme, mark, rest = settings.url.partition("://")
        changed["url"] = scheme + mark + (rest.rstrip("/") or rest)
    return replace(settings, **changed)


def _placed(settings: Settings, environ: Mapping[str, str]) -> Settings:
    """Return the settings with the default places filled in."""
    if not (settings.dir and settings.url):
        return settings
    socket = settings.socket or str(default_socket(settings.dir, settings.url, environ))
    state = settings.state_dir or str(default_state_dir(settings.dir, settings.url, environ))
    return replace(settings, socket=socket, state_dir=state)
