"""What the SDK knows of the service, without the handbook that its files also are."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

_OPENERS: dict[str, Callable[..., Any]] = {".json": open, ".json.gz": gzip.open}


class LeanFiles:
    """Reads the SDK's files as its own reader does (paths come without an ending).

    Half of them are explanations for people, and its reader keeps every level as an OrderedDict:
    6 MiB more for the life of the daemon.
    """

    def exists(self, file_path: str) -> bool:
        """Return whether there is such a file; nine hundred are asked for to make one client."""
        return any(os.path.isfile(file_path + ending) for ending in _OPENERS)  # noqa: PTH113

    def load_file(self, file_path: str) -> Any:
        """Return what is in it, ``None`` where there is none."""
        for ending, opened in _OPENERS.items():
            if Path(file_path + ending).is_file():
                with opened(file_path + ending, "rb") as file:
                    return json.loads(file.read(), object_pairs_hook=_lean)
        return None


def _lean(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object without its explanation; a member may have that name and is no text."""
    found = dict(pairs)
    if isinstance(found.get("documentation"), str):
        found["documentation"] = ""  # some of the SDK's parts insist on one
    return found
