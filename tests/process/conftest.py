"""Programs and stores for the process tests; whatever a test started is ended with it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests import servers
from tests.process.program import Program
from tests.proxy import Proxy, proxied

Start = Callable[..., Program]


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Start]:
    """Make programs with their own state; they are killed at the end of the test."""
    made: list[Program] = []

    def make(
        root: Path, url: str, *options: str, env: dict[str, str] | None = None, state: str = ""
    ) -> Program:
        base = tmp_path / (state or f"daemon-{len(made)}")
        made.append(Program(root, url, base, options, env or {}))
        return made[-1]

    yield make
    for one in made:
        if one.process is not None and one.process.poll() is None:
            one.process.kill()
            one.process.wait()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Name a watch root that does not exist yet."""
    return tmp_path / "checkpoints"


@pytest.fixture
def durable(tmp_path: Path) -> str:
    """Name a destination that does not exist yet."""
    return f"file://{tmp_path}/durable"


@pytest.fixture
def proxy(s3_server: servers.S3Server) -> Iterator[Proxy]:
    """Run a proxy in front of the real S3 server."""
    parts = urlsplit(s3_server.endpoint)
    assert parts.hostname is not None
    assert parts.port is not None
    with proxied(parts.hostname, parts.port) as one:
        yield one


@pytest.fixture
def prefix(s3_server: servers.S3Server) -> str:
    """Name an empty place in the bucket."""
    return f"s3://{s3_server.bucket}/{uuid.uuid4().hex}"
