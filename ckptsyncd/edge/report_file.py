"""The newest report of a drain, kept whole in the state directory."""

from __future__ import annotations

import os
from pathlib import Path

NAME = "drain-report.json"


def keep(directory: Path, data: bytes) -> None:
    """Replace the report; readers see the old one or the new one. Raises OSError.

    For the owner only, as everything in the state directory is.
    """
    beside = directory / f".{NAME}"
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(directory / NAME)
    except OSError:
        beside.unlink(missing_ok=True)
        raise
