"""A large object sent as parallel parts by the XML API's multipart uploads."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any
from xml.etree import ElementTree as ET

from ckptsyncd.core.facts import Begun, Piece, Receipt
from ckptsyncd.core.ports import Body
from ckptsyncd.errors import Again, Gone
from ckptsyncd.stores.checks import check_sent
from ckptsyncd.stores.gcs.objects import CONTENT_TYPE, Label, as_base64
from ckptsyncd.stores.gcs.options import GcsOptions
from ckptsyncd.stores.gcs.wire import Wire
from ckptsyncd.stores.passing import Passing
from ckptsyncd.stores.verdicts import Asked

#: How often an upload is aborted before its parts must be gone: one more than the parts that can
#: be under way from the hands that were interrupted (guessed, as for S3).
ABORTS = 3

_CRC32C = re.compile(r"crc32c=([A-Za-z0-9+/=]+)")


class Parts:
    """Begun multipart uploads; each ends as an object under a name of its own."""

    def __init__(self, wire: Wire, options: GcsOptions) -> None:
        """Work over ``wire``."""
        self._wire = wire
        self._options = options

    def begin(self, name: str, label: Label) -> str:
        """Begin an upload and return its id."""
        asked = Asked("begin", name, is_write=True)
        headers = {"Content-Type": CONTENT_TYPE}
        headers |= {f"x-goog-meta-{key}": value for key, value in label.as_metadata().items()}
        if self._options.storage_class:
            headers["x-goog-storage-class"] = self._options.storage_class
        if self._options.kms_key_name:
            headers["x-goog-encryption-kms-key-name"] = self._options.kms_key_name
        url = f"{self._wire.xml_url(name)}?uploads"
        answer = self._wire.ask(asked, "POST", url, headers=headers)
        found = _text(_parsed(asked, answer.text), "UploadId")
        if not found:
            msg = f"begin {name}: the answer names no upload"
            raise Again(msg)
        return found

    def put(self, upload_id: str, name: str, begun: Begun, piece: Piece, body: Body) -> Receipt:
        """Send one part; Again where the server says that it received other bytes."""
        asked = Asked("put piece", begun.key, is_write=True, absent=Gone)
        passing = Passing(body)
        params = {"partNumber": str(piece.index + 1), "uploadId": upload_id}
        url = self._wire.xml_url(name)
        answer = self._wire.ask(asked, "PUT", url, sent=passing, params=params)
        told = _CRC32C.search(answer.headers.get("x-goog-hash", ""))
        if told and told[1] != as_base64(passing.crc32c):
            msg = f"{begun.key}: piece {piece.index} arrived damaged"
            raise Again(msg)
        total = check_sent(begun.key, passing.crc64nvme, body)
        token = f"{passing.crc32c:08x} {answer.headers.get('ETag', '')}"
        return Receipt(piece.index, piece.length, total, token)

    def complete(
        self, upload_id: str, name: str, begun: Begun, receipts: Sequence[Receipt]
    ) -> None:
        """Make the parts one object under the upload's name; Gone where it is not known."""
        asked = Asked("complete", begun.key, is_write=True, absent=Gone)
        root = ET.Element("CompleteMultipartUpload")
        for receipt in receipts:
            part = ET.SubElement(root, "Part")
            ET.SubElement(part, "PartNumber").text = str(receipt.index + 1)
            ET.SubElement(part, "ETag").text = receipt.token.partition(" ")[2]
        url, params = self._wire.xml_url(name), {"uploadId": upload_id}
        answer = self._wire.ask(asked, "POST", url, params=params, data=ET.tostring(root))
        said = _parsed(asked, answer.text)
        if _tag(said) == "Error":  # an answer that began as 200 may end as an error
            msg = f"complete {begun.key}: {_text(said, 'Code')}: {_text(said, 'Message')}"
            raise Again(msg, ambiguous=True)

    def abort(self, upload_id: str, name: str) -> None:
        """Abort until no part is known: parts that were under way outlive a single abort."""
        asked = Asked("abort", name, is_write=True, absent=Gone)
        url, params = self._wire.xml_url(name), {"uploadId": upload_id}
        try:
            for _ in range(ABORTS):
                self._wire.ask(asked, "DELETE", url, params=params)
                listed = self._wire.ask(asked, "GET", url, params=params)
                if not _all(_parsed(asked, listed.text), "Part"):
                    return
        except Gone:
            return
        msg = f"abort {name}: parts are still listed after {ABORTS} aborts"
        raise Again(msg)

    def list(self, prefix: str) -> Iterator[tuple[str, str]]:
        """Yield name and id of every begun upload whose name starts with ``prefix``."""
        asked = Asked("list uploads", prefix)
        more: dict[str, str] = {}
        while True:
            params = {"prefix": prefix, "max-uploads": "1000", **more}
            url = f"{self._wire.xml_url()}?uploads"
            said = _parsed(asked, self._wire.ask(asked, "GET", url, params=params).text)
            for row in _all(said, "Upload"):
                yield _text(row, "Key"), _text(row, "UploadId")
            if _text(said, "IsTruncated") != "true":
                return
            more = {
                "key-marker": _text(said, "NextKeyMarker"),
                "upload-id-marker": _text(said, "NextUploadIdMarker"),
            }


def _parsed(asked: Asked, text: str) -> ET.Element:
    try:
        return ET.fromstring(text)  # noqa: S314 - from the store that we write to; expat bounds it
    except ET.ParseError:
        msg = f"{asked.verb} {asked.key}: the answer is no XML: {text:.100}"
        raise Again(msg, ambiguous=asked.is_write) from None


def _tag(element: ET.Element) -> str:
    return element.tag.rpartition("}")[2]


def _all(element: ET.Element, tag: str) -> list[ET.Element]:
    return [child for child in element if _tag(child) == tag]


def _text(element: ET.Element, tag: str) -> str:
    found: Any = next((child.text for child in element if _tag(child) == tag), "")
    return found or ""
