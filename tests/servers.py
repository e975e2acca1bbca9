"""Real storage servers for the tests, on loopback ports of their own, stopped by the session."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

ACCESS_KEY = "testaccess"
SECRET_KEY = "testsecret123"  # noqa: S105 - known to nobody but servers that live for one test run
#: Another key of the same rights, to be rotated to. Its secret is the same.
NEXT_ACCESS_KEY = "nextaccess"

#: s3rver's only key, which is its secret too.
S3RVER_KEY = "S3RVER"

#: What a process needs in its environment to speak to any server of this page.
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": ACCESS_KEY,
    "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}

#: A server that is not ready by then will not be (SeaweedFS took 3 to 5 s when this was written).
READY_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class S3Server:
    """A running S3 server with an empty bucket. Credentials are mostly ``ENVIRONMENT``'s."""

    name: str
    endpoint: str
    bucket: str
    access_key: str = ACCESS_KEY
    secret_key: str = SECRET_KEY

    def objects(self, prefix: str) -> dict[str, bytes]:
        """Return what is stored below a prefix, read with a plain client; records' bytes only."""
        client = boto3.client(
            "s3", endpoint_url=self.endpoint, config=Config(s3={"addressing_style": "path"})
        )
        pages = client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=prefix)
        found = {row["Key"]: b"" for page in pages for row in page.get("Contents", ())}
        for key in found:
            if key.endswith(".json"):
                found[key] = client.get_object(Bucket=self.bucket, Key=key)["Body"].read()
        return {key[len(prefix) :]: data for key, data in found.items()}


def command(name: str) -> str | None:
    """Return where a server's program is: beside this Python, or on PATH."""
    beside = Path(sys.executable).with_name(name)
    return str(beside) if beside.exists() else shutil.which(name)


def free_ports(count: int) -> list[int]:
    """Return ports that were free a moment ago."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def until(ready: Callable[[], bool], seconds: float = READY_SECONDS) -> bool:
    """Ask again and again whether something is ready; False where it is not in time."""
    pause = threading.Event()
    deadline = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > deadline:
            return False
        pause.wait(0.05)
    return True


#: Runs a program that ends when this process does, even if that is killed: then the pipe closes.
TIED = """
exec 3<&0
"$@" </dev/null 3<&- & child=$!
{ read -r _ <&3; kill -KILL $child 2>/dev/null; } &
exec 3<&-
wait $child
"""


@contextmanager
def running(arguments: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program in a session of its own, its output in ``log``, and end it and its children.

    It also ends where this process is killed and nothing here runs any more.
    """
    with (
        log.open("wb") as output,
        subprocess.Popen(
            ["sh", "-c", TIED, "sh", *arguments],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, "GRPC_GO_LOG_SEVERITY_LEVEL": "ERROR"},
        ) as process,
    ):
        try:
            yield process
        finally:
            stop(process)


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a program and its children at once: whatever they hold is thrown away anyway."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def client(endpoint: str, access_key: str = "", secret_key: str = "") -> Any:
    """Return a plain S3 client, with the environment's credentials, to look behind the store."""
    return boto3.client(
        "s3",
        aws_access_key_id=access_key or None,
        aws_secret_access_key=secret_key or None,
        endpoint_url=endpoint,
        region_name="us-east-1",
        config=Config(
            retries={"total_max_attempts": 1},
            request_checksum_calculation="when_required",
            connect_timeout=5,
            read_timeout=20,
            s3={"addressing_style": "path"},
        ),
    )


