"""kill -9 at every phase: nothing safe is sent again, nothing is lost, nothing is left over."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import boto3
import pytest
from botocore.config import Config

from tests.process.conftest import Start
from tests.process.program import Program, command, until
from tests.process.saving import MIB, by_rename, content
from tests.proxy import Proxy
from tests.servers import S3Server

#: Where the daemon is killed: the request that is held when it happens.
PHASES = {
    "between pieces": ("PUT", r"partNumber=4(&|$)"),
    "before finish": ("POST", r"big\.pt\?uploadId="),
    "before manifest": ("PUT", r"/manifests/"),
    "before latest": ("PUT", r"/latest/"),
    "before claim": ("PUT", r"/claims/"),
}
SIZE = 40 * MIB
PIECE = 5 * MIB


def has_sent(daemon: Program, least_bytes: int) -> bool:
    """Return whether the daemon has sent so many bytes since it started."""
    return int((daemon.status() or {}).get("bytes_sent", 0)) >= least_bytes


def begun_uploads(server: S3Server, prefix: str) -> list[str]:
    """Return the keys of begun uploads below a prefix, asked without the program."""
    client = boto3.client(
        "s3", endpoint_url=server.endpoint, config=Config(s3={"addressing_style": "path"})
    )
    folder = urlsplit(prefix).path.strip("/")
    answer = client.list_multipart_uploads(Bucket=server.bucket, Prefix=folder)
    return [upload["Key"] for upload in answer.get("Uploads", [])]


@pytest.mark.server
@pytest.mark.parametrize("phase", PHASES)
def test_a_killed_daemon_goes_on_where_it_was(
    phase: str,
    tmp_path: Path,
    root: Path,
    program: Start,
    proxy: Proxy,
    s3_server: S3Server,
    prefix: str,
) -> None:
    """After kill -9 in this phase the same command ends with a safe checkpoint, sent once."""
    options = (
        "--s3-endpoint", proxy.endpoint, "--s3-path-style", "--piece-bytes", "5MiB",
        "--hands", "2",
    )  # fmt: skip
    method, target = PHASES[phase]
    held = proxy.rule("hold", method, target)
    daemon = program(root, prefix, *options).start()
    root.mkdir(exist_ok=True)
    by_rename(root / "big.pt", SIZE, 1)
    until(held.reached.is_set, lambda: f"the request {phase} is held\n{daemon.log[-2000:]}")
    daemon.kill()
    held.release.set()
    sent_before = proxy.data_bytes(r"/big\.pt")
    daemon.start()
    daemon.until_safe("big.pt")
    assert daemon.stop() == 0
    size = (root / "big.pt").stat().st_size
    # What was on its way when the daemon died may be sent again: one piece for each hand.
    assert size <= proxy.data_bytes(r"/big\.pt") <= size + 2 * PIECE + 16 * 1024
    if phase.startswith("before") and phase != "before claim":
        assert sent_before >= size
    assert begun_uploads(s3_server, prefix) == []
    back = command("restore", prefix, str(tmp_path / "back"), *options[:3])
    assert back.returncode == 0, back.stderr
    assert content(tmp_path / "back") == content(root)


@pytest.mark.server
def test_killed_while_settling(
    tmp_path: Path, root: Path, program: Start, s3_server: S3Server, prefix: str
) -> None:
    """A daemon that is killed before a checkpoint settled finds it by looking when it returns."""
    options = ("--s3-endpoint", s3_server.endpoint, "--s3-path-style")
    daemon = program(root, prefix, *options, "--quiet-seconds", "3").start()
    root.mkdir(exist_ok=True)
    (root / "model.bin").write_bytes(b"x" * MIB)
    until(lambda: daemon.states().get(("model.bin", 1)) == "writing", "it is seen")
    daemon.kill()
    daemon.start()
    daemon.until_safe("model.bin")
    assert daemon.stop() == 0
    back = command("restore", prefix, str(tmp_path / "back"), *options)
    assert back.returncode == 0, back.stderr
    assert content(tmp_path / "back") == content(root)


def test_a_killed_daemon_writes_no_piece_again_on_a_volume(
    root: Path, tmp_path: Path, durable: str, program: Start
) -> None:
    """After kill -9 in mid-file only the pieces are written that the ledger does not have."""
    options = ("--piece-bytes", "1MiB", "--hands", "2", "--bandwidth", "8MiB/s")
    daemon = program(root, durable, *options).start()
    root.mkdir(exist_ok=True)
    by_rename(root / "big.pt", SIZE, 1)
    until(lambda: has_sent(daemon, 8 * MIB), "eight pieces are stored")
    stored = int((daemon.status() or {})["bytes_sent"])
    daemon.kill()
    (data,) = (tmp_path / "durable/.ckptsyncd/tmp").glob("*/data")
    inode = data.stat().st_ino
    daemon.options = options[:4]
    daemon.start()
    daemon.until_safe("big.pt")
    status = daemon.status() or {}
    size = (root / "big.pt").stat().st_size
    # What was on its way when the daemon died may be written again: one piece for each hand.
    assert 0 < status["bytes_sent"] <= size - stored + 2 * MIB
    assert (tmp_path / "durable/big.pt").stat().st_ino == inode


@pytest.mark.parametrize("delay", range(4))
def test_killed_again_and_again_on_a_volume(
    delay: int, root: Path, tmp_path: Path, durable: str, program: Start
) -> None:
    """Killed at a new moment at every start, the daemon still gets everything there, whole."""
    daemon = program(root, durable, "--piece-bytes", "1MiB")
    for kill in range(3):
        daemon.start()
        root.mkdir(exist_ok=True)
        by_rename(root / f"ckpt-{kill}.pt", SIZE, kill)
        until(partial(has_sent, daemon, (100 * delay + 30 * kill) * 1024), "some bytes are sent")
        daemon.kill()
    daemon.start()
    for kill in range(3):
        daemon.until_safe(f"ckpt-{kill}.pt")
    assert daemon.stop() == 0
    workroom = tmp_path / "durable/.ckptsyncd/tmp"
    assert [path for path in workroom.iterdir() if path.is_dir()] == []
    assert command("verify", durable, "--level", "full").returncode == 0
