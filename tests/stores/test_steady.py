"""Once it runs, the program lists nothing: neither objects nor begun uploads, on any store."""

from __future__ import annotations

import os
import re
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.process.program import Program, until
from tests.process.saving import MIB, by_rename
from tests.proxy import Proxy, proxied
from tests.servers import free_ports
from tests.stores.test_clouds import place_on

#: How each protocol asks for a list of objects, or of begun uploads.
LISTS = {
    "s3_server": r"\?(list-type=|prefix=|delimiter=|uploads)",
    "gcp_emulator_server": r"/storage/v1/b/[^/]+/o(\?|$)|\?uploads",
    "google_front": r"/storage/v1/b/[^/]+/o(\?|$)|\?uploads",
    "azurite_server": r"comp=list(&|$)",
}

Start = Callable[..., Program]


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Start]:
    """Run a program; it is killed at the end of the test."""
    made: list[Program] = []

    def start(url: str, *flags: str, env: dict[str, str] | None = None) -> Program:
        made.append(Program(tmp_path / "watch", url, tmp_path / "daemon", flags, env or {}))
        return made[-1].start()

    yield start
    for one in made:
        if not one.ended():
            one.kill()


def saved(daemon: Program) -> None:
    """Save four checkpoints: a new file, a large one, one that is written again, a directory."""
    daemon.root.mkdir(exist_ok=True)
    by_rename(daemon.root / "small.pt", 4000, 1)
    daemon.until_safe("small.pt")
    by_rename(daemon.root / "large.pt", 20 * MIB, 2)
    daemon.until_safe("large.pt")
    by_rename(daemon.root / "small.pt", 4000, 3)
    daemon.until_safe("small.pt", 2)
    folder = daemon.root.with_name("aside")
    folder.mkdir()
    for name in ("a.bin", "b.bin"):
        (folder / name).write_bytes(name.encode())
    folder.rename(daemon.root / "epoch-5")
    daemon.until_safe("epoch-5")


def lists(proxy: Proxy, pattern: str) -> int:
    """Return how many lists were asked for."""
    with proxy.lock:
        asked = [one.target for one in proxy.requests if one.method == "GET"]
    return sum(re.search(pattern, target) is not None for target in asked)


@pytest.mark.server
@pytest.mark.parametrize("name", LISTS)
def test_no_list_is_asked_for_in_steady_state(
    request: pytest.FixtureRequest, program: Start, name: str
) -> None:
    """One list at the start finds what is committed; four checkpoints later it is still one."""
    server = request.getfixturevalue(name)
    parts = urlsplit(server.endpoint)
    with proxied(parts.hostname or "", parts.port or 0) as proxy:
        place = place_on(server, f"steady {name}", proxy.endpoint)
        daemon = program(place.url, *place.flags, env={**os.environ, **place.environment})
        until(lambda: lists(proxy, LISTS[name]), "the manifests are listed")
        saved(daemon)
        assert lists(proxy, LISTS[name]) == 1
        assert len(proxy.requests) > 10


def test_no_list_is_asked_for_in_steady_state_on_a_volume(program: Start, tmp_path: Path) -> None:
    """As on the others; the program's own count of its calls to the store tells."""
    port = free_ports(1)[0]
    daemon = program(f"file://{tmp_path}/durable", "--metrics-port", str(port))
    saved(daemon)
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        families = list(text_string_to_metric_families(answer.read().decode()))
    calls = {
        sample.labels["call"]: sample.value
        for family in families
        for sample in family.samples
        if sample.name == "ckptsyncd_store_calls_total"
    }
    assert calls["list"] == 1
    assert "uploads" not in calls
    assert calls["put_small"] > 4
