"""Daemons to ask, in a home where no others are found."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.bench import Daemon


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """Return a directory in which daemons are looked for, and only there."""
    before = dict(os.environ)
    for name in [name for name in os.environ if name.startswith("CKPTSYNCD_")]:
        del os.environ[name]
    os.environ["RUNTIME_DIRECTORY"] = str(tmp_path / "run")
    os.environ["STATE_DIRECTORY"] = str(tmp_path / "state")
    os.environ["HOME"] = str(tmp_path)
    for name in ("XDG_RUNTIME_DIR", "XDG_STATE_HOME"):
        os.environ.pop(name, None)
    yield tmp_path
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture
def daemon(home: Path) -> Iterator[Daemon]:
    """Return a running daemon."""
    running = Daemon(home)
    yield running
    running.die()
