"""The sink, built and started: an S3 server that costs little, so that the sender is measured."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.meter import cpu_of

HERE = Path(__file__).parent / "sink"
BUCKET = "bucket"
READY_SECONDS = 20.0

#: What every client needs to know; the sink checks no signature.
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "benchmark",
    "AWS_SECRET_ACCESS_KEY": "benchmark",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}


class NotBuiltError(Exception):
    """A server cannot be had here; says what is missing."""


@dataclass(frozen=True, slots=True)
class Cloud:
    """Whose store a server stands in for: what our daemon is told of it, and what it checks.

    ``flags``: the daemon's options, the endpoint behind the first of them. ``path`` of a key is
    where the server shows whether it is there.
    """

    name: str
    url: str
    flags: tuple[str, ...]
    path: Callable[[str], str]
    checks: str
    environment: Mapping[str, str] = field(default_factory=dict)


S3 = Cloud(
    "s3",
    f"s3://{BUCKET}",
    ("--s3-endpoint", "--s3-path-style"),
    lambda key: f"/{BUCKET}/{key}",
    "CRC64",
    ENVIRONMENT,
)


def build(folder: Path) -> Path:
    """Compile the sink into a folder; NotBuiltError where compiler or headers are missing."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        msg = "no C compiler is installed"
        raise NotBuiltError(msg)
    made = folder / "sink"
    libraries = ["-lssl", "-lcrypto", "-lz", "-lpthread"]
    command = [compiler, "-O2", "-o", str(made), str(HERE / "sink.c"), *libraries]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        msg = f"the sink cannot be compiled: {done.stderr[-500:]}"
        raise NotBuiltError(msg)
    return made


def certificate(folder: Path) -> tuple[Path, Path]:
    """Return a certificate for the loopback address, made for a day where there is none."""
    cert, key = folder / "cert.pem", folder / "key.pem"
    if cert.exists():
        return cert, key
    names = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"]
    kind = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1"]
    command = ["openssl", "req", *kind, *names, "-keyout", str(key), "-out", str(cert)]
    subprocess.run(command, capture_output=True, check=True)
    return cert, key


@dataclass(frozen=True, slots=True)
class Target:
    """A running server: where it listens, whom to trust, and which process it is (0: unknown)."""

    name: str
    endpoint: str
    pid: int = 0
    cert: str = ""
    cloud: Cloud = S3

    @property
    def environment(self) -> dict[str, str]:
        """What a client's process needs."""
        trust = {"AWS_CA_BUNDLE": self.cert, "SSL_CERT_FILE": self.cert} if self.cert else {}
        return {**self.cloud.environment, **trust}

    def cpu_seconds(self) -> float:
        """Return what it has spent so far."""
        return cpu_of(self.pid) if self.pid else 0.0

    @property
    def address(self) -> tuple[str, int]:
        """Host and port."""
        where = urlsplit(self.endpoint)
        return where.hostname or "", where.port or 0

    def connect(self) -> http.client.HTTPConnection:
        """Return a connection that looks behind the uploader."""
        host, port = self.address
        if not self.cert:
            return http.client.HTTPConnection(host, port, timeout=READY_SECONDS)
        context = trusting(self.cert)
        return http.client.HTTPSConnection(host, port, timeout=READY_SECONDS, context=context)

    def counts(self) -> dict[str, int]:
        """Return how many requests and bytes came, how many checksums were checked or refused."""
        connection = self.connect()
        connection.request("GET", "/_counts")
        found: dict[str, int] = json.loads(connection.getresponse().read())
        connection.close()
        return found


@cache
def trusting(cert: str) -> ssl.SSLContext:
    """Return a context that trusts this certificate alone."""
    return ssl.create_default_context(cafile=cert)


def free_port() -> int:
    """Return a port that was free a moment ago."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def answers(address: tuple[str, int], process: subprocess.Popen[bytes]) -> None:
    """Wait until somebody listens there."""
    deadline = time.monotonic() + READY_SECONDS
    pause = threading.Event()
    while process.poll() is None and time.monotonic() < deadline:
        with socket.socket() as one:
            if one.connect_ex(address) == 0:
                return
        pause.wait(0.01)
    msg = f"nobody listens at {address}"
    raise NotBuiltError(msg)


@contextmanager
def sink(
    folder: Path, *, name: str, tls: bool = False, options: tuple[str, ...] = ()
) -> Iterator[Target]:
    """Run a sink; ``options`` are those of its own command line."""
    program = folder / "sink"
    if not program.exists():
        build(folder)
    port, cert = free_port(), ""
    arguments = [str(program), *options]
    if tls:
        cert_path, key = certificate(folder)
        cert = str(cert_path)
        arguments += ["-c", cert, "-k", str(key)]
    with subprocess.Popen([*arguments, str(port)]) as process:
        try:
            answers(("127.0.0.1", port), process)
            scheme = "https" if tls else "http"
            yield Target(name, f"{scheme}://127.0.0.1:{port}", process.pid, cert)
        finally:
            if process.poll() is None:
                os.kill(process.pid, signal.SIGKILL)
