"""The SDKs' own ways to upload: ``python -m benchmarks.uploaders NAME ENDPOINT PREFIX DIR``.

Each measures itself after its imports, since a daemon pays those once, and prints what it cost.
"""

from __future__ import annotations

import http.client
import json
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any
from urllib.parse import urlsplit

BUCKET = "bucket"
MIB = 1024 * 1024
#: Many small files are handed to an SDK by a pool of threads, as its own documentation shows it.
FILES_AT_ONCE = 10
Upload = Callable[[list[Path]], object]


def boto3_client(**options: Any) -> Any:
    """Return a client as boto3 makes it, for an endpoint with the bucket in its path."""
    import boto3  # noqa: PLC0415 - each process loads what it measures
    from botocore.config import Config  # noqa: PLC0415

    s3 = {"addressing_style": "path", **options.pop("s3", {})}
    options["max_pool_connections"] = 4 * FILES_AT_ONCE
    return boto3.client("s3", endpoint_url=sys.argv[2], config=Config(s3=s3, **options))


def boto3_by(client: Any, prefix: str, **options: Any) -> Upload:
    """Return ``upload_file`` of a client, for so many files at once as people let it be."""
    return pooled(
        lambda file: client.upload_file(str(file), BUCKET, f"{prefix}/{file.name}", **options)
    )


def boto3_as_it_comes(prefix: str) -> Upload:
    """Upload by ``upload_file`` with its defaults: a CRC32 of each part, checked there."""
    return boto3_by(boto3_client(), prefix)


def boto3_crc64(prefix: str) -> Upload:
    """Upload by ``upload_file`` with CRC64-NVME, in larger parts: checked there, few requests."""
    from boto3.s3.transfer import TransferConfig  # noqa: PLC0415

    client = boto3_client(s3={"payload_signing_enabled": False})
    config = TransferConfig(
        multipart_threshold=64 * MIB, multipart_chunksize=64 * MIB, max_concurrency=4
    )
    extra = {"ChecksumAlgorithm": "CRC64NVME"}
    return boto3_by(client, prefix, ExtraArgs=extra, Config=config)


def boto3_tuned(prefix: str) -> Upload:
    """Upload by ``upload_file`` as fast as its settings make it: nothing is checked."""
    from boto3.s3.transfer import TransferConfig  # noqa: PLC0415

    client = boto3_client(
        request_checksum_calculation="when_required", s3={"payload_signing_enabled": False}
    )
    config = TransferConfig(
        multipart_threshold=64 * MIB, multipart_chunksize=64 * MIB, max_concurrency=4
    )
    return boto3_by(client, prefix, Config=config)


def obstore_with(prefix: str, *, signed: bool) -> Upload:
    """Upload by obstore (Rust); it signs a SHA-256 of each part, or checks nothing."""
    return obstore_into(obstore_s3({} if signed else {"unsigned_payload": True}), prefix)


def obstore_s3(config: dict[str, Any]) -> Any:
    """Return the bucket as obstore has it."""
    from obstore.store import S3Store  # noqa: PLC0415

    options: dict[str, Any] = {"allow_http": True, "timeout": "300s"}
    if os.environ.get("AWS_CA_BUNDLE"):
        options["allow_invalid_certificates"] = True
    return S3Store(
        BUCKET,
        endpoint=sys.argv[2],
        access_key_id=os.environ["AWS_ACCESS_KEY_ID"],
        secret_access_key=os.environ["AWS_SECRET_ACCESS_KEY"],
        region="us-east-1",
        virtual_hosted_style_request=False,
        client_options=options,
        config=config,
    )


def obstore_into(store: Any, prefix: str) -> Upload:
    """Return how obstore puts files into a store, four at once."""
    import asyncio  # noqa: PLC0415

    from obstore import put_async  # noqa: PLC0415

    async def all_of(files: list[Path]) -> None:
        turns = asyncio.Semaphore(4)

        async def one(file: Path) -> None:
            async with turns:
                await put_async(store, f"{prefix}/{file.name}", file)

        await asyncio.gather(*(one(file) for file in files))

    return lambda files: asyncio.run(all_of(files))


def obstore_as_it_comes(prefix: str) -> Upload:
    """Upload with payloads signed."""
    return obstore_with(prefix, signed=True)


def obstore_unsigned(prefix: str) -> Upload:
    """Upload with nothing checked."""
    return obstore_with(prefix, signed=False)


