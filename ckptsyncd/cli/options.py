"""The settings as flags: made from the one table, judged by it too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from ckptsyncd.settings import DEFINITIONS, Definition
from ckptsyncd.settings.kinds import Choice, Many, Path, Switch

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

#: A path as shells complete it. Whether it can be read is the settings' to say: they have a hint.
_PATH = click.Path(readable=False)


def config_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the flag that names the config file."""
    return click.option(
        "--config",
        metavar="FILE",
        type=_PATH,
        help="Config file (TOML). [env: CKPTSYNCD_CONFIG]",
    )(command)


def socket_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the flags that say which daemon is asked."""
    command = click.option(
        "--socket", metavar="PATH", type=_PATH, help="Socket of the daemon to ask."
    )(command)
    return config_option(command)


def settings_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command DIR, URL, ``--config`` and a flag for every setting, as keywords."""
    for made in reversed(DEFINITIONS):
        command = option(made)(command) if made.flag else command
    return config_option(command)


def option(made: Definition) -> Decorator:
    """Return one setting as a flag; what was typed arrives as text, ``None`` where nothing was."""
    if made.positional:
        return click.argument(made.name, required=False, metavar=f"[{made.flag}]", type=_type(made))
    if isinstance(made.kind, Switch):
        both = f"{made.flag}/--no-{made.flag[2:]}"
        return click.option(both, made.name, default=None, help=_help(made))
    return click.option(
        made.flag,
        made.name,
        type=_type(made),
        multiple=isinstance(made.kind, Many),
        metavar=_metavar(made),
        help=_help(made),
    )


def _type(made: Definition) -> click.ParamType[Any]:
    """Return what shell completion needs to know; the value itself is judged by the settings."""
    if isinstance(made.kind, Choice):
        return click.Choice(made.kind.words)
    return _PATH if isinstance(made.kind, Path) else click.STRING


def _metavar(made: Definition) -> str | None:
    if isinstance(made.kind, Choice):
        return None
    return made.name.rsplit("_", maxsplit=1)[-1].upper()


def _help(made: Definition) -> str:
    bounds = "" if isinstance(made.kind, Choice | Switch | Path) else f"{made.kind.allowed()}; "
    text = made.default_text().replace('"', "")
    default = f"default: {text}; " if text else ""
    return f"{made.help} [{bounds}{default}env: {made.variable}]"
