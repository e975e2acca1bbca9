"""Layouts of the user's own: ``[[layout]]`` tables of the config file, tried before the built-in.

All patterns are regular expressions that match a whole name (docs/layouts.md).
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, replace
from typing import Any

from ckptsyncd.core.seeing.layouts.base import Layout, Marker
from ckptsyncd.settings.kinds import quoted, typed

#: Keys that hold one pattern and are named as in ``Layout``.
_PATTERNS = (
    "folder", "file", "group", "members", "unfinished", "pointers", "streams", "temporary",
    "ignored", "step",
)  # fmt: skip
#: Keys of the marker: the file that is written last, and what other ranks write without waiting.
_MARKS = ("marker", "ranks")
KEYS = ("name", "signs", "claims", "ranked", *_MARKS, *_PATTERNS)
_RECOGNISED_BY = ("folder", "file", "group", "signs")


@dataclass(frozen=True, slots=True)
class Layouts:
    """An array of tables, one for each layout; only a file can hold it."""

    def parse(self, text: str) -> tuple[Layout, ...]:
        """Refuse any text: a layout does not fit into a flag or a variable."""
        del text
        msg = "layouts stand in the config file"
        raise ValueError(msg)

    def take(self, value: Any) -> tuple[Layout, ...]:
        """Return the layouts of an array of TOML tables."""
        rows = typed(value, list, "an array of tables")
        return tuple(_layout(typed(row, dict, "a table")) for row in rows)

    def allowed(self) -> str:
        """Say what a table may hold."""
        return f"[[layout]] tables with {', '.join(KEYS)}"

    def show(self, value: tuple[Layout, ...]) -> str:
        """Return them as an array of inline tables."""
        return "[" + ", ".join(_shown(layout) for layout in value) + "]"


def _layout(row: dict[str, Any]) -> Layout:
    for key in row:
        if key not in KEYS:
            near = difflib.get_close_matches(key, KEYS, n=1, cutoff=0.0)[0]
            msg = f'unknown key "{key}" in a layout; the nearest is "{near}"'
            raise ValueError(msg)
    if not any(row.get(key) for key in _RECOGNISED_BY):
        msg = f"a layout needs one of {', '.join(_RECOGNISED_BY)}"
        raise ValueError(msg)
    named: dict[str, Any] = {key: _pattern(key, row[key]) for key in _PATTERNS if key in row}
    made = Layout(
        name=_name(row.get("name", "")),
        read_from="the config file",
        signs=tuple(
            _pattern("signs", text) for text in typed(row.get("signs", []), list, "a list")
        ),
        claims=_claims(row.get("claims", "")),
        ranked=typed(row.get("ranked", False), bool, "true or false"),
        markers=_markers(row),
    )
    return replace(made, **named)


def _name(value: Any) -> str:
    name: str = typed(value, str, "a string")
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,63}", name):
        msg = f"a layout's name is lower-case letters, digits, - and _, not {name!r}"
        raise ValueError(msg)
    return name


def _claims(value: Any) -> Any:
    if value not in ("", "tree", "flat"):
        msg = f'claims is "tree" or "flat", not {value!r}'
        raise ValueError(msg)
    return value


def _markers(row: dict[str, Any]) -> tuple[Marker, ...]:
    if "marker" not in row:
        if "ranks" in row:
            msg = "ranks says what may be newer than the marker, and there is none"
            raise ValueError(msg)
        return ()
    ranks = _pattern("ranks", row["ranks"]) if "ranks" in row else ""
    return (Marker(path=_pattern("marker", row["marker"]), ranks=ranks),)


def _pattern(key: str, value: Any) -> str:
    text: str = typed(value, str, "a string")
    try:
        compiled = re.compile(text)
    except re.error as error:
        msg = f"{key} is no regular expression: {error}"
        raise ValueError(msg) from error
    if key in ("group", "unfinished") and "unit" not in compiled.groupindex:
        msg = f"{key} needs a group (?P<unit>...) that is the checkpoint's name"
        raise ValueError(msg)
    if key == "step" and not compiled.groups:
        msg = r"step needs a group, such as (\d+), that is the number"
        raise ValueError(msg)
    return text


def _shown(layout: Layout) -> str:
    parts = [f"name = {quoted(layout.name)}"]
    parts += [
        f"{key} = {quoted(getattr(layout, key))}" for key in _PATTERNS if _is_set(layout, key)
    ]
    if layout.signs:
        parts.append("signs = [" + ", ".join(map(quoted, layout.signs)) + "]")
    parts += [f"claims = {quoted(layout.claims)}"] if layout.claims else []
    parts += ["ranked = true"] if layout.ranked else []
    for marker in layout.markers:
        parts.append(f"marker = {quoted(marker.path)}")
        parts += [f"ranks = {quoted(marker.ranks)}"] if marker.ranks else []
    return "{ " + ", ".join(parts) + " }"


def _is_set(layout: Layout, key: str) -> bool:
    return bool(getattr(layout, key) != Layout.__dataclass_fields__[key].default)
