"""Azure Blob Storage as a destination."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ckptsyncd.checksum import crc64nvme as checksum_of
from ckptsyncd.core.facts import (
    Begun,
    Condition,
    Limits,
    ObjectFact,
    Piece,
    Receipt,
)
from ckptsyncd.core.ports import Body
from ckptsyncd.errors import Again, Gone, Lost, Missing, Never
from ckptsyncd.stores.azure import blobs
from ckptsyncd.stores.azure.blobs import Blobs, Label, block_id, declared, declared_of, fact_of
from ckptsyncd.stores.azure.options import AzureOptions
from ckptsyncd.stores.azure.probe import Findings, Known, Probe
from ckptsyncd.stores.azure.situation import AzureSituation
from ckptsyncd.stores.azure.wire import Wire
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
from ckptsyncd.stores.memory import read_all
from ckptsyncd.stores.rounds import Notes, Rounds

#: Limits of the Blob service since its version 2019-12-12.
MAX_PIECE_BYTES = 4000 * 1024**2
MAX_PIECES = 50_000
MAX_NAME_BYTES = 1024

#: Up to here a small file goes as one request from memory, above as one block and its commit
#: (guessed: the SDK holds such a body in memory, and a second request costs a round trip).
IN_MEMORY_BYTES = 1024 * 1024

#: Blobs of one page of a list: the service's own maximum.
PAGE_KEYS = 5000


class AzureStore:
    """One container, or what lies below a prefix of it.

    Beginning an upload asks nothing: its blocks are known by the nonce. Nothing can drop blocks;
    they end by themselves a week later, or when the blob is written by somebody else.
    """

    def __init__(
        self,
        account: str,
        container: str,
        prefix: str = "",
        options: AzureOptions | None = None,
    ) -> None:
        """Open the destination; nothing is asked of it yet. UsageError for wrong credentials."""
        self._options = options or AzureOptions()
        self._root = f"{prefix.strip('/')}/" if prefix.strip("/") else ""
        self._wire = Wire(account, container, self._options)
        self._blobs = Blobs(self._wire, self._options)
        self._tried = Rounds(self._root, Known(), self._round, self._blobs.delete)
        self._conditions = Conditions(
            blobs.NO_CONDITION, blobs.IF_FREE, blobs.if_matches, self._version
        )
        self._limits = Limits(
            min_piece_bytes=1,
            max_piece_bytes=MAX_PIECE_BYTES,
            max_pieces=MAX_PIECES,
            max_object_bytes=MAX_PIECES * MAX_PIECE_BYTES,
            max_key_bytes=MAX_NAME_BYTES - len(self._root.encode()),
            can_abandon=False,
        )

    @property
    def limits(self) -> Limits:
        """What this server can do; found out by the first reading, which may raise."""
        found = self._found()
        return replace(
            self._limits,
            create_only_finish=found.create_only and found.commits_create_only,
            compare_and_set=found.create_only and found.matches,
            checksum=found.check or "read back",
        )

    def credentials_expire_at(self) -> float | None:
        """Return when the SAS token ends; ``None`` for all other credentials."""
        return self._wire.credentials_expire_at()

    def clock_ahead_seconds(self) -> float | None:
        """Return how far our clock is ahead of the last answer's."""
        return self._wire.clock.ahead_seconds

    def begin(self, key: str, size: int, piece_bytes: int, nonce: str) -> Begun:
        """Return what names the blocks of a new upload; nothing is asked of the store."""
        self._check(key)
        check_plan(self._limits, key, size, piece_bytes)
        return Begun(key, nonce, nonce, size, piece_bytes)

    def put_piece(self, begun: Begun, piece: Piece, body: Body) -> Receipt:
        """Stage one block with the strongest checksum that this server was seen to check."""
        check_piece(begun, piece, body)
        told = declared(self._found().check, body)
        block = block_id(begun.token, piece.index)
        sent = self._blobs.stage(self._root + begun.key, block, body, told)
        return Receipt(piece.index, piece.length, check_sent(begun.key, sent, body), block)

    def finish(
        self, begun: Begun, receipts: Sequence[Receipt], crc64nvme: int, *, create_only: bool
    ) -> ObjectFact:
        """Commit the blocks, and compare what the blob is made of with what was sent."""
        ordered = in_order(begun, receipts)
        if not adds_up(ordered, crc64nvme):
            raise not_adding_up(begun.key)
        rows = [(block_id(begun.token, row.index), row.length) for row in ordered]
        return self._committed(
            begun.key, rows, Label(begun.nonce, crc64nvme, self._checked()), create_only=create_only
        )

    def abandon(self, begun: Begun) -> None:
        """Do nothing: nothing drops blocks but the week that they live, or another writer."""

    def put_whole(self, key: str, body: Body, nonce: str, *, create_only: bool) -> ObjectFact:
        """Put a small file, from memory or as one block."""
        self._check(key)
        check_plan(self._limits, key, body.length, MAX_PIECE_BYTES)
        if body.length > IN_MEMORY_BYTES:
            begun = self.begin(key, body.length, body.length, nonce)
            receipt = self.put_piece(begun, Piece(0, 0, body.length), body)
            return self.finish(begun, [receipt], receipt.crc64nvme, create_only=create_only)
        data = read_all(body)
        total = check_sent(key, checksum_of(data), body)
        found = self._found()
        condition = blobs.NO_CONDITION
        if create_only:
            condition = self._conditions.free(key, honoured=found.create_only)
        label = Label(nonce, total, self._checked())
        version = self._blobs.put(
            self._root + key, data, label, declared_of(found.check, data), condition
        )
        return self._proved(ObjectFact(key, len(data), version, total, nonce, label.checked))

    def put_small(self, key: str, data: bytes, condition: Condition) -> str:
        """Put a record and return its version."""
        self._check(key)
        found = self._found()
        asked = self._conditions.asked(
            key, condition, creates=found.create_only, matches=found.matches
        )
        told = declared_of(found.check, data)
        version = self._blobs.put(self._root + key, bytes(data), None, told, asked)
        total = checksum_of(data)
        fact = ObjectFact(key, len(data), version, total, None, self._checked())
        return self._proved(fact).version

    def get_small(self, key: str, most_bytes: int) -> tuple[bytes, str]:
        """Return a record and its version."""
        self._check(key)
        return self._blobs.small(self._root + key, most_bytes)

    def stat(self, key: str) -> ObjectFact:
        """Return what the store tells; a blob of ours that lost its label is read back."""
        self._check(key)
        fact = fact_of(self._blobs.get(self._root + key), key)
        if fact.nonce is None or fact.crc64nvme is not None:
            return fact
        total = self._blobs.sum(self._root + key, fact.size)
        return replace(fact, crc64nvme=total, checked="read back")

    def read_range(self, key: str, offset: int, length: int) -> Iterator[bytes]:
        """Yield the bytes of a range; Never where the blob ends before it."""
        self._check(key)
        return self._blobs.range(self._root + key, offset, length)

    def list(self, prefix: str) -> Iterator[ObjectFact]:
        """Yield the blobs below a prefix."""
        for blob in self._blobs.list(self._root + prefix, PAGE_KEYS):
            yield fact_of(blob, str(blob.name)[len(self._root) :])

    def uploads(self, prefix: str) -> Iterator[Begun]:
        """Yield nothing: blocks tell no nonce, and nothing could be done with them."""
        del prefix
        return iter(())

    def delete(self, key: str) -> None:
        """Remove a blob; where the account keeps versions or soft-deleted blobs, they stay."""
        self._check(key)
        self._blobs.delete(self._root + key)

    def situation(self) -> AzureSituation:
        """Return what answers for the container."""
        return AzureSituation(self._wire)

    def describe(self) -> str:
        """Return the URL, the endpoint, and what the probe found if it was run."""
        found = self._tried.known
        said = found.in_words() if found else "not tried out yet"
        where = f"az://{self._wire.account}/{self._wire.container}/{self._root}"
        return f"{where} at {self._wire.endpoint}: {said}; bodies go the {self._wire.way} way"

    def close(self) -> None:
        """Close the connections; the store can be used again."""
        self._wire.close()

    def _check(self, key: str) -> None:
        """Raise Never for what every store refuses, and for what Azure takes for another name."""
        check_key(key, self._limits)
        if "\\" in key or any(part.endswith(".") for part in key.split("/")):
            msg = f"a key with a backslash, or a component that ends with a dot, is refused: {key}"
            raise Never(msg, hint="Azure drops such dots and turns the backslash round")

    def _found(self) -> Findings:
        return self._tried.found()

    def _round(self, name: str, notes: Notes[Known]) -> Findings:
        return Probe(self._blobs, name, notes).findings()

    def _version(self, key: str) -> str:
        return blobs.version_of(self._blobs.get(self._root + key).etag)

    def _checked(self) -> str:
        return self._found().check or "read back"

    def _committed(
        self, key: str, rows: Sequence[tuple[str, int]], label: Label, *, create_only: bool
    ) -> ObjectFact:
        name, found = self._root + key, self._found()
        condition = blobs.NO_CONDITION
        if create_only:
            condition = self._conditions.free(key, honoured=found.commits_create_only)
        version = self._blobs.commit(name, [block for block, _ in rows], label, condition)
        size = sum(length for _, length in rows)
        fact = ObjectFact(key, size, version, label.crc64nvme, label.nonce, label.checked)
        try:
            same = self._blobs.committed(name) == list(rows)
        except Again as error:
            error.ambiguous = True
            raise
        except Missing as error:
            raise Gone(str(error)) from error
        if not same:
            self._withdraw(fact)
            raise not_adding_up(key)
        return self._proved(fact)

    def _proved(self, fact: ObjectFact) -> ObjectFact:
        """Return the fact; where the server checks nothing, once it was read back."""
        if fact.checked != "read back":
            return fact
        try:
            same = self._blobs.sum(self._root + fact.key, fact.size) == fact.crc64nvme
        except Again as error:
            error.ambiguous = True
            raise
        if not same:
            self._withdraw(fact)
            msg = f"{fact.key}: the store holds other bytes than it was sent"
            raise Gone(msg)
        return fact

    def _withdraw(self, fact: ObjectFact) -> None:
        """Remove what was just stored and is not right, unless somebody else has replaced it."""
        try:
            self._blobs.delete(self._root + fact.key, blobs.if_matches(fact.version))
        except Lost:
            return
