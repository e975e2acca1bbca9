"""The SDKs' own ways to download: ``python -m benchmarks.downloaders NAME ENDPOINT KEY FILE``.

None of them compares what arrives with anything that was kept when it was stored. They are measured
whole, from the start of the process to its end, as the programs beside them are.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.uploaders import BUCKET, MIB, boto3_client, obstore_s3

Download = Callable[[str, Path], object]


def boto3_as_it_comes() -> Download:
    """Download by ``download_file`` with its defaults."""
    client = boto3_client()
    return lambda key, to: client.download_file(BUCKET, key, str(to))


def boto3_tuned() -> Download:
    """Download by ``download_file`` in large parts, four at once."""
    from boto3.s3.transfer import TransferConfig  # noqa: PLC0415

    client = boto3_client(response_checksum_validation="when_required")
    config = TransferConfig(
        multipart_threshold=64 * MIB,
        multipart_chunksize=64 * MIB,
        max_concurrency=4,
        io_chunksize=MIB,
    )
    return lambda key, to: client.download_file(BUCKET, key, str(to), Config=config)


def obstore_stream() -> Download:
    """Download by obstore (Rust), one stream in blocks of a MiB."""
    store = obstore_s3({})

    def fetch(key: str, to: Path) -> None:
        with to.open("wb", buffering=0) as file:
            for block in store.get(key).stream(min_chunk_size=MIB):
                file.write(block)

    return fetch


KINDS: dict[str, Callable[[], Download]] = {
    "boto3": boto3_as_it_comes,
    "boto3-tuned": boto3_tuned,
    "obstore": obstore_stream,
}


def main() -> None:
    """Download one object."""
    name, _, key, to = sys.argv[1:]
    KINDS[name]()(key, Path(to))
    os._exit(0)  # obstore's runtime may abort while the interpreter ends


if __name__ == "__main__":
    main()
