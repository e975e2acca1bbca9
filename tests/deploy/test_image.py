"""The image is built from the Dockerfile and does its work without rights, on a read-only root."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.image import BASE, IMAGE, Container, Images, bundled, missing
from tests.process.program import until
from tests.process.saving import trainer_checkpoint

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(missing()), reason=missing() or "-")]

#: What the program adds to its base, all three clouds' SDKs included.
MOST_ADDED_BYTES = 100e6
WATCHED = "/checkpoints"
PLACES = {"/run/ckptsyncd": None, "/var/lib/ckptsyncd": None}


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Images]:
    """Build base and image in a storage of their own."""
    made = Images(tmp_path_factory.mktemp("images"))
    made.make_base()
    made.build()
    yield made
    shutil.rmtree(made.directory, ignore_errors=True)


@pytest.fixture
def container(images: Images, tmp_path: Path) -> Iterator[Container]:
    """Prepare a container with a watch root and a destination that its user may write."""
    config = images.config()
    user, group = (int(number) for number in config["User"].split(":"))
    mounts: dict[str, Path | None] = dict(PLACES)
    for inside in (WATCHED, "/durable"):
        outside = tmp_path / inside.strip("/")
        outside.mkdir()
        os.chown(outside, user, group)
        mounts[inside] = outside
    with images.mounted() as root:
        for inside in mounts:
            (root / inside.strip("/")).mkdir(parents=True, exist_ok=True)
        made = bundled(tmp_path / f"ckptsyncd-{os.getpid()}", root, config, mounts)
        yield made
        made.remove()


def saved(tmp_path: Path, step: int) -> None:
    """Save a checkpoint as the trainer in another container of the same user does."""
    folder = trainer_checkpoint(tmp_path / "checkpoints", step)
    like = (tmp_path / "checkpoints").stat()
    for path in (folder, *folder.iterdir()):
        path.chmod(0o700 if path.is_dir() else 0o600)
        os.chown(path, like.st_uid, like.st_gid)


def events(log: Path) -> dict[str, dict[str, Any]]:
    """Return the last line of each event."""
    lines = (json.loads(line) for line in log.read_text().splitlines() if line.startswith("{"))
    return {line["event"]: line for line in lines}


def test_the_image_says_how_it_is_run(images: Images) -> None:
    """User, stop signal, health check and volumes are in the image, and it is small."""
    config = images.config()
    assert config["User"] == "1000:1000"
    assert config["StopSignal"] == "SIGTERM"
    assert config["Healthcheck"]["Test"][-2:] == ["--probe", "healthz"]
    assert set(config["Volumes"]) == set(PLACES)
    assert not any("secret" in line.lower() for line in config["Env"])
    assert images.bytes(IMAGE) - images.bytes(BASE) < MOST_ADDED_BYTES


def test_a_container_syncs_and_drains(images: Images, container: Container, tmp_path: Path) -> None:
    """Read-only, with no rights, as the first process: healthy, in step, and drained on SIGTERM."""
    config = images.config()
    log = tmp_path / "log"
    url = "file:///durable"
    process = container.start([*config["Entrypoint"], "run", WATCHED, url], log)
    check = config["Healthcheck"]["Test"][1:]
    until(
        lambda: container.execute(*check).returncode == 0 or process.poll() is not None,
        "the health check passes",
    )
    assert process.poll() is None, log.read_text()
    saved(tmp_path, 1)
    until(lambda: "checkpoint.safe" in events(log), f"step 1 is safe: {log.read_text()[-2000:]}")
    status = container.execute(*config["Entrypoint"], "status", "--json")
    assert json.loads(status.stdout)["daemon"]["pid"] == 1
    refused = container.execute("/opt/ckptsyncd/bin/python", "-c", "open('/x', 'w')")
    assert "Read-only file system" in refused.stderr
    saved(tmp_path, 2)
    container.signal("TERM")
    assert process.wait(60) == 0, log.read_text()[-2000:]
    assert events(log)["checkpoint.safe"]["step"] == 2
    assert events(log)["daemon.stopped"]["exit_code"] == 0
    listed = {path.name for path in (tmp_path / "durable").iterdir()}
    assert {"checkpoint-1", "checkpoint-2"} <= listed


def test_every_destination_is_in_the_image(images: Images, container: Container) -> None:
    """The SDKs of all three clouds can be imported: nothing that they need was slimmed away."""
    script = "import boto3; boto3.client('s3', 'eu-west-1'); boto3.client('sts', 'eu-west-1')"
    script += "; import google.cloud.storage, azure.storage.blob, azure.identity; print('all')"
    log = container.bundle / "log"
    process = container.start(["/opt/ckptsyncd/bin/python", "-c", script], log)
    assert (process.wait(60), log.read_text()) == (0, "all\n")
    assert images.config()["Entrypoint"] == ["/opt/ckptsyncd/bin/ckptsyncd"]