def answers(server: S3Server, process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until the server keeps what it is given; leave its bucket empty."""
    s3 = client(server.endpoint, server.access_key, server.secret_key)

    def keeps() -> bool:
        if process.poll() is not None:
            msg = f"{server.name} ended: {log.read_text(errors='replace')[-2000:]}"
            raise RuntimeError(msg)
        try:
            s3.create_bucket(Bucket=server.bucket)
            s3.put_object(Bucket=server.bucket, Key="ready", Body=b"?")
            s3.delete_object(Bucket=server.bucket, Key="ready")
        except (BotoCoreError, ClientError):
            return False
        return True

    try:
        if not until(keeps):
            msg = f"{server.name} did not get ready: {log.read_text(errors='replace')[-2000:]}"
            raise RuntimeError(msg)
    finally:
        s3.close()


@contextmanager
def seaweedfs(weed: str, folder: Path) -> Iterator[S3Server]:
    """Run SeaweedFS: it checks signatures, every checksum and every condition."""
    ports = free_ports(8)
    s3, s3_grpc, master, master_grpc, volume, volume_grpc, filer, filer_grpc = ports
    config = folder / "s3.json"
    identity = {
        "name": "tests",
        "credentials": [
            {"accessKey": name, "secretKey": SECRET_KEY} for name in (ACCESS_KEY, NEXT_ACCESS_KEY)
        ],
        "actions": ["Admin", "Read", "Write", "List", "Tagging"],
    }
    config.write_text(json.dumps({"identities": [identity]}))
    data = folder / "data"
    data.mkdir()
    arguments = [
        weed, "-logtostderr=true", "server", f"-dir={data}",
        "-ip=127.0.0.1", "-ip.bind=127.0.0.1",
        f"-master.port={master}", f"-master.port.grpc={master_grpc}",
        "-master.volumeSizeLimitMB=1024", "-master.volumePreallocate=false",
        "-master.telemetry=false",
        f"-volume.port={volume}", f"-volume.port.grpc={volume_grpc}",
        "-volume.max=0", "-volume.minFreeSpace=1",
        "-filer", f"-filer.port={filer}", f"-filer.port.grpc={filer_grpc}",
        "-s3", f"-s3.port={s3}", f"-s3.port.grpc={s3_grpc}",
        "-s3.port.iceberg=0", "-s3.port.lance=0",
        f"-s3.config={config}",
    ]  # fmt: skip
    server = S3Server("seaweedfs", f"http://127.0.0.1:{s3}", "bucket")
    log = folder / "weed.log"
    with running(arguments, log) as process:
        answers(server, process, log)
        yield server


@contextmanager
def nanio(program: str, folder: Path) -> Iterator[S3Server]:
    """Run nanio: it checks signatures, and stores framed bodies with their framing."""
    (port,) = free_ports(1)
    server = S3Server("nanio", f"http://127.0.0.1:{port}", "bucket")
    log = folder / "nanio.log"
    arguments = [
        "env", f"NANIO_ACCESS_KEY={ACCESS_KEY}", f"NANIO_SECRET_KEY={SECRET_KEY}", program,
        "serve", "--data-dir", str(folder / "data"), "--host", "127.0.0.1", "--port", str(port),
        "--log-level", "warning", "--no-access-log",
    ]  # fmt: skip
    with running(arguments, log) as process:
        answers(server, process, log)
        yield server


@contextmanager
def s3rver(program: str, folder: Path) -> Iterator[S3Server]:
    """Run s3rver: it checks nothing, and stores framed bodies with their framing."""
    (port,) = free_ports(1)
    server = S3Server("s3rver", f"http://127.0.0.1:{port}", "bucket", S3RVER_KEY, S3RVER_KEY)
    log = folder / "s3rver.log"
    data = folder / "data"
    data.mkdir()
    arguments = [
        program, "-d", str(data), "-a", "127.0.0.1", "-p", str(port), "--no-vhost-buckets", "-s",
    ]  # fmt: skip
    with running(arguments, log) as process:
        answers(server, process, log)
        yield server


@contextmanager
def moto(moto_server: str, folder: Path) -> Iterator[S3Server]:
    """Run moto: in memory, it refuses no wrong checksum and no wrong signature."""
    (port,) = free_ports(1)
    server = S3Server("moto", f"http://127.0.0.1:{port}", "bucket")
    log = folder / "moto.log"
    with running([moto_server, "-H", "127.0.0.1", "-p", str(port)], log) as process:
        answers(server, process, log)
        yield server
