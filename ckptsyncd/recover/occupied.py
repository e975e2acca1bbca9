"""Does a directory hold anything like a checkpoint? The layouts say what one looks like.

Logs, configurations and temporary files are none: a directory with only those is as good as empty,
and a run that starts there from zero although the store holds its checkpoints is lost work.
"""

from __future__ import annotations

import os
from pathlib import Path

from ckptsyncd.core.layouts import BUILT_IN
from ckptsyncd.core.layouts.base import any_of, fits

_FILES = any_of([text for layout in BUILT_IN for text in (layout.file, layout.group)])
_FOLDERS = any_of([layout.folder for layout in BUILT_IN])
_STREAMS = any_of([layout.streams for layout in BUILT_IN])
_TEMPORARY = any_of([layout.temporary for layout in BUILT_IN])


def content_of(root: Path) -> str:
    """Return the path of a file that looks like (part of) a checkpoint, or an empty text."""
    for place, inner, files in os.walk(root):
        inner[:] = sorted(name for name in inner if not fits(_TEMPORARY, name))
        folder = Path(place).relative_to(root).as_posix()
        in_unit = any(fits(_FOLDERS, part) for part in folder.split("/"))
        for name in sorted(files):
            if _counts(name, in_unit=in_unit):
                return name if folder == "." else f"{folder}/{name}"
    return ""


def _counts(name: str, *, in_unit: bool) -> bool:
    if fits(_TEMPORARY, name) or fits(_STREAMS, name):
        return False
    return in_unit or fits(_FILES, name)
