"""Reading back from S3: what is there, and its bytes. Nothing here writes or needs the probe."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ckptsyncd.checksum import crc64nvme
from ckptsyncd.core.facts import Begun, ObjectFact
from ckptsyncd.errors import Again, Never
from ckptsyncd.stores.s3.faults import CANNOT, status_of
from ckptsyncd.stores.s3.sending import from_base64
from ckptsyncd.stores.s3.wire import Params, Wire

#: The name under which an object carries the nonce of its upload.
NONCE = "ckptsyncd-nonce"


class Reader:
    """Reads below one root. Keys go in and out relative to it."""

    def __init__(self, wire: Wire, root: str, page_keys: int) -> None:
        """Read below ``root``, ``page_keys`` names at a time."""
        self._wire = wire
        self._root = root
        self._page_keys = page_keys

    def head(self, key: str) -> ObjectFact:
        """Return what the server tells of an object without its bytes; nothing of it is checked."""
        answer = self._wire.ask("head_object", key, Key=self._root + key, ChecksumMode="ENABLED")
        return ObjectFact(
            key=key,
            size=int(answer.get("ContentLength", 0)),
            version=str(answer.get("ETag", "")),
            crc64nvme=from_base64(answer.get("ChecksumCRC64NVME")),
            nonce=answer.get("Metadata", {}).get(NONCE),
        )

    def sum(self, key: str, size: int) -> int:
        """Return the CRC64-NVME of an object, read from its first to its last byte."""
        total = 0
        for block in self.range(key, 0, size):
            total = crc64nvme(block, total)
        return total

    def small(self, key: str, most_bytes: int) -> tuple[bytes, str]:
        """Return an object of at most ``most_bytes`` and its version; Never where it is larger."""
        answer = self._wire.ask("get_object", key, Key=self._root + key)
        size = int(answer.get("ContentLength", 0))
        if size > most_bytes:
            answer["Body"].close()
            msg = f"{key}: {size} bytes are more than the {most_bytes} that were expected"
            raise Never(msg)
        data = b"".join(self._wire.blocks("get_object", key, answer["Body"]))
        if len(data) != size:
            msg = f"{key}: the answer ended after {len(data)} of {size} bytes"
            raise Again(msg)
        return data, str(answer.get("ETag", ""))

    def range(self, key: str, offset: int, length: int) -> Iterator[bytes]:
        """Yield exactly ``length`` bytes from ``offset``."""
        if not length:
            return
        asked = f"bytes={offset}-{offset + length - 1}"
        answer = self._wire.ask("get_object", key, Key=self._root + key, Range=asked)
        size = int(answer.get("ContentLength", 0))
        if size != length:
            answer["Body"].close()
            msg = f"{key}: {length} bytes from {offset} were asked for, the store has {size} there"
            raise Never(msg, hint="the object is not what its manifest says")
        left = length
        for block in self._wire.blocks("get_object", key, answer["Body"]):
            left -= len(block)
            yield block
        if left:
            msg = f"{key}: the answer ended {left} bytes before its end"
            raise Again(msg)

    def list(self, prefix: str) -> Iterator[ObjectFact]:
        """Yield every object below ``prefix`` as the listing tells it, page after page."""
        more: Params = {}
        while True:
            answer = self._wire.ask(
                "list_objects_v2",
                prefix,
                Prefix=self._root + prefix,
                MaxKeys=self._page_keys,
                **more,
            )
            for row, key in self._ours(answer.get("Contents", ()), prefix):
                yield ObjectFact(key, int(row["Size"]), str(row.get("ETag", "")))
            if not answer.get("IsTruncated"):
                return
            more = {"ContinuationToken": answer["NextContinuationToken"]}

    def uploads(self, prefix: str) -> Iterator[Begun]:
        """Yield begun uploads; S3 tells key and id, not size, pieces or nonce (0 and empty).

        A server that cannot list them is read as one that has none.
        """
        more: Params = {}
        while True:
            asked = {"Prefix": self._root + prefix, "MaxUploads": self._page_keys, **more}
            try:
                answer = self._wire.ask("list_multipart_uploads", prefix, **asked)
            except Never as error:
                if status_of(error) in CANNOT:
                    return
                raise
            for row, key in self._ours(answer.get("Uploads", ()), prefix):
                yield Begun(key, str(row["UploadId"]), nonce="", size=0, piece_bytes=0)
            if not answer.get("IsTruncated"):
                return
            more = {
                "KeyMarker": answer.get("NextKeyMarker", ""),
                "UploadIdMarker": answer.get("NextUploadIdMarker", ""),
            }

    def _ours(self, rows: Iterable[Params], prefix: str) -> Iterator[tuple[Params, str]]:
        """Yield the rows below the prefix: some servers list every upload of the bucket."""
        for row in rows:
            key = str(row["Key"])
            if key.startswith(self._root + prefix):
                yield row, key[len(self._root) :]
