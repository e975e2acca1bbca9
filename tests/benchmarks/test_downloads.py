"""What a download costs is counted alike for everybody: from the start of a process to its end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.meter import measured
from benchmarks.server import NotBuiltError, build, sink

pytestmark = pytest.mark.server

DATA = b"weights" * 1000


def test_a_peer_is_measured_whole(tmp_path: Path) -> None:
    """It brings the object and says nothing of its own cost, so its imports count as ours do."""
    try:
        build(tmp_path)
    except NotBuiltError as error:
        pytest.skip(str(error))
    with sink(tmp_path, name="download", options=("-s", "100000")) as target:
        connection = target.connect()
        connection.request("PUT", "/bucket/key", DATA)
        assert connection.getresponse().read() == b""
        connection.close()
        command = [sys.executable, "-m", "benchmarks.downloaders", "boto3", target.endpoint, "key"]
        to = tmp_path / "here"
        done = subprocess.run(
            [*command, str(to)],
            check=True,
            capture_output=True,
            env={**os.environ, **target.environment},
        )
    assert to.read_bytes() == DATA
    assert measured(done.stdout) == {}
