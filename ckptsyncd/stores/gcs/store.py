"""Google Cloud Storage as a destination."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ckptsyncd.checksum import combined_crc32c
from ckptsyncd.core.facts import (
    Begun,
    Condition,
    Limits,
    ObjectFact,
    Piece,
    Receipt,
)
from ckptsyncd.core.ports import Body
from ckptsyncd.core.records.names import OURS
from ckptsyncd.errors import Gone, Lost, Missing, Refused
from ckptsyncd.stores.checks import (
    adds_up,
    check_key,
    check_piece,
    check_plan,
    check_sent,
    in_order,
    not_adding_up,
)
from ckptsyncd.stores.conditions import Conditions
from ckptsyncd.stores.gcs.objects import (
    IF_FREE,
    NO_CONDITION,
    Label,
    Objects,
    Resource,
    fact_of,
)
from ckptsyncd.stores.gcs.options import GcsOptions
from ckptsyncd.stores.gcs.parts import Parts
from ckptsyncd.stores.gcs.probe import Findings, Known, Probe
from ckptsyncd.stores.gcs.sessions import CHUNK_BYTES, Sessions
from ckptsyncd.stores.gcs.situation import GcsSituation
from ckptsyncd.stores.gcs.wire import Wire
from ckptsyncd.stores.memory import BytesBody
from ckptsyncd.stores.passing import Passing
from ckptsyncd.stores.rounds import Notes, Rounds

#: Where uploads grow: below it the nonce of the upload, then the key.
UPLOADS = OURS + "uploads/"

MAX_NAME_BYTES = 1024
MAX_OBJECT_BYTES = 5 * 1024**4
#: Of the XML API's multipart uploads; sessions have no limit, and get the same one.
MAX_PIECES = 10_000
MAX_PIECE_BYTES = 5 * 1024**3
MIN_PART_BYTES = 5 * 1024**2
#: What an upload's nonce may take of its name (a writer's nonce and a number take less than 40).
MAX_NONCE_BYTES = 64

_PART, _SESSION, _WHOLE = "part ", "session ", "whole"


class GcsStore:
    """One bucket, or what lies below a prefix of it.

    A begun upload's token is ``part`` and its id, ``session`` and its secret address, or ``whole``
    for an object that grew up and was not moved.
    """

    def __init__(self, bucket: str, prefix: str = "", options: GcsOptions | None = None) -> None:
        """Open the destination; nothing is asked of it yet."""
        self._options = options or GcsOptions()
        self._root = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        self._wire = Wire(bucket, self._options)
        self._objects = Objects(self._wire, self._options)
        self._parts = Parts(self._wire, self._options)
        self._sessions = Sessions(self._wire, self._objects)
        self._may_label = True
        self._tried = Rounds(self._root, Known(), self._round, self._wipe)
        self._conditions = Conditions(NO_CONDITION, IF_FREE, _if_matches, self._version)
        room = MAX_NAME_BYTES - len(f"{self._root}{UPLOADS}/".encode()) - MAX_NONCE_BYTES
        self._limits = Limits(
            min_piece_bytes=1,
            max_piece_bytes=MAX_PIECE_BYTES,
            max_pieces=MAX_PIECES,
            max_object_bytes=MAX_OBJECT_BYTES,
            max_key_bytes=room,
            checksum="crc32c",
        )

    @property
    def limits(self) -> Limits:
        """What this server can do; found out by the first reading, which may raise."""
        found = self._found()
        return replace(
            self._limits,
            min_piece_bytes=MIN_PART_BYTES if found.multipart else CHUNK_BYTES,
            piece_multiple=1 if found.multipart else CHUNK_BYTES,
            pieces_in_parallel=found.multipart,
            create_only_finish=found.create_only and found.moves_create_only,
            compare_and_set=found.create_only and found.matches,
        )

    def clock_ahead_seconds(self) -> float | None:
        """Return how far our clock is ahead of the last answer's."""
        return self._wire.clock.ahead_seconds

    def begin(self, key: str, size: int, piece_bytes: int, nonce: str) -> Begun:
        """Begin a multipart upload, or a session, under a name of its own."""
        check_key(key, self._limits)
        check_plan(self.limits, key, size, piece_bytes)
        name = self._growing(key, nonce)
        if self._found().multipart:
            token = _PART + self._parts.begin(name, Label(nonce))
        else:
            token = _SESSION + self._sessions.begin(name, Label(nonce), size)
        return Begun(key, token, nonce, size, piece_bytes)

    def put_piece(self, begun: Begun, piece: Piece, body: Body) -> Receipt:
        """Send one part, or what the session lacks of the piece."""
        check_piece(begun, piece, body)
        if begun.token.startswith(_PART):
            name = self._growing(begun.key, begun.nonce)
            return self._parts.put(begun.token[len(_PART) :], name, begun, piece, body)
        sums = self._put_on(begun, piece, body)
        total = check_sent(begun.key, sums.crc64nvme, body)
        return Receipt(piece.index, piece.length, total, f"{sums.crc32c:08x}")

    def _put_on(self, begun: Begun, piece: Piece, body: Body) -> Passing:
        """Send on what a session lacks; one that is gone leaves nothing of what it had."""
        try:
            return self._sessions.put(begun.token.removeprefix(_SESSION), begun, piece, body)
        except Gone:
            self._objects.delete(self._growing(begun.key, begun.nonce))
            raise

    def finish(
        self, begun: Begun, receipts: Sequence[Receipt], crc64nvme: int, *, create_only: bool
    ) -> ObjectFact:
        """Compare the object that grew with what was sent, label it, and move it to its key.

        What differs is dropped.
        """
        ordered = in_order(begun, receipts)
        if not adds_up(ordered, crc64nvme):
            self.abandon(begun)
            raise not_adding_up(begun.key)
        if not begun.size:
            self.abandon(begun)
            return self.put_whole(begun.key, BytesBody(b""), begun.nonce, create_only=create_only)
        grown = self._grown(begun, ordered)
        sent = combined_crc32c((int(one.token[:8], 16), one.length) for one in ordered)
        if self._objects.differs(grown, begun.size, sent):
            self.abandon(begun)
            raise not_adding_up(begun.key)
        moved = self._moved(begun, Label(begun.nonce, crc64nvme), create_only=create_only)
        fact = fact_of(moved, begun.key)
        return replace(fact, crc64nvme=crc64nvme, nonce=begun.nonce, checked="crc32c")

    def abandon(self, begun: Begun) -> None:
        """Drop the parts or the session, and what became of them."""
        name = self._growing(begun.key, begun.nonce)
        if begun.token.startswith(_PART):
            self._parts.abort(begun.token[len(_PART) :], name)
        elif begun.token.startswith(_SESSION):
            self._sessions.cancel(begun.token[len(_SESSION) :])
        self._objects.delete(name)

    def put_whole(self, key: str, body: Body, nonce: str, *, create_only: bool) -> ObjectFact:
        """Put a small file, read once to sum it and once to send it."""
        check_plan(self._limits, key, body.length, MAX_PIECE_BYTES)
        condition = NO_CONDITION
        if create_only:
            condition = self._conditions.free(key, honoured=self._found().create_only)
        passing = Passing(body).summed()
        total = check_sent(key, passing.crc64nvme, body)
        label = Label(nonce, total)
        told = self._objects.insert(self._root + key, passing, label, condition)
        return replace(fact_of(told, key), crc64nvme=total, nonce=nonce, checked="crc32c")

    def put_small(self, key: str, data: bytes, condition: Condition) -> str:
        """Put a record and return its generation."""
        check_key(key, self._limits)
        found = self._found()
        asked = self._conditions.asked(
            key, condition, creates=found.create_only, matches=found.matches
        )
        passing = Passing(BytesBody(data)).summed()
        return str(self._objects.insert(self._root + key, passing, None, asked)["generation"])

    def get_small(self, key: str, most_bytes: int) -> tuple[bytes, str]:
        """Return a record and its generation."""
        check_key(key, self._limits)
        return self._objects.small(self._root + key, most_bytes)

    def stat(self, key: str) -> ObjectFact:
        """Return what the store tells; an object of ours without our label is read back."""
        check_key(key, self._limits)
        fact = fact_of(self._objects.get(self._root + key), key)
        if fact.nonce is None or fact.crc64nvme is not None:
            return fact
        total, _ = self._objects.sums(self._root + key, fact.size)
        return replace(fact, crc64nvme=total, checked="read back")

    def read_range(self, key: str, offset: int, length: int) -> Iterator[bytes]:
        """Yield the bytes of a range; Never where the object ends before it."""
        check_key(key, self._limits)
        return self._objects.range(self._root + key, offset, length)

    def list(self, prefix: str) -> Iterator[ObjectFact]:
        """Yield the objects below a prefix, without what still grows."""
        for resource in self._objects.list(self._root + prefix):
            key = str(resource["name"])[len(self._root) :]
            if not key.startswith(UPLOADS):
                yield fact_of(resource, key)

    def uploads(self, prefix: str) -> Iterator[Begun]:
        """Yield begun uploads below a prefix: multipart uploads, and objects that were not moved.

        Sessions are not told by the store: their addresses are secrets. Sizes of parts are not
        told either (0).
        """
        below = self._root + UPLOADS
        found = self._parts.list(below) if self._found().multipart else iter(())
        grown = ((str(row["name"]), "") for row in self._objects.list(below))
        for rows, kind in ((found, _PART), (grown, _WHOLE)):
            for name, upload_id in rows:
                nonce, _, key = name[len(below) :].partition("/")
                if key.startswith(prefix):
                    yield Begun(key, kind + upload_id, nonce, size=0, piece_bytes=0)

    def delete(self, key: str) -> None:
        """Remove an object; where the bucket keeps versions, they stay."""
        check_key(key, self._limits)
        self._objects.delete(self._root + key)

    def situation(self) -> GcsSituation:
        """Return what answers for the bucket."""
        return GcsSituation(self._wire)

    def describe(self) -> str:
        """Return the URL, the endpoint, and what the probe found if it was run."""
        found = self._tried.known
        said = found.in_words() if found else "not tried out yet"
        unlabelled = "" if self._may_label else "; may not label objects, so they are read back"
        at = self._wire.endpoint
        where = f"gs://{self._wire.bucket}/{self._root} at {at}"
        return f"{where}: {said}{unlabelled}; bodies go the {self._wire.way} way"

    def close(self) -> None:
        """Close the connections; the store can be used again."""
        self._wire.close()

    def _found(self) -> Findings:
        return self._tried.found()

    def _round(self, name: str, notes: Notes[Known]) -> Findings:
        return self._probe(name, notes).findings()

    def _wipe(self, name: str) -> None:
        self._probe(name, Notes(Known())).wipe_all()

    def _probe(self, name: str, notes: Notes[Known]) -> Probe:
        resumable = self._options.resumable
        return Probe(self._objects, self._parts, name, notes, resumable=resumable)

    def _version(self, key: str) -> str:
        return str(self._objects.get(self._root + key)["generation"])

    def _growing(self, key: str, nonce: str) -> str:
        return f"{self._root}{UPLOADS}{nonce}/{key}"

    def _grown(self, begun: Begun, ordered: Sequence[Receipt]) -> Resource:
        """Return the upload's own object; Gone where there is none (any more)."""
        name = self._growing(begun.key, begun.nonce)
        if begun.token.startswith(_PART):
            try:
                self._parts.complete(begun.token[len(_PART) :], name, begun, ordered)
            except Gone:  # the answer of an earlier finish may have been lost
                return self._still_there(begun, name)
        return self._still_there(begun, name)

    def _still_there(self, begun: Begun, name: str) -> Resource:
        try:
            return self._objects.get(name)
        except Missing:
            msg = f"{begun.key}: nothing grew from the upload, or it was moved already"
            raise Gone(msg) from None

    def _moved(self, begun: Begun, label: Label, *, create_only: bool) -> Resource:
        found = self._found()
        name, to = self._growing(begun.key, begun.nonce), self._root + begun.key
        if not found.moves:
            try:
                moved = self._objects.rewrite(name, to, label, self._if_free(begun, create_only))
            except Lost:  # perhaps to an earlier try of our own
                self._objects.delete(name)
                raise
            self._objects.delete(name)
            return moved
        labelled = self._may_label and self._labelled(name, label)
        moved = self._objects.move(name, to, self._if_free(begun, create_only))
        self._may_label = labelled
        return moved

    def _if_free(self, begun: Begun, create_only: bool) -> dict[str, str]:  # noqa: FBT001
        if not create_only:
            return NO_CONDITION
        return self._conditions.free(begun.key, honoured=self._found().moves_create_only)

    def _labelled(self, name: str, label: Label) -> bool:
        """Label an upload's object; where that is not allowed, ``stat`` will read it back."""
        try:
            self._objects.label(name, label)
        except Refused:
            return False
        return True


def _if_matches(version: str) -> dict[str, str]:
    return {"ifGenerationMatch": version}
