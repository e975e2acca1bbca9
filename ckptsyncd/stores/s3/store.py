"""The S3 destination."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from ckptsyncd.core.facts import (
    Begun,
    Condition,
    Limits,
    ObjectFact,
    Piece,
    Receipt,
)
from ckptsyncd.core.ports import Body
from ckptsyncd.errors import Again, Gone, Missing, Never
from ckptsyncd.stores.checks import (
    adds_up,
    check_key,
    check_piece,
    check_plan,
    in_order,
    not_adding_up,
)
from ckptsyncd.stores.conditions import Conditions
from ckptsyncd.stores.memory import BytesBody
from ckptsyncd.stores.s3.faults import CANNOT, status_of
from ckptsyncd.stores.s3.keeping import Keeper
from ckptsyncd.stores.s3.options import S3Options
from ckptsyncd.stores.s3.probe import beginning_of, whole_params
from ckptsyncd.stores.s3.reading import NONCE, Reader
from ckptsyncd.stores.s3.situation import S3Situation
from ckptsyncd.stores.s3.wire import Params, Wire

#: S3's own limits: "Amazon S3 multipart upload limits" in its user guide.
MIN_PIECE_BYTES = 5 * 1024**2
MAX_PIECE_BYTES = 5 * 1024**3
MAX_PIECES = 10_000
MAX_OBJECT_BYTES = 5 * 1024**4
MAX_KEY_BYTES = 1024

#: How often an upload is aborted while its parts are still listed: one abort may not free parts
#: that were under way (guessed; the brain asks again after that).
ABORTS = 3


class S3Store:
    """One bucket and prefix. Nothing is asked of the server before the first use.

    The first write tries out what the server checks (see ``probe``); reading needs no write.
    """

    def __init__(
        self, bucket: str, prefix: str, options: S3Options | None = None, *, page_keys: int = 1000
    ) -> None:
        """Take ``prefix`` without slashes at its ends; UsageError for an unknown profile."""
        self._options = options or S3Options()
        self._wire = Wire(bucket, self._options)
        self._root = f"{prefix}/" if prefix else ""
        self._reader = Reader(self._wire, self._root, page_keys)
        self._keeper = Keeper(self._wire, self._root, self._options, self._reader)
        if_free = {"IfNoneMatch": "*"}
        self._conditions: Conditions[Params] = Conditions(
            {}, if_free, self._matching, self._version
        )
        self._limits = Limits(
            min_piece_bytes=MIN_PIECE_BYTES,
            max_piece_bytes=MAX_PIECE_BYTES,
            max_pieces=MAX_PIECES,
            max_object_bytes=MAX_OBJECT_BYTES,
            max_key_bytes=MAX_KEY_BYTES - len(self._root.encode()),
        )

    @property
    def limits(self) -> Limits:
        """What this server can do; found out by the first reading, which may raise."""
        found = self._keeper.found()
        return replace(
            self._limits,
            can_abandon=found.can_abandon,
            create_only_finish=found.create_only_finish,
            compare_and_set=found.create_only_put and bool(found.matches),
            checksum=found.whole_check or found.piece_check or self._keeper.unchecked(),
        )

    def credentials_expire_at(self) -> float | None:
        """Return when credentials from the environment end; ``None`` for all others."""
        return self._wire.credentials_expire_at()

    def clock_ahead_seconds(self) -> float | None:
        """Return how far our clock is ahead of the SDK's last answer."""
        return self._wire.clock.ahead_seconds

    def begin(self, key: str, size: int, piece_bytes: int, nonce: str) -> Begun:
        """Begin a multipart upload that carries the nonce."""
        check_plan(self._limits, key, size, piece_bytes)
        found = self._keeper.found()
        answer = self._wire.ask(
            "create_multipart_upload",
            key,
            Key=self._root + key,
            Metadata={NONCE: nonce},
            **beginning_of(found.piece_check, found.whole_check),
            **self._keeper.extras(),
        )
        return Begun(key, str(answer["UploadId"]), nonce, size, piece_bytes)

    def put_piece(self, begun: Begun, piece: Piece, body: Body) -> Receipt:
        """Send one part with the strongest checksum that this server was seen to check.

        Where that of the whole covers its parts, it is checked by ``finish``.
        """
        check_piece(begun, piece, body)
        check = self._keeper.piece_check()
        part = {"UploadId": begun.token, "PartNumber": piece.index + 1}
        with self._asked_again(begun):
            sent = self._keeper.send("upload_part", begun.key, body, check, part)
        token = f"{sent.answer.get('ETag', '')} {sent.told.get('ChecksumCRC32C', '')}".strip()
        return Receipt(piece.index, piece.length, sent.compared(begun.key, body), token)

    def finish(
        self, begun: Begun, receipts: Sequence[Receipt], crc64nvme: int, *, create_only: bool
    ) -> ObjectFact:
        """Complete the upload; where the server checks nothing, read the object back.

        An upload whose pieces are not the file is dropped, since the same pieces cannot become it.
        """
        ordered = in_order(begun, receipts)
        found = self._keeper.found()
        if not adds_up(ordered, crc64nvme):
            self.abandon(begun)
            raise not_adding_up(begun.key)
        condition: Params = {}
        if create_only:
            condition = self._conditions.free(begun.key, honoured=found.create_only_finish)
        if not ordered:  # S3 wants one part at least
            ordered = (self.put_piece(begun, Piece(0, 0, 0), BytesBody(b"")),)
        extra = {**(whole_params(crc64nvme) if found.whole_check else {}), **condition}
        answer = self._complete(begun, ordered, extra)
        etag = str(answer.get("ETag", ""))
        stored = ObjectFact(begun.key, begun.size, etag, crc64nvme, begun.nonce)
        if found.whole_check:
            return replace(stored, checked=found.whole_check)
        try:
            return self._keeper.proved(stored, found.piece_check)
        except Missing as error:
            raise Gone(str(error)) from error

    def abandon(self, begun: Begun) -> None:
        """Abort until no part is listed: parts that were under way outlive a single abort.

        Nothing happens where the server was seen to have no abort.
        """
        if not self._keeper.found().can_abandon:
            return
        try:
            for _ in range(ABORTS):
                self._about(begun, "abort_multipart_upload")
                if not self._parts(begun):
                    return
        except Gone:
            return
        msg = f"{begun.key}: parts of the upload are still listed after {ABORTS} aborts"
        raise Again(msg)

    def put_whole(self, key: str, body: Body, nonce: str, *, create_only: bool) -> ObjectFact:
        """Put a small file with its checksum; read back where the server checks nothing."""
        check_plan(self._limits, key, body.length, MAX_PIECE_BYTES)
        extra: Params = {"Metadata": {NONCE: nonce}, **self._keeper.extras()}
        if create_only:
            extra |= self._conditions.free(key, honoured=self._keeper.found().create_only_put)
        return self._keeper.put(key, body, nonce, extra)

    def put_small(self, key: str, data: bytes, condition: Condition) -> str:
        """Put a record with its checksum; read back where the server checks nothing."""
        check_key(key, self._limits)
        found = self._keeper.found()
        asked = self._conditions.asked(
            key, condition, creates=found.create_only_put, matches=bool(found.matches)
        )
        extra = {**self._keeper.encryption(), **asked}
        return self._keeper.put(key, BytesBody(data), None, extra).version

    def get_small(self, key: str, most_bytes: int) -> tuple[bytes, str]:
        """Return a record and its ETag."""
        check_key(key, self._limits)
        return self._reader.small(key, most_bytes)

    def stat(self, key: str) -> ObjectFact:
        """Return what the server tells; the checksum only where it was seen to check it.

        Otherwise an object of ours (it carries a nonce) is read back, unless sizes are trusted.
        Before the first write nothing was tried: the checksum is what the server says it is.
        """
        check_key(key, self._limits)
        fact = self._reader.head(key)
        found = self._keeper.findings
        if found is None:
            return fact
        if found.put_check == found.whole_check == "crc64nvme" and fact.crc64nvme is not None:
            return replace(fact, checked="crc64nvme")
        if self._options.trust_size or fact.nonce is None:
            return replace(fact, crc64nvme=None, checked="size")
        summed = self._reader.sum(key, fact.size)
        return replace(fact, crc64nvme=summed, checked="read back")

    def read_range(self, key: str, offset: int, length: int) -> Iterator[bytes]:
        """Yield the bytes of a range; Never where the object ends before it."""
        check_key(key, self._limits)
        return self._reader.range(key, offset, length)

    def list(self, prefix: str) -> Iterator[ObjectFact]:
        """Yield the objects below a prefix in the server's order: that of their keys."""
        return self._reader.list(prefix)

    def uploads(self, prefix: str) -> Iterator[Begun]:
        """Yield begun uploads below a prefix; their nonces and sizes are not told."""
        return self._reader.uploads(prefix)

    def delete(self, key: str) -> None:
        """Remove an object; where the bucket keeps versions, they stay."""
        check_key(key, self._limits)
        try:
            self._wire.ask("delete_object", key, Key=self._root + key)
        except Missing:
            return

    def describe(self) -> str:
        """Return the URL, the endpoint, and what the probe found if it was run."""
        found = self._keeper.findings
        where = urlsplit(self._wire.endpoint)
        port = f":{where.port}" if where.port else ""
        at = f"{where.scheme}://{where.hostname}{port}"
        said = found.in_words() if found else "not tried out yet"
        said += f"; bodies go the {self._wire.way} way"
        trust = "; sizes are trusted" if self._options.trust_size else ""
        return f"s3://{self._wire.bucket}/{self._root} at {at}: {said}{trust}"

    def situation(self) -> S3Situation:
        """Return what answers for the bucket."""
        return S3Situation(self._wire)

    def close(self) -> None:
        """Close the connections; the store can be used again."""
        self._wire.close()

    def _about(self, begun: Begun, verb: str, **extra: Any) -> Params:
        key = self._root + begun.key
        return self._wire.ask(verb, begun.key, Key=key, UploadId=begun.token, **extra)

    def _parts(self, begun: Begun) -> Sequence[Any]:
        """Return some parts of an upload; none where the server cannot tell. Gone: not known."""
        try:
            parts: Sequence[Any] = self._about(begun, "list_parts").get("Parts", ())
        except Never as error:
            if status_of(error) in CANNOT:
                return ()
            raise
        return parts

    def _complete(self, begun: Begun, ordered: Sequence[Receipt], extra: Params) -> Params:
        """Complete the upload; drop it where its parts are refused."""
        parts = {"Parts": [_part(receipt) for receipt in ordered]}
        try:
            with self._asked_again(begun):
                return self._about(
                    begun, "complete_multipart_upload", MultipartUpload=parts, **extra
                )
        except Gone:
            self._keeper.doubt()
            self.abandon(begun)
            raise

    @contextmanager
    def _asked_again(self, begun: Begun) -> Iterator[None]:
        """Raise Gone instead of an Again that would come for ever.

        Ceph and moto answer 500 for an upload that they do not know; asked for its parts, they say.
        """
        try:
            yield
        except Again as error:
            if status_of(error) == 500:  # noqa: PLR2004
                self._parts(begun)
            raise

    def _matching(self, version: str) -> Params:
        is_bare = self._keeper.found().matches == "bare"
        return {"IfMatch": version.strip('"') if is_bare else version}

    def _version(self, key: str) -> str:
        return self._reader.head(key).version


def _part(receipt: Receipt) -> Params:
    etag, _, crc32c = receipt.token.partition(" ")
    part: Params = {"PartNumber": receipt.index + 1, "ETag": etag}
    return part | ({"ChecksumCRC32C": crc32c} if crc32c else {})
