"""Collecting what was said where: flags before environment before file. Nothing is judged here."""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ckptsyncd.errors import UsageError
from ckptsyncd.settings.kinds import Many, Text
from ckptsyncd.settings.places import mode_of
from ckptsyncd.settings.table import BY_NAME, DEFINITIONS, Definition

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DEFAULT_FILE = "/etc/ckptsyncd/ckptsyncd.toml"
FILE_VARIABLE = "CKPTSYNCD_CONFIG"
_PREFIX = "CKPTSYNCD_"
#: Kubernetes sets CKPTSYNCD_PORT and the like in every pod beside a service named ckptsyncd, and
#: CKPTSYNCD_METRICS_PORT=tcp://... beside one named ckptsyncd-metrics.
_SERVICE = re.compile(r"(?i)\w+_SERVICE_(HOST|PORT\w*)=.*|\w+=(tcp|udp|sctp)://.*")
#: How alike two names must be for one to be a slip of the other (guessed).
_ALIKE = 0.8

Given = str | bool | tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Said:
    """One value as it was given, and where: a flag, a variable, or a file with its line."""

    value: Any
    where: str
    is_text: bool


def gathered(
    flags: Mapping[str, Given], environ: Mapping[str, str], config: str | None
) -> tuple[dict[str, Said], str]:
    """Return what was said of each setting, and the config file's name (empty: none was read)."""
    name = config or environ.get(FILE_VARIABLE, "")
    if not name and not mode_of(Path(DEFAULT_FILE)):
        from_file: dict[str, Said] = {}
    else:
        name = name or DEFAULT_FILE
        from_file = said_in_file(name)
    return from_file | said_in_environment(environ) | said_by_flags(flags), name


def said_by_flags(flags: Mapping[str, Given]) -> dict[str, Said]:
    """Return the flags that were given."""
    return {
        name: Said(value, BY_NAME[name].flag, isinstance(value, str))
        for name, value in flags.items()
        if value not in (None, ())
    }


def said_in_environment(environ: Mapping[str, str]) -> dict[str, Said]:
    """Return the variables that are set and not empty; one like a setting's name is an error."""
    found = {}
    for variable in sorted(environ):
        name = variable.removeprefix(_PREFIX).lower()
        text = environ[variable]
        if not variable.startswith(_PREFIX) or not text:
            continue
        if _SERVICE.fullmatch(f"{variable}={text}"):
            continue
        if name in BY_NAME:
            found[name] = Said(text, variable, is_text=True)
        elif variable != FILE_VARIABLE and (near := nearest_name(name, BY_NAME)):
            msg = f"unknown variable {variable}"
            raise UsageError(msg, hint=f"did you mean {BY_NAME[near].variable}?")
    return found


def said_in_file(name: str) -> dict[str, Said]:
    """Return what a TOML file says; UsageError names file and line of what it cannot say."""
    text = _text_of(name)
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also numbers and levels beyond any use
        line = re.search(r"at line (\d+)", str(error))
        where = f"{name}:{line[1]}" if line else name
        msg = f"{where}: not TOML: {error}"
        raise UsageError(msg, hint="'ckptsyncd config --sample' prints a valid file") from error
    found = {}
    for key, value in table.items():
        where = f"{name}:{line_of(key, text)}"
        if key not in BY_NAME:
            raise _unknown_key(where, key)
        if value == "" and isinstance(BY_NAME[key].kind, Text):
            continue  # said to be nothing, as an empty variable is
        found[key] = Said(value, where, is_text=False)
    return found


def value_of(definition: Definition, said: Said) -> Any:
    """Return the value that was said; UsageError names place, value and what is allowed."""
    kind = definition.kind
    try:
        return kind.parse(said.value) if said.is_text else kind.take(said.value)
    except (ValueError, OverflowError) as error:
        shown = said.value if isinstance(said.value, str) else str(said.value)
        msg = f"{said.where}: {definition.name} = {shown!r}: {error}"
        raise UsageError(msg, hint=f"allowed: {kind.allowed()}") from error


def line_of(key: str, text: str) -> int:
    """Return the line on which a key or table of that name begins (1 where none seems to)."""
    name = re.escape(key)
    pattern = rf"""\s*(?:\[+\s*)?["']?{name}["']?\s*[\].=]"""
    lines = enumerate(text.splitlines(), start=1)
    return next((number for number, line in lines if re.match(pattern, line)), 1)


def nearest_name(name: str, names: Iterable[str]) -> str:
    """Return the name that this one was probably meant to be, or nothing."""
    bare = name.strip().lower().replace("-", "_")
    near = difflib.get_close_matches(bare, list(names), n=1, cutoff=_ALIKE)
    return near[0] if near else ""


def _unknown_key(where: str, key: str) -> UsageError:
    near = nearest_name(key, BY_NAME)
    close = difflib.get_close_matches(key, list(BY_NAME), n=1, cutoff=0.0)
    hint = (
        f'did you mean "{near}"?'
        if near
        else (f"the nearest key is \"{close[0]}\"; 'ckptsyncd config --sample' lists all")
    )
    return UsageError(f'{where}: unknown key "{key}"', hint=hint)


def _text_of(name: str) -> str:
    try:
        return Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
        msg = f"cannot read the config file {name}: {reason}"
        hint = f"name it with --config or {FILE_VARIABLE}"
        if isinstance(error, PermissionError):
            hint = "let this user read it"
        raise UsageError(msg, hint=hint) from error


def lists() -> set[str]:
    """Return the names of the settings that take several values."""
    return {made.name for made in DEFINITIONS if isinstance(made.kind, Many)}
