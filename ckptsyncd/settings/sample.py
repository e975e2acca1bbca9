"""The settings as a config file: a commented sample, and what holds now with where it was said."""

from __future__ import annotations

import textwrap

from ckptsyncd.settings.load import Loaded
from ckptsyncd.settings.table import DEFINITIONS, GROUPS, Definition

_WIDTH = 96
_HEAD = """\
# ckptsyncd's settings: the defaults, or examples where there is none. Remove a '#' to change one.
# A flag of 'ckptsyncd run' wins over a variable, a variable over this file.
# Durations are "500ms", "30s", "2m", "1h" or a number of seconds; sizes "16MiB" or bytes.
"""


def sample() -> str:
    """Return a config file that changes nothing and names, explains and bounds every setting."""
    parts = [_HEAD]
    for group in GROUPS:
        parts.append(f"\n# ---- {group} ----\n")
        parts += [_entry(made) for made in DEFINITIONS if made.group == group]
    return "".join(parts)


def shown(loaded: Loaded) -> str:
    """Return the settings that hold as a config file, each with the place where it was said."""
    said = dict(loaded.origins)
    head = f"# config file: {loaded.config_file or 'none'}\n"
    return head + "".join(_line(loaded, made, said.get(made.name, "")) for made in DEFINITIONS)


def _entry(made: Definition) -> str:
    told = textwrap.wrap(made.help, _WIDTH, break_long_words=False, break_on_hyphens=False)
    names = f"{made.flag}, {made.variable}" if made.flag else "only in a file"
    bounds = textwrap.wrap(f"{names}: {made.kind.allowed()}", _WIDTH, break_on_hyphens=False)
    comment = "".join(f"# {line}\n" for line in [*told, *bounds])
    return f"\n{comment}#{made.name} = {made.example_text()}\n"


def _line(loaded: Loaded, made: Definition, place: str) -> str:
    value = getattr(loaded.settings, made.name)
    if value is None or (value == "" and not place):
        return f"#{made.name} =  # not set\n"
    return f"{made.name} = {made.kind.show(value)}  # {place or 'default'}\n"
