"""Absolute paths in a checkpoint's JSON: they name nothing on the machine that restores it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ckptsyncd.check.finding import Finding, ok, warn
from ckptsyncd.core.records.manifest import parse_json
from ckptsyncd.errors import Never

#: Larger documents are indexes of tensors, which hold names of files beside them (guessed).
MOST_BYTES = 4 * 1024 * 1024


def absolute_paths(document: object, root: str, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield every path at or below ``root`` in a JSON document, with the key it stands under."""
    if isinstance(document, str):
        if document == root or document.startswith(root.rstrip("/") + "/"):
            yield name, document
    elif isinstance(document, dict):
        for key, value in document.items():
            yield from absolute_paths(value, root, f"{name}.{key}" if name else str(key))
    elif isinstance(document, list):
        for value in document:
            yield from absolute_paths(value, root, name)


def documents(root: str, paths: Iterable[str], read: Callable[[str], bytes | None]) -> Finding:
    """Judge the newest JSON files; ``read`` gives a file's bytes, ``None`` where it is gone."""
    looked, first = 0, ""
    for path in paths:
        looked += 1
        found = next(absolute_paths(_parsed(read(path)), root), None)
        if found and not first:
            key, value = found
            first = f"{path} says {key} = {value!r:.120}"
    if first:
        hint = "restore into a directory of the same path, or correct it after a restore"
        return warn("absolute paths", first, hint)
    return ok("absolute paths", f"none in {looked} JSON files")


def _parsed(data: bytes | None) -> Any:
    """Return what a JSON file holds; nothing for what is none (any more)."""
    try:
        return None if data is None else parse_json(data, MOST_BYTES)
    except Never:
        return None
