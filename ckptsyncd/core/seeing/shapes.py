"""The shape of a checkpoint: which files it has and how large, with what differs by nature removed.

A late or dead rank is invisible in the files that are there; it shows in what the previous
checkpoints of the series had and this one lacks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from ckptsyncd.core.facts import FileFact

Shape = Mapping[str, int]

#: A file may be this much smaller than its sibling was (DESIGN 5).
_SMALLEST_SHARE = 0.9

_RANDOM = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|(?<![0-9a-z])[0-9a-f]{16,}"
)
_SET = re.compile(r"\d{5,6}-of-\d{5,6}")
_OWN_NUMBER = r"(?i)((?:step|iter|epoch|checkpoint|ckpt)[-_=]?)0*{}(?!\d)"
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def kind_of(name: str) -> str:
    """Return what a checkpoint's name has in common with its siblings'."""
    folder, _, base = name.rpartition("/")
    return f"{folder}/{_NUMBER.sub('#', base)}"


def normal(rel: str, name: str) -> str:
    """Return a member's name without random parts and without the checkpoint's own number."""
    base = name.rpartition("/")[2]
    text = "#" + rel[len(base) :] if rel.startswith(base) else rel
    text = _SET.sub("*-of-*", _RANDOM.sub("*", text))
    for number in re.findall(r"\d+", base):
        text = re.sub(_OWN_NUMBER.format(int(number)), r"\1#", text)
    return text


def shape_of(name: str, facts: Iterable[tuple[str, FileFact]]) -> Shape:
    """Return the shape of the members given as (path below the checkpoint, fact)."""
    shape: dict[str, int] = {}
    for rel, fact in facts:
        key = normal(rel, name)
        size = 0 if "*" in key else fact.size
        shape[key] = min(size, shape.get(key, size))
    return MappingProxyType(shape)


def lacking(shape: Shape, model: Shape) -> str:
    """Return the first member of ``model`` that is missing or much smaller here, or nothing."""
    for key, size in model.items():
        if key not in shape or shape[key] < size * _SMALLEST_SHARE:
            return key
    return ""


def is_same(shape: Shape, model: Shape) -> bool:
    """Return whether this has the same members as ``model``, none much smaller."""
    return shape.keys() == model.keys() and not lacking(shape, model)
