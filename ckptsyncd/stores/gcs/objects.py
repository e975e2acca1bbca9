"""Whole objects by the JSON API: write, look, label, move, list, read, delete."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from secrets import token_hex
from typing import Any

from ckptsyncd.checksum import crc32c, crc64nvme
from ckptsyncd.core.facts import ObjectFact
from ckptsyncd.errors import Again, Gone, Missing, Never
from ckptsyncd.stores.gcs.options import GcsOptions
from ckptsyncd.stores.gcs.wire import Wire
from ckptsyncd.stores.passing import Block, Passing
from ckptsyncd.stores.verdicts import Asked

#: The names under which an object carries the nonce of its upload and our checksum of it.
NONCE = "ckptsyncd-nonce"
CRC64NVME = "ckptsyncd-crc64nvme"

CONTENT_TYPE = "application/octet-stream"

#: Keys of one page of a list: the API's own maximum.
PAGE_KEYS = 1000

#: What is asked about an object, in its own resource and as a row of a list.
FIELDS = "name,size,generation,crc32c,metadata"

_HEX = re.compile("[0-9a-f]{16}")

#: An object as the API tells it.
Resource = dict[str, Any]

#: The condition of a write, as parameters of its address.
Condition = dict[str, str]

NO_CONDITION: Condition = {}
IF_FREE: Condition = {"ifGenerationMatch": "0"}


@dataclass(frozen=True, slots=True)
class Label:
    """What an object carries for us: the nonce of its upload, and our checksum once compared."""

    nonce: str
    crc64nvme: int | None = None

    def as_metadata(self) -> dict[str, str]:
        """Return it as the API keeps it."""
        told = {} if self.crc64nvme is None else {CRC64NVME: f"{self.crc64nvme:016x}"}
        return {NONCE: self.nonce, **told}


class Related:
    """A resource and its bytes in one request: as long as both, iterated over like the bytes."""

    def __init__(self, resource: Resource, passing: Passing) -> None:
        """Frame the bytes."""
        mark = f"ckptsyncd-{token_hex(16)}"
        self.content_type = f"multipart/related; boundary={mark}"
        described = json.dumps(resource)
        self._head = (
            f"--{mark}\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n{described}\r\n"
            f"--{mark}\r\nContent-Type: {CONTENT_TYPE}\r\n\r\n"
        ).encode()
        self._foot = f"\r\n--{mark}--\r\n".encode()
        self._passing = passing

    @property
    def fault(self) -> OSError | None:
        """What the body itself raised."""
        return self._passing.fault

    def __len__(self) -> int:
        """Return how many bytes are sent."""
        return len(self._head) + len(self._passing) + len(self._foot)

    def __iter__(self) -> Iterator[Block]:
        """Yield frame and bytes, from the start."""
        yield self._head
        yield from self._passing
        yield self._foot


class Objects:
    """Objects of one bucket, by their full names."""

    def __init__(self, wire: Wire, options: GcsOptions) -> None:
        """Work over ``wire``."""
        self._wire = wire
        self._options = options

    def insert(
        self, name: str, passing: Passing, label: Label | None, condition: Condition
    ) -> Resource:
        """Write an object whose bytes were summed before; the server compares their CRC32C.

        Where it does not, we do, and what is wrong is removed again. Lost where the condition
        fails, Again where the bytes arrived damaged.
        """
        resource: Resource = {
            "name": name,
            "contentType": CONTENT_TYPE,
            "crc32c": as_base64(passing.crc32c),
        }
        if label is not None:
            resource |= {"metadata": label.as_metadata(), **self.classed()}
        related = Related(resource, passing)
        asked = Asked("insert", name, is_write=True, absent=Never)
        told: Resource = self._wire.ask(
            asked,
            "POST",
            self._wire.object_url(name, upload=True),
            sent=related,
            params={"uploadType": "multipart", "name": name, **self.encrypted(), **condition},
            headers={"Content-Type": related.content_type},
        ).json()
        if self.differs(told, len(passing), passing.crc32c):
            self.delete(name, {"ifGenerationMatch": str(told["generation"])})
            msg = f"{name}: the store holds other bytes than it was sent"
            raise Again(msg)
        return told

    def get(self, name: str) -> Resource:
        """Return what the server tells of an object; Missing where there is none."""
        asked = Asked("get", name)
        answer = self._wire.ask(
            asked, "GET", self._wire.object_url(name), params={"fields": FIELDS}
        )
        told: Resource = answer.json()
        return told

    def differs(self, resource: Resource, size: int, sent: int) -> bool:
        """Tell whether an object is not these bytes; it is read back where no CRC32C is told."""
        if int(resource.get("size", 0)) != size:
            return True
        told = resource.get("crc32c")
        if told is not None:
            return bool(told != as_base64(sent))
        return self.sums(str(resource["name"]), size)[1] != sent

    def sums(self, name: str, size: int) -> tuple[int, int]:
        """Return CRC64-NVME and CRC32C of an object, read from its first to its last byte."""
        total64 = total32 = 0
        for block in self.range(name, 0, size):
            total64, total32 = crc64nvme(block, total64), crc32c(block, total32)
        return total64, total32

    def label(self, name: str, label: Label) -> None:
        """Write our checksum beside an upload's object; Refused where we may not."""
        asked = Asked("patch", name, is_write=True, absent=Gone)
        body = {"metadata": label.as_metadata()}
        self._wire.ask(asked, "PATCH", self._wire.object_url(name), json=body)

    def move(self, name: str, to: str, condition: Condition) -> Resource:
        """Rename an object at once; Lost where the condition on the new name fails."""
        asked = Asked("move", to, is_write=True, absent=Gone)
        url = f"{self._wire.object_url(name)}/moveTo/o/{self._wire.quoted(to)}"
        told: Resource = self._wire.ask(asked, "POST", url, params=condition).json()
        return told

    def rewrite(self, name: str, to: str, label: Label, condition: Condition) -> Resource:
        """Copy an object inside the store; Lost where the condition on the new name fails."""
        asked = Asked("rewrite", to, is_write=True, absent=Gone)
        place = f"b/{self._wire.bucket}/o/{self._wire.quoted(to)}"
        url = f"{self._wire.object_url(name)}/rewriteTo/{place}"
        body = {"contentType": CONTENT_TYPE, "metadata": label.as_metadata(), **self.classed()}
        key = {f"destination{k[0].upper()}{k[1:]}": v for k, v in self.encrypted().items()}
        more: dict[str, str] = {}
        while True:
            params = {**key, **condition, **more}
            told = self._wire.ask(asked, "POST", url, params=params, json=body).json()
            if told.get("done", True):
                resource: Resource = told["resource"]
                return resource
            more = {"rewriteToken": told["rewriteToken"]}

    def delete(self, name: str, condition: Condition = NO_CONDITION) -> None:
        """Remove an object; success where there is none."""
        asked = Asked("delete", name, is_write=True)
        try:
            self._wire.ask(asked, "DELETE", self._wire.object_url(name), params=condition)
        except Missing:
            return

    def list(self, prefix: str) -> Iterator[Resource]:
        """Yield every object whose name starts with ``prefix``, page after page."""
        asked = Asked("list", prefix, absent=Never)
        fields = f"items({FIELDS}),nextPageToken"
        more: dict[str, str] = {}
        while True:
            params = {"prefix": prefix, "maxResults": str(PAGE_KEYS), "fields": fields, **more}
            told = self._wire.ask(asked, "GET", self._wire.list_url(), params=params).json()
            yield from told.get("items", ())
            if not told.get("nextPageToken"):
                return
            more = {"pageToken": told["nextPageToken"]}

    def small(self, name: str, most_bytes: int) -> tuple[bytes, str]:
        """Return an object of at most ``most_bytes`` and its generation; Never where larger."""
        asked = Asked("read", name)
        answer = self._media(asked, name, {})
        size = int(answer.headers.get("Content-Length", 0))
        if size > most_bytes:
            answer.close()
            msg = f"{name}: {size} bytes are more than the {most_bytes} that were expected"
            raise Never(msg)
        data = b"".join(self._wire.blocks(asked, answer))
        generation = answer.headers.get("x-goog-generation")
        if generation is None:  # an emulator that tells it only in the resource
            generation = str(self.get(name)["generation"])
        return data, generation

    def range(self, name: str, offset: int, length: int) -> Iterator[bytes]:
        """Yield exactly ``length`` bytes from ``offset``."""
        if not length:
            return
        asked = Asked("read", name)
        answer = self._media(asked, name, {"Range": f"bytes={offset}-{offset + length - 1}"})
        size = int(answer.headers.get("Content-Length", 0))
        if size != length:
            answer.close()
            msg = f"{name}: {length} bytes from {offset} were asked for, the store has {size} there"
            raise Never(msg, hint="the object is not what its manifest says")
        left = length
        for block in self._wire.blocks(asked, answer):
            left -= len(block)
            yield block
        if left:
            msg = f"{name}: the answer ended {left} bytes before its end"
            raise Again(msg)

    def classed(self) -> Resource:
        """Return the storage class of data, where one is asked for."""
        storage_class = self._options.storage_class
        return {"storageClass": storage_class} if storage_class else {}

    def encrypted(self) -> Condition:
        """Return the parameter that names the key, where one is asked for."""
        key = self._options.kms_key_name
        return {"kmsKeyName": key} if key else {}

    def _media(self, asked: Asked, name: str, headers: dict[str, str]) -> Any:
        url = self._wire.object_url(name)
        return self._wire.ask(
            asked, "GET", url, params={"alt": "media"}, headers=headers, stream=True
        )


def fact_of(resource: Resource, key: str) -> ObjectFact:
    """Return an object's fact as the server tells it; the checksum only where we labelled it."""
    metadata = resource.get("metadata") or {}
    told = metadata.get(CRC64NVME, "")
    labelled = _HEX.fullmatch(told) is not None
    return ObjectFact(
        key=key,
        size=int(resource.get("size", 0)),
        version=str(resource.get("generation", "")),
        crc64nvme=int(told, 16) if labelled else None,
        nonce=metadata.get(NONCE),
        checked="crc32c" if labelled else "",
    )


def as_base64(checksum: int) -> str:
    """Return a CRC32C as the API writes it."""
    return base64.b64encode(checksum.to_bytes(4, "big")).decode()
