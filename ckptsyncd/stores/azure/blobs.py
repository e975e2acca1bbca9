"""What is asked of Azure: blocks, whole blobs, looks, lists and reads, each one request."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from azure.core import MatchConditions
from azure.storage.blob import (
    BlobBlock,
    BlobProperties,
    BlockState,
    ContainerClient,
    ContentSettings,
    StandardBlobTier,
)

from ckptsyncd.checksum import BytesBody, crc64nvme
from ckptsyncd.core.facts import ObjectFact
from ckptsyncd.core.ports import Body
from ckptsyncd.errors import Again, Lost, Missing, Never
from ckptsyncd.stores.azure.options import AzureOptions
from ckptsyncd.stores.azure.wire import Wire
from ckptsyncd.stores.passing import Passing
from ckptsyncd.stores.verdicts import Asked

#: The names under which a blob carries the nonce of its upload, our checksum, and what the store
#: checked; names of metadata must be identifiers.
NONCE = "ckptsyncd_nonce"
CRC64NVME = "ckptsyncd_crc64nvme"
CHECKED = "ckptsyncd_checked"

_HEX = re.compile("[0-9a-f]{16}")

#: The checksum of a body, as the SDK's parameter.
Declared = dict[str, Any]

#: The condition of a write, as the SDK's parameters.
Condition = dict[str, Any]

NO_CONDITION: Condition = {}
IF_FREE: Condition = {"match_condition": MatchConditions.IfMissing}


def if_matches(version: str) -> Condition:
    """Return the condition that a blob is at this version."""
    return {"match_condition": MatchConditions.IfNotModified, "etag": f'"{version}"'}


def version_of(etag: object) -> str:
    """Return an ETag without its quotes, which some answers have and some have not."""
    return str(etag).strip('"')


@dataclass(frozen=True, slots=True)
class Label:
    """What a blob carries for us."""

    nonce: str
    crc64nvme: int
    checked: str

    def as_metadata(self) -> dict[str, str]:
        """Return it as the service keeps it."""
        return {NONCE: self.nonce, CRC64NVME: f"{self.crc64nvme:016x}", CHECKED: self.checked}


class Blobs:
    """Blobs of one container, by their full names."""

    def __init__(self, wire: Wire, options: AzureOptions) -> None:
        """Work over ``wire``."""
        self._wire = wire
        self._options = options

    def stage(self, name: str, block: str, body: Body, told: Declared) -> int:
        """Send one block declared like this; return the CRC64-NVME of what was sent."""
        asked = Asked("stage block", name, is_write=True, absent=Never)
        passing = Passing(body, sums_crc32c=False)
        parameters = {**told, **self._scoped()}

        def by_sdk(client: ContainerClient) -> dict[str, Any]:
            data: Any = passing if len(passing) else b""
            return client.get_blob_client(name).stage_block(
                block, data, length=len(passing), **parameters
            )

        self._wire.send(
            asked, lambda way: way.stage(name, block, parameters, passing), by_sdk, passing
        )
        return passing.crc64nvme

    def commit(self, name: str, blocks: Sequence[str], label: Label, condition: Condition) -> str:
        """Make staged blocks one blob and return its version; Gone where one is not there."""
        asked = Asked("commit", name, is_write=True, absent=Never)
        rows = [BlobBlock(block, BlockState.UNCOMMITTED) for block in blocks]
        answer = self._wire.ask(
            asked,
            lambda client: client.get_blob_client(name).commit_block_list(
                rows,
                content_settings=_settings(),
                metadata=label.as_metadata(),
                **self._tiered(),
                **self._scoped(),
                **condition,
            ),
        )
        return version_of(answer["etag"])

    def committed(self, name: str) -> list[tuple[str, int]]:
        """Return the blocks that a blob is made of, and how many bytes each has."""
        asked = Asked("list blocks", name)
        committed, _ = self._wire.ask(
            asked, lambda client: client.get_blob_client(name).get_block_list("committed")
        )
        return [(str(block.id), int(block.size)) for block in committed]

    def put(
        self, name: str, data: bytes, label: Label | None, told: Declared, condition: Condition
    ) -> str:
        """Write a blob from memory, declared like this, and return its version."""
        over = "etag" in condition  # over a blob that is gone is over another version
        asked = Asked("put", name, is_write=True, absent=Lost if over else Never)
        passing = Passing(BytesBody(data), sums_crc32c=False)
        parameters = {
            "metadata": label.as_metadata() if label else None,
            "content_settings": _settings(),
            **told,
            **(self._tiered() if label else {}),
            **self._scoped(),
            **condition,
        }

        def by_sdk(client: ContainerClient) -> dict[str, Any]:
            return client.get_blob_client(name).upload_blob(
                data, length=len(data), overwrite=True, **parameters
            )

        answer = self._wire.send(
            asked, lambda way: way.put(name, parameters, passing), by_sdk, passing
        )
        return version_of(answer["etag"])

    def get(self, name: str) -> BlobProperties:
        """Return what the service tells of a blob; Missing where there is none."""
        asked = Asked("get", name)
        return self._wire.ask(
            asked, lambda client: client.get_blob_client(name).get_blob_properties()
        )

    def delete(self, name: str, condition: Condition = NO_CONDITION) -> None:
        """Remove a blob and its snapshots; success where there is none."""
        asked = Asked("delete", name, is_write=True)
        try:
            self._wire.ask(
                asked,
                lambda client: client.get_blob_client(name).delete_blob(
                    delete_snapshots="include", **condition
                ),
            )
        except Missing:
            return

    def list(self, prefix: str, page_keys: int) -> Iterator[BlobProperties]:
        """Yield every blob whose name starts with ``prefix``, page after page."""
        asked = Asked("list", prefix, absent=Never)
        pages: Any = self._wire.ask(
            asked,
            lambda client: client.list_blobs(
                name_starts_with=prefix, results_per_page=page_keys, include=["metadata"]
            ).by_page(),
        )
        while True:
            yield from self._wire.ask(asked, lambda _: list(next(pages, ())))
            if not pages.continuation_token:
                return

    def small(self, name: str, most_bytes: int) -> tuple[bytes, str]:
        """Return a blob of at most ``most_bytes`` and its version; Never where it is larger."""
        asked = Asked("read", name)
        loader = self._wire.ask(
            asked, lambda client: client.get_blob_client(name).download_blob(max_concurrency=1)
        )
        if loader.size > most_bytes:
            msg = f"{name}: {loader.size} bytes are more than the {most_bytes} that were expected"
            raise Never(msg)
        data = self._wire.ask(asked, lambda _: bytes(loader.readall()))
        return data, version_of(loader.properties.etag)

    def range(self, name: str, offset: int, length: int) -> Iterator[bytes]:
        """Yield exactly ``length`` bytes from ``offset``, one request for each block.

        The SDK itself asks again (twice, a second apart) for a block whose answer broke off.
        """
        if not length:
            return
        asked = Asked("read", name)
        loader = self._wire.ask(
            asked,
            lambda client: client.get_blob_client(name).download_blob(
                offset=offset, length=length, max_concurrency=1
            ),
        )
        total = int(str(loader.properties.content_range).rpartition("/")[2])
        if offset + length > total:
            msg = f"{name}: {length} bytes from {offset} were asked for, the store has {total}"
            raise Never(msg, hint="the blob is not what its manifest says")
        blocks = loader.chunks()
        left = length
        while left > 0:
            block = self._wire.ask(asked, lambda _: bytes(next(blocks, b"")))
            if not block:
                msg = f"{name}: the answer ended {left} bytes before its end"
                raise Again(msg)
            left -= len(block)
            yield block

    def sum(self, name: str, size: int) -> int:
        """Return the CRC64-NVME of a blob, read from its first to its last byte."""
        total = 0
        for block in self.range(name, 0, size):
            total = crc64nvme(block, total)
        return total

    def _scoped(self) -> Condition:
        scope = self._options.encryption_scope
        return {"encryption_scope": scope} if scope else {}

    def _tiered(self) -> Condition:
        tier = self._options.access_tier
        return {"standard_blob_tier": StandardBlobTier(tier)} if tier else {}


def block_id(nonce: str, index: int) -> str:
    """Return the name of a block: of equal length for every upload, and different for each.

    Two writers of one blob share its uncommitted blocks; the nonce keeps them apart.
    """
    return f"{hashlib.sha256(nonce.encode()).hexdigest()[:24]}-{index:05d}"


def declared(check: str, body: Body) -> Declared:
    """Return the request's parameter that declares a body's checksum, read before it is sent.

    Azure's CRC64 is CRC64-NVME (the same polynomial, start and end), lowest byte first.
    """
    if check == "crc64nvme":
        return _as_crc64(body.crc64nvme())
    if check == "md5":
        digest = hashlib.md5(usedforsecurity=False)
        for block in Passing(body).blocks():
            digest.update(block)
        return {"transactional_content_md5": bytearray(digest.digest())}
    return {}


def declared_of(check: str, data: bytes) -> Declared:
    """Return the same for bytes in memory."""
    if check == "crc64nvme":
        return _as_crc64(crc64nvme(data))
    if check == "md5":
        digest = hashlib.md5(data, usedforsecurity=False).digest()
        return {"transactional_content_md5": bytearray(digest)}
    return {}


def fact_of(blob: BlobProperties, key: str) -> ObjectFact:
    """Return a blob's fact as the service tells it; the checksum only where we labelled it."""
    metadata = blob.metadata or {}
    told = metadata.get(CRC64NVME, "")
    labelled = _HEX.fullmatch(told) is not None
    return ObjectFact(
        key=key,
        size=int(blob.size or 0),
        version=version_of(blob.etag),
        crc64nvme=int(told, 16) if labelled else None,
        nonce=metadata.get(NONCE),
        checked=metadata.get(CHECKED, "") if labelled else "",
    )


def _as_crc64(checksum: int) -> Declared:
    return {"transactional_content_crc64": bytearray(checksum.to_bytes(8, "little"))}


def _settings() -> ContentSettings:
    return ContentSettings(content_type="application/octet-stream")
