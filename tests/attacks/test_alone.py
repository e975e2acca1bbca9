"""Machines that have no IPv6, or nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

#: What is taken away from a new network namespace: all of IPv6, or the loopback address of IPv4.
WITHOUT = {
    "127.0.0.1": "echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6",
    "::1": "ip address del 127.0.0.1/8 dev lo",
}


@pytest.mark.server
@pytest.mark.parametrize("host", WITHOUT)
def test_one_kind_of_address_is_enough(host: str, tmp_path: Path) -> None:
    """Store, metrics and probes are reached; nothing asks for the other kind of address."""
    prepared = f'ip link set lo up && {WITHOUT[host]} && touch {tmp_path}/alone && exec "$@"'
    (tmp_path / "watch").mkdir()
    done = subprocess.run(
        [
            *("unshare", "--user", "--map-root-user", "--net", "sh", "-c", prepared, "sh"),
            *(sys.executable, "-m", "tests.attacks.alone", host, str(tmp_path)),
        ],
        env={**os.environ, "AWS_EC2_METADATA_DISABLED": "true"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    if not (tmp_path / "alone").exists():
        pytest.skip(f"needs a network namespace of its own: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
