"""The compose file: valid, and in step with the program and the image."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from ckptsyncd.cli.program import group
from ckptsyncd.settings import load
from ckptsyncd.settings.amounts import Duration

compose_spec = pytest.importorskip("compose_spec")

DOCKER = Path(__file__).parent.parent.parent / "docker"
FILE = DOCKER / "docker-compose.yaml"


def composed() -> dict[str, Any]:
    """Return the compose file with its anchors resolved."""
    found: dict[str, Any] = yaml.safe_load(FILE.read_text())
    return found


def judged(document: dict[str, Any]) -> None:
    """Let the specification judge; raises where it does not fit."""
    made = compose_spec.PyCompose.from_json(json.dumps(document))
    made.validate()
    made.to_spec()


def test_the_file_fits_the_specification() -> None:
    """Every key is known, every volume and config that is used is there; a slip is noticed."""
    document = composed()
    judged(document)
    document["services"]["sidecar"]["stop_grace_perio"] = "60s"
    with pytest.raises(ValueError, match="stop_grace_perio"):
        judged(document)


def test_commands_can_be_typed(tmp_path: Path) -> None:
    """The commands of ours parse, the settings are accepted, and the stop fits into the grace."""
    services = composed()["services"]
    for name in ("restore", "sidecar"):
        line = services[name]["command"]
        command = group.get_command(click.Context(group), line[0])
        assert command is not None
        command.make_context(line[0], line[1:])
    environ = {**services["sidecar"]["environment"], "CKPTSYNCD_DIR": str(tmp_path)}
    settings = load({"socket": "/run/s", "state_dir": "/s"}, environ).settings
    grace = Duration(0.0, 1e9).parse(services["sidecar"]["stop_grace_period"])
    assert settings.stop_timeout + 5 <= grace


def test_prometheus_finds_the_sidecar(tmp_path: Path) -> None:
    """Name and port that are scraped are those of the service."""
    config = yaml.safe_load((DOCKER / "prometheus" / "prometheus.yaml").read_text())
    (target,) = config["scrape_configs"][0]["static_configs"][0]["targets"]
    name, port = target.split(":")
    assert composed()["services"][name]["environment"]["CKPTSYNCD_METRICS_PORT"] == port
    del tmp_path


def test_whoever_touches_checkpoints_is_the_same_user() -> None:
    """Trainer, restore and sidecar run as the user of the image, on read-only roots."""
    user = re.search(r"^ARG UID=(\d+)$", (DOCKER / "Dockerfile").read_text(), re.MULTILINE)
    assert user
    for name in ("restore", "trainer", "sidecar"):
        service = composed()["services"][name]
        assert service["user"] == f"{user[1]}:{user[1]}"
        assert service["read_only"] is True


def test_files_that_are_mounted_exist() -> None:
    """No path of this directory is mounted that is not there."""
    for service in composed()["services"].values():
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            assert not source.startswith("./") or (DOCKER / source).exists(), source
