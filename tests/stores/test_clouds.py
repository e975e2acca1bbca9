"""The real program against every emulator: what was synced is what is restored."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.emulators import BUCKET, AzureServer, GcsServer

#: More than one piece of every store, and more than what is sent in one request.
DATA_BYTES = 34 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Place:
    """A destination, the flags that reach it, and what the environment must say."""

    url: str
    flags: tuple[str, ...]
    environment: dict[str, str]


@pytest.fixture(params=["fake_gcs_server", "gcp_emulator_server", "google_front", "azurite_server"])
def place(request: pytest.FixtureRequest) -> Place:
    """Return a destination on each server."""
    server = request.getfixturevalue(request.param)
    prefix = f"program {request.param}"
    if isinstance(server, GcsServer):
        return Place(f"gs://{BUCKET}/{prefix}", ("--gcs-endpoint", server.endpoint), {})
    assert isinstance(server, AzureServer)
    return Place(
        f"az://{server.account}/{server.container}/{prefix}",
        ("--azure-endpoint", server.endpoint),
        {"AZURE_STORAGE_ACCOUNT": server.account, "AZURE_STORAGE_KEY": server.key},
    )


def program(place: Place, *arguments: str) -> str:
    """Run a command of the program and return what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", "ckptsyncd", *arguments, *place.flags],
        env={**os.environ, **place.environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_what_was_synced_is_restored(place: Place, tmp_path: Path) -> None:
    """One pass, one restore: the same bytes, whole by the store's own word."""
    watch, out = tmp_path / "watch", tmp_path / "out"
    watch.mkdir()
    data = random.Random(7).randbytes(DATA_BYTES)
    (watch / "step=7.bin").write_bytes(data)
    state = ("--state-dir", str(tmp_path / "state"))
    program(place, "sync", str(watch), place.url, *state, "--quiet-seconds", "0.3")
    assert "whole (1 file, 34.0 MiB)" in program(place, "verify", place.url, "--level", "meta")
    program(place, "restore", place.url, str(out))
    assert (out / "step=7.bin").read_bytes() == data