def awscrt_crc64(prefix: str) -> Upload:
    """Upload by awscrt's S3Client with CRC64-NVME trailers: checked there."""
    from awscrt import auth, io, s3  # noqa: PLC0415
    from awscrt.http import HttpHeaders, HttpRequest  # noqa: PLC0415

    where = urlsplit(sys.argv[2])
    group = io.EventLoopGroup()
    bootstrap = io.ClientBootstrap(group, io.DefaultHostResolver(group))
    keys = [os.environ[f"AWS_{name}"] for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY")]
    provider = auth.AwsCredentialsProvider.new_static(*keys)
    made: dict[str, Any] = {"tls_mode": s3.S3RequestTlsMode.DISABLED}
    if where.scheme == "https":
        trust = io.TlsContextOptions()
        trust.override_default_trust_store_from_path(None, os.environ["AWS_CA_BUNDLE"])
        connection = io.ClientTlsContext(trust).new_connection_options()
        made = {"tls_mode": s3.S3RequestTlsMode.ENABLED, "tls_connection_options": connection}
    client = s3.S3Client(
        bootstrap=bootstrap,
        region="us-east-1",
        signing_config=s3.create_default_s3_signing_config(
            region="us-east-1", credential_provider=provider
        ),
        part_size=8 * MIB,
        **made,
    )
    sums = s3.S3ChecksumConfig(
        algorithm=s3.S3ChecksumAlgorithm.CRC64NVME, location=s3.S3ChecksumLocation.TRAILER
    )

    def begin(file: Path) -> Any:
        headers = HttpHeaders([("host", where.netloc), ("content-type", "binary/octet-stream")])
        headers.add("content-length", str(file.stat().st_size))
        request = HttpRequest("PUT", f"/{BUCKET}/{prefix}/{file.name}", headers)
        kind = s3.S3RequestType.PUT_OBJECT
        return client.make_request(
            type=kind, request=request, send_filepath=str(file), checksum_config=sums
        ).finished_future

    def all_of(files: list[Path]) -> None:
        for begun in [begin(file) for file in files]:
            begun.result()

    return all_of


Range = tuple[Path, int, int]


def raw(prefix: str) -> Upload:
    """Read, sum and write in large steps on two connections: what no uploader can be below."""

    def all_of(files: list[Path]) -> None:
        work: SimpleQueue[Range] = SimpleQueue()
        for file in files:
            size = file.stat().st_size
            for offset in range(0, size, 64 * MIB):
                work.put((file, offset, min(64 * MIB, size - offset)))
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda _: raw_worker(prefix, work), range(2)))

    return all_of


def raw_worker(prefix: str, work: SimpleQueue[Range]) -> None:
    """Send ranges of files until there are none."""
    connection, block = raw_connection(), memoryview(bytearray(MIB))
    with suppress(Empty):
        while True:
            raw_send(connection, prefix, work.get_nowait(), block)


def raw_connection() -> http.client.HTTPConnection:
    """Connect to the endpoint."""
    from benchmarks.server import trusting  # noqa: PLC0415

    where = urlsplit(sys.argv[2])
    if where.scheme == "https":
        context = trusting(os.environ["AWS_CA_BUNDLE"])
        return http.client.HTTPSConnection(where.hostname or "", where.port, context=context)
    return http.client.HTTPConnection(where.hostname or "", where.port)


def raw_send(
    connection: http.client.HTTPConnection, prefix: str, one: Range, block: memoryview
) -> None:
    """Send one range of a file as an object, and sum it on the way."""
    from awscrt import checksums  # noqa: PLC0415

    file, offset, length = one
    connection.putrequest("PUT", f"/{BUCKET}/{prefix}/{file.name}-{offset}")
    connection.putheader("Content-Length", str(length))
    connection.endheaders()
    total, end = 0, offset + length
    with file.open("rb", buffering=0) as source:
        while offset < end:
            step = block[: min(MIB, end - offset)]
            offset += os.preadv(source.fileno(), [step], offset)
            total = checksums.crc64nvme(step, total)
            connection.send(step)
    answer = connection.getresponse()
    answer.read()
    if answer.status != http.client.OK:
        msg = f"a server that wants signatures is not measured like this: {answer.status}"
        raise OSError(msg)


def azure_sdk(prefix: str) -> Upload:
    """Upload by azure-storage-blob: four connections for a file, ten files at once."""
    return azure_with(prefix, is_checked=False)


def azure_md5(prefix: str) -> Upload:
    """Upload with an MD5 of every block, which the server compares."""
    return azure_with(prefix, is_checked=True)


