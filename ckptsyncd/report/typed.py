"""Frozen values from JSON, by their types: what is missing or of a wrong type counts as nothing.

Nothing is ``""``, 0, ``False``, an empty tuple, or ``None`` where the type allows it. A document of
any version can be read so, and whoever reads it needs no list of keys.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

T = TypeVar("T")
_UNIONS = (Union, types.UnionType)


def built(kind: type[T], row: Mapping[str, Any], **given: Any) -> T:
    """Return a dataclass with its fields from the keys of the same names, but for what is given."""
    values = {
        name: given[name] if name in given else value_of(hint, row.get(name))
        for name, hint in hints_of(cast("Any", kind)).items()
    }
    return kind(**values)


def value_of(hint: Any, found: Any) -> Any:
    """Return what was found, or nothing, as a value of a type."""
    args = get_args(hint)
    if get_origin(hint) in _UNIONS:
        (inner,) = (arg for arg in args if arg is not type(None))
        return value_of(inner, found) if _fits(inner, found) else None
    if get_origin(hint) is tuple:
        items = found if isinstance(found, list) else []
        return tuple(value_of(args[0], item) for item in items if _fits(args[0], item))
    if is_dataclass(hint):
        return built(cast("type[Any]", hint), found if isinstance(found, dict) else {})
    plain = str if get_origin(hint) is Literal else hint
    return plain(found) if _fits(plain, found) else plain()


@cache
def hints_of(kind: type) -> Mapping[str, Any]:
    """Return the types of a dataclass' fields, by their names."""
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


def _fits(hint: Any, found: Any) -> bool:
    if is_dataclass(hint):
        return isinstance(found, dict) and bool(found)
    if hint is float:
        return isinstance(found, int | float) and not isinstance(found, bool)
    if hint is int:
        return isinstance(found, int) and not isinstance(found, bool)
    return isinstance(found, str if get_origin(hint) is Literal else hint)
