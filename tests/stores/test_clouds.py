"""The real program against every emulator: what was synced is what is restored."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.emulators import BUCKET, AzureServer, GcsServer
from tests.proxy import proxied
from tests.servers import S3Server

#: More than one piece of every store, and more than what is sent in one request.
DATA_BYTES = 34 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Place:
    """A destination, the flags that reach it, and what the environment must say."""

    url: str
    flags: tuple[str, ...]
    environment: dict[str, str]


def place_on(server: object, prefix: str, at: str = "") -> Place:
    """Return a destination on a server, reached through ``at`` if one is given."""
    if isinstance(server, GcsServer):
        return Place(f"gs://{BUCKET}/{prefix}", ("--gcs-endpoint", at or server.endpoint), {})
    if isinstance(server, S3Server):
        flags = ("--s3-endpoint", at or server.endpoint, "--s3-path-style")
        return Place(f"s3://{server.bucket}/{prefix}", flags, {})
    assert isinstance(server, AzureServer)
    return Place(
        f"az://{server.account}/{server.container}/{prefix}",
        ("--azure-endpoint", f"{at}/{server.account}" if at else server.endpoint),
        {"AZURE_STORAGE_ACCOUNT": server.account, "AZURE_STORAGE_KEY": server.key},
    )


@pytest.fixture(params=["fake_gcs_server", "gcp_emulator_server", "google_front", "azurite_server"])
def place(request: pytest.FixtureRequest) -> Place:
    """Return a destination on each server."""
    return place_on(request.getfixturevalue(request.param), f"program {request.param}")


def command(place: Place, *arguments: str) -> list[str]:
    """Return the command line of the program."""
    return [sys.executable, "-m", "ckptsyncd", *arguments, *place.flags]


def program(place: Place, *arguments: str) -> str:
    """Run a command of the program and return what it printed."""
    done = subprocess.run(
        command(place, *arguments),
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


@pytest.mark.parametrize(
    ("name", "end", "pieces"),
    [
        ("gcp_emulator_server", ("POST", "rewriteTo/.*step"), "upload_id"),
        ("google_front", ("POST", "step.*uploadId"), "step.*partNumber"),
        ("azurite_server", ("PUT", "step.*comp=blocklist"), "step.*comp=block&"),
    ],
)
def test_a_killed_program_does_not_send_its_pieces_again(
    request: pytest.FixtureRequest, tmp_path: Path, name: str, end: tuple[str, str], pieces: str
) -> None:
    """After kill -9 before the end of an upload the pieces of the ledger are enough."""
    server = request.getfixturevalue(name)
    watch, out = tmp_path / "watch", tmp_path / "out"
    watch.mkdir()
    data = random.Random(8).randbytes(DATA_BYTES)
    (watch / "step=8.bin").write_bytes(data)
    parts = urlsplit(server.endpoint)
    with proxied(parts.hostname or "", parts.port or 0) as proxy:
        place = place_on(server, f"killed {name}", proxy.endpoint)
        state = ("--state-dir", str(tmp_path / "state"), "--quiet-seconds", "0.3")
        sync = ("sync", str(watch), place.url, *state)
        held = proxy.rule("hold", *end)
        environment = {**os.environ, **place.environment}
        with subprocess.Popen(command(place, *sync), env=environment) as process:
            assert held.reached.wait(60)
            process.kill()
        held.release.set()
        assert proxy.data_bytes(pieces) == DATA_BYTES
        program(place, *sync)
        assert proxy.data_bytes(pieces) == DATA_BYTES
        program(place, "restore", place.url, str(out))
    assert (out / "step=8.bin").read_bytes() == data
