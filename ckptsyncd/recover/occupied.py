"""Does a directory hold anything like a checkpoint? The layouts say what one looks like.

Logs, configurations and temporary files are none: a directory with only those is as good as empty,
and a run that starts there from zero although the store holds its checkpoints is lost work.
"""

from __future__ import annotations

import os
from pathlib import Path

from ckptsyncd.core.seeing.layouts import BUILT_IN
from ckptsyncd.core.seeing.layouts.base import fits

_FILES = tuple(text for layout in BUILT_IN for text in (layout.file, layout.group))
_FOLDERS = tuple(layout.folder for layout in BUILT_IN)
_STREAMS = tuple(layout.streams for layout in BUILT_IN)
_NEVER = tuple(text for layout in BUILT_IN for text in (layout.temporary, layout.ignored))


def content_of(root: Path) -> str:
    """Return the path of a file that looks like (part of) a checkpoint, or an empty text."""
    for place, inner, files in os.walk(root):
        inner[:] = sorted(name for name in inner if not _any(_NEVER, name))
        folder = Path(place).relative_to(root).as_posix()
        in_unit = any(_any(_FOLDERS, part) for part in folder.split("/"))
        for name in sorted(files):
            if _counts(name, in_unit=in_unit):
                return name if folder == "." else f"{folder}/{name}"
    return ""


def _counts(name: str, *, in_unit: bool) -> bool:
    if _any(_NEVER, name) or _any(_STREAMS, name):
        return False
    return in_unit or _any(_FILES, name)


def _any(patterns: tuple[str, ...], name: str) -> bool:
    return any(fits(text, name) for text in patterns)
