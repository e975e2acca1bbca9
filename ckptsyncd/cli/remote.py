"""What the commands share that look into a store without a daemon: its URL and its options.

Flags, environment and config file are those of the settings' one table.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from ckptsyncd.cli.options import config_option, option
from ckptsyncd.core.ports import Store
from ckptsyncd.destination import store_at
from ckptsyncd.edge.clock import BootClock
from ckptsyncd.errors import UsageError
from ckptsyncd.residence import guarded
from ckptsyncd.settings import BY_NAME, DEFINITIONS, Settings
from ckptsyncd.settings.gather import gathered, value_of
from ckptsyncd.settings.table import STORES

_FLAGS = tuple(made for made in DEFINITIONS if made.group in STORES)


def store_flags(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the flags that say how a store is reached; they arrive as keywords."""
    for made in reversed(_FLAGS):
        command = option(made)(command)
    return config_option(command)


def opened(url: str, flags: Mapping[str, Any]) -> Store:
    """Return the store of a URL with the options that were said; UsageError where they are wrong.

    Nothing is asked of the store yet; it lets nothing through where the rules about its place say
    no (PolicyRefused).
    """
    settings = settings_of(flags)
    store = store_at(url, settings)
    return guarded(store, settings, os.environ, BootClock().now, lambda _error: None)


def settings_of(flags: Mapping[str, Any]) -> Settings:
    """Return what was said about stores, by flags, environment and config file."""
    said, _ = gathered(
        {made.name: flags.get(made.name) for made in _FLAGS}, os.environ, flags.get("config")
    )
    values = {made.name: value_of(made, said[made.name]) for made in _FLAGS if made.name in said}
    return Settings(**values)


def said_url(url: str | None) -> str:
    """Return the URL that was given, or that of the environment or the default config file."""
    if url:
        return url
    said, _ = gathered({}, os.environ, None)
    if "url" not in said:
        msg = "URL is missing: where the checkpoints are"
        raise UsageError(msg, hint="name it, or set CKPTSYNCD_URL")
    return str(value_of(BY_NAME["url"], said["url"]))