def azure_with(prefix: str, *, is_checked: bool) -> Upload:
    """Upload by ``upload_blob``."""
    from azure.storage.blob import ContainerClient  # noqa: PLC0415

    container = ContainerClient.from_connection_string(
        os.environ["AZURE_STORAGE_CONNECTION_STRING"], BUCKET
    )

    def one(file: Path) -> None:
        more: dict[str, Any] = {"validate_content": True} if is_checked else {}
        with file.open("rb") as data:
            container.upload_blob(
                f"{prefix}/{file.name}", data, overwrite=True, max_concurrency=4, **more
            )

    return pooled(one)


def pooled(one: Callable[[Path], object]) -> Upload:
    """Return how files are uploaded by a pool of threads."""

    def all_of(files: list[Path]) -> None:
        with ThreadPoolExecutor(min(FILES_AT_ONCE, len(files))) as pool:
            list(pool.map(one, files))

    return all_of


def gcs_bucket() -> Any:
    """Return the bucket as google-cloud-storage has it."""
    from google.auth.credentials import AnonymousCredentials  # noqa: PLC0415
    from google.cloud import storage  # noqa: PLC0415

    client = storage.Client(
        project="p",
        credentials=AnonymousCredentials(),
        client_options={"api_endpoint": sys.argv[2]},
    )
    return client.bucket(BUCKET)


def gcs_sdk(prefix: str) -> Upload:
    """Upload by ``upload_from_filename``: resumable where large, whole where small."""
    bucket = gcs_bucket()
    return pooled(lambda file: bucket.blob(f"{prefix}/{file.name}").upload_from_filename(str(file)))


def gcs_many(prefix: str) -> Upload:
    """Upload by ``transfer_manager.upload_many``, in threads."""
    from google.cloud.storage import transfer_manager  # noqa: PLC0415

    bucket = gcs_bucket()
    return lambda files: transfer_manager.upload_many(
        [(str(file), bucket.blob(f"{prefix}/{file.name}")) for file in files],
        worker_type=transfer_manager.THREAD,
        max_workers=FILES_AT_ONCE,
        raise_exception=True,
    )


def obstore_azure(prefix: str) -> Upload:
    """Upload by obstore to Azure."""
    from obstore.store import AzureStore  # noqa: PLC0415

    store = AzureStore(
        container_name=BUCKET,
        account_name="devstoreaccount1",
        account_key=os.environ["AZURE_STORAGE_KEY"],
        endpoint=sys.argv[2],
        client_options={"allow_http": True, "timeout": "300s"},
    )
    return obstore_into(store, prefix)


def obstore_gcs(prefix: str) -> Upload:
    """Upload by obstore to Google Cloud Storage, by its XML API."""
    from obstore.store import GCSStore  # noqa: PLC0415

    key = json.dumps({"gcs_base_url": sys.argv[2], "disable_oauth": True, "client_email": ""})
    store = GCSStore(
        BUCKET,
        service_account_key=key[:-1] + ', "private_key": "", "private_key_id": ""}',
        client_options={"allow_http": True, "timeout": "300s"},
    )
    return obstore_into(store, prefix)


KINDS: dict[str, Callable[[str], Upload]] = {
    "boto3": boto3_as_it_comes,
    "boto3-crc64": boto3_crc64,
    "boto3-tuned": boto3_tuned,
    "obstore": obstore_as_it_comes,
    "obstore-unsigned": obstore_unsigned,
    "awscrt-crc64": awscrt_crc64,
    "azure": azure_sdk,
    "azure-md5": azure_md5,
    "obstore-azure": obstore_azure,
    "gcs": gcs_sdk,
    "gcs-many": gcs_many,
    "obstore-gcs": obstore_gcs,
    "raw": raw,
}


def main() -> None:
    """Upload one folder and print what that cost."""
    name, prefix, folder = sys.argv[1], sys.argv[3], Path(sys.argv[4])
    files = sorted(folder.iterdir())
    upload = KINDS[name](prefix)
    wall, cpu = time.perf_counter(), time.process_time()
    upload(files)
    cost = {
        "wall_seconds": time.perf_counter() - wall,
        "cpu_seconds": time.process_time() - cpu,
    }
    sys.stdout.write(json.dumps(cost) + "\n")
    sys.stdout.flush()
    os._exit(0)  # some libraries abort the interpreter while it ends


if __name__ == "__main__":
    main()
