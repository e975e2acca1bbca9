"""Which settings may change while the program runs, and what becomes of those that may not."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ckptsyncd.settings.table import BY_NAME, Settings

#: What holds from the next decision on. Everything else is part of what was opened at the start:
#: places, locks, the store's client, threads, sockets.
RELOADABLE = (
    "companions",
    "quiet_seconds",
    "ranks_quiet_seconds",
    "grace_seconds",
    "sweep_seconds",
    "poll_seconds",
    "max_wait_seconds",
    "bandwidth",
    "backlog",
    "keep_last",
    "keep_every",
    "newer_than",
    "pinned",
    "min_keep",
    "prune_grace",
    "prune_interval",
    "prune_rate",
    "reap",
    "local_bytes",
    "recheck_seconds",
    "allow_step_back",
    "stop_margin_seconds",
    "stop_timeout",
    "trainer_seconds",
    "linger_seconds",
    "log_level",
    "synced_seconds",
)


@dataclass(frozen=True, slots=True)
class Reload:
    """The settings that hold from now on, what changed in them, and what was left as it was."""

    settings: Settings
    changed: tuple[str, ...]
    kept: tuple[str, ...]


def reloaded(before: Settings, wanted: Settings) -> Reload:
    """Return ``before`` with whatever may change taken from ``wanted``."""
    differ = [name for name in BY_NAME if getattr(before, name) != getattr(wanted, name)]
    changed = tuple(name for name in differ if name in RELOADABLE)
    kept = tuple(name for name in differ if name not in RELOADABLE)
    settings = replace(before, **{name: getattr(wanted, name) for name in changed})
    return Reload(settings, changed, kept)
