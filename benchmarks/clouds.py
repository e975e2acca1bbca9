"""Real servers and emulators as targets: what each speaks, and where an object is seen there.

They cost far more than an uploader does, so only the uploader's CPU time is told by them. Each is
started anew for every case, since some keep everything in memory. What they need is imported when
they are: the most memory that a peer ever had is never told as less than this process has.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote, urlsplit

from benchmarks.server import BUCKET, S3, Cloud, NotBuiltError, Target, sink

#: Only records are kept in memory: each round has names of its own.
SMALL_ONLY = ("-s", "20000")
SMALL_CASES = ("256m", "k64s")


def gcs_path(key: str) -> str:
    """Return where an object's resource is."""
    return f"/storage/v1/b/{BUCKET}/o/{quote(key, safe='')}"


GCS = Cloud("gcs", f"gs://{BUCKET}", ("--gcs-endpoint",), gcs_path, "CRC32C")
AZURE = Cloud(
    "azure",
    f"az://devstoreaccount1/{BUCKET}",
    ("--azure-endpoint",),
    lambda key: f"/devstoreaccount1/{BUCKET}/{key}",
    "MD5",
)


@contextmanager
def s3_sink(work: Path, name: str, *options: str, tls: bool) -> Iterator[Target]:
    """Run a sink that keeps records only."""
    with sink(work, name=name, tls=tls, options=(*SMALL_ONLY, *options)) as target:
        yield target


@contextmanager
def fresh(work: Path, program: str | None) -> Iterator[tuple[Path, str]]:
    """Give an empty folder and the program; NotBuiltError where that is not installed."""
    if program is None:
        msg = "it is not installed"
        raise NotBuiltError(msg)
    with tempfile.TemporaryDirectory(dir=work) as folder:
        yield Path(folder), program


@contextmanager
def seaweedfs(work: Path, name: str) -> Iterator[Target]:
    """Run SeaweedFS; objects are looked for by addresses that are signed."""
    import boto3  # noqa: PLC0415 - see above

    from tests import servers  # noqa: PLC0415

    with (
        fresh(work, servers.command("weed")) as (folder, program),
        servers.seaweedfs(program, folder) as server,
    ):
        keys = {name.lower(): value for name, value in servers.ENVIRONMENT.items()}
        client = boto3.client(
            "s3",
            endpoint_url=server.endpoint,
            aws_access_key_id=keys["aws_access_key_id"],
            aws_secret_access_key=keys["aws_secret_access_key"],
            region_name=keys["aws_default_region"],
        )

        def path(key: str) -> str:
            made = client.generate_presigned_url("head_object", {"Bucket": BUCKET, "Key": key})
            parts = urlsplit(str(made))
            return f"{parts.path}?{parts.query}"

        cloud = replace(S3, path=path, environment=servers.ENVIRONMENT)
        yield Target(name, server.endpoint, cloud=cloud)


@contextmanager
def fake_gcs(work: Path, name: str) -> Iterator[Target]:
    """Run fake-gcs-server: it has no parallel parts, and compares no checksum that it is told."""
    from tests import emulators  # noqa: PLC0415 - see above

    with (
        fresh(work, emulators.fake_gcs_program()) as (folder, program),
        emulators.fake_gcs(program, folder) as server,
    ):
        yield Target(name, server.endpoint, cloud=GCS)


@contextmanager
def azurite(work: Path, name: str) -> Iterator[Target]:
    """Run Azurite: it checks MD5, and knows no CRC64."""
    from azure.storage.blob import PublicAccess  # noqa: PLC0415 - see above

    from tests import emulators, servers  # noqa: PLC0415

    with (
        fresh(work, servers.command("azurite")) as (folder, program),
        emulators.azurite(program, folder) as server,
    ):
        with server.client() as client:
            client.set_container_access_policy({}, public_access=PublicAccess.BLOB)
        secrets = {
            "AZURE_STORAGE_KEY": server.key,
            "AZURE_STORAGE_CONNECTION_STRING": (
                f"DefaultEndpointsProtocol=http;AccountName={server.account};"
                f"AccountKey={server.key};BlobEndpoint={server.endpoint};"
            ),
        }
        yield Target(name, server.endpoint, cloud=replace(AZURE, environment=secrets))


@dataclass(frozen=True, slots=True)
class Server:
    """What stands in for a store, and the cases that are tried there."""

    name: str
    cases: tuple[str, ...]
    run: Callable[[Path, str], AbstractContextManager[Target]]
    cloud: str = "s3"
    checks_signatures: bool = False


def https(work: Path, name: str) -> AbstractContextManager[Target]:
    """Run the sink with TLS."""
    return s3_sink(work, name, tls=True)


def http(work: Path, name: str) -> AbstractContextManager[Target]:
    """Run the sink without."""
    return s3_sink(work, name, tls=False)


def far(work: Path, name: str) -> AbstractContextManager[Target]:
    """Run the sink as if it were far away."""
    return s3_sink(work, name, "-d", "30", "-r", "90", tls=True)


SERVERS = (
    Server("https", ("4g", "1g", "m16", "k64", "hf"), https),
    Server("http", ("4g", "1g", "m16", "k64"), http),
    Server("https, 30 ms an answer, 90 MB/s a connection", ("1g", "k64"), far),
    Server("SeaweedFS", SMALL_CASES, seaweedfs, checks_signatures=True),
    Server("fake-gcs-server", SMALL_CASES, fake_gcs, "gcs"),
    Server("Azurite", SMALL_CASES, azurite, "azure"),
)
