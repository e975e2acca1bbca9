"""Daemons that serve a socket."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.report.socket_bench import Daemon


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """Return a daemon that serves a socket."""
    (tmp_path / "root" / "llama").mkdir(parents=True)
    running = Daemon(tmp_path / "api.sock", tmp_path / "root")
    yield running
    running.api.close()
