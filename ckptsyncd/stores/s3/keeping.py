"""Sending bytes to S3 so that it shows to have them: declared, checked there, or read back."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ckptsyncd.core.facts import ObjectFact
from ckptsyncd.core.ports import Body
from ckptsyncd.errors import Again, Gone, Missing
from ckptsyncd.stores.checks import check_sent
from ckptsyncd.stores.rounds import Notes, Rounds
from ckptsyncd.stores.s3.options import S3Options
from ckptsyncd.stores.s3.probe import Findings, Known, Probe, wipe
from ckptsyncd.stores.s3.reading import Reader
from ckptsyncd.stores.s3.sending import SentBody, declared, from_base64
from ckptsyncd.stores.s3.wire import Params, Wire


@dataclass(frozen=True, slots=True)
class Answered:
    """What a body was declared as, what the server answered, the checksum of what was sent."""

    told: dict[str, str]
    answer: Params
    crc64nvme: int
    is_checked: bool

    def compared(self, key: str, body: Body) -> int:
        """Return the checksum if the body says the same, or the server did; else raise Again."""
        return self.crc64nvme if self.is_checked else check_sent(key, self.crc64nvme, body)

    def stored(self, key: str, size: int, nonce: str | None) -> ObjectFact:
        """Return the fact of the object that this answer stands for; nothing of it is proved."""
        return ObjectFact(key, size, str(self.answer.get("ETag", "")), self.crc64nvme, nonce)


class Keeper:
    """Knows what the server checks, tried out once, and sends accordingly."""

    def __init__(self, wire: Wire, root: str, options: S3Options, reader: Reader) -> None:
        """Send below ``root``; nothing is asked yet."""
        self._wire = wire
        self._root = root
        self._options = options
        self._reader = reader
        self._has_doubts = False
        self._rounds = Rounds(root, Known(), self._round, lambda key: wipe(wire, key))

    @property
    def findings(self) -> Findings | None:
        """What was found out so far."""
        return self._rounds.known

    def found(self) -> Findings:
        """Try the server out, once; everybody else waits. A failure is tried again next time."""
        return self._rounds.found()

    def _round(self, key: str, notes: Notes[Known]) -> Findings:
        trust = self._options.trust_size
        return Probe(self._wire, key, self.encryption(), notes, trust_size=trust).findings()

    def piece_check(self) -> str:
        """Return how a piece is declared: not at all where the whole's checksum covers it.

        Its bytes are then read once, and summed as they leave. Once a whole was refused every piece
        is declared: what damages bytes on their way is found where it happens.
        """
        found = self.found()
        return "" if found.one_pass and not self._has_doubts else found.piece_check

    def doubt(self) -> None:
        """Take in that an upload's pieces were not what the server should have got."""
        self._has_doubts = True

    def unchecked(self) -> str:
        """Return what stands in where the server checks no content."""
        return "size" if self._options.trust_size else "read back"

    def encryption(self) -> Params:
        """Return the parameters that every object is stored with."""
        asked = {
            "ServerSideEncryption": self._options.sse,
            "SSEKMSKeyId": self._options.kms_key_id,
        }
        return {name: value for name, value in asked.items() if value}

    def extras(self) -> Params:
        """Return the parameters that data is stored with; records stay in the default class."""
        storage_class = self._options.storage_class
        return self.encryption() | ({"StorageClass": storage_class} if storage_class else {})

    def send(self, verb: str, key: str, body: Body, check: str, extra: Params) -> Answered:
        """Send a body with this check; what the body raises passes through.

        The answer's checksum is that of the bytes sent, not yet compared with the body's own.
        """
        told = declared(check, body)
        sent = SentBody(body, summing=check != "crc64nvme")
        signed = check == "sha256"  # a hash that the server was seen to ignore protects nothing
        full = self._root + key
        answer = self._wire.ask(verb, key, sent=sent, signed=signed, Key=full, **told, **extra)
        checked = from_base64(told.get("ChecksumCRC64NVME"))
        total = sent.crc64nvme if checked is None else checked
        return Answered(told, answer, total, is_checked=checked is not None)

    def put(self, key: str, body: Body, nonce: str | None, extra: Params) -> ObjectFact:
        """Put a whole object and return its fact, proved; what is wrong does not stay."""
        check = self.found().put_check
        sent = self.send("put_object", key, body, check, extra)
        stored = sent.stored(key, body.length, nonce)
        try:
            sent.compared(key, body)
        except Again:
            self._withdraw(stored)
            raise
        if check:
            return replace(stored, checked=check)
        try:
            return self.proved(stored, check)
        except (Gone, Missing) as error:
            raise Again(str(error), ambiguous=True) from error

    def proved(self, stored: ObjectFact, check: str) -> ObjectFact:
        """Return the fact of what was just stored, once the server shows that it has it.

        By size where ``check`` was seen on every piece, else by reading it back. What turns out to
        be damaged is removed if it is still ours, and Gone is raised. An error here is ambiguous.
        """
        try:
            fact = self._reader.head(stored.key)
            same = fact.size == stored.size
            checked = check or self.unchecked()
            if same and checked == "read back":
                same = self._reader.sum(stored.key, stored.size) == stored.crc64nvme
        except Again as error:
            error.ambiguous = True
            raise
        if not same:
            self._withdraw(stored)
            msg = f"{stored.key}: the store holds other bytes than it was sent"
            raise Gone(msg)
        return replace(stored, version=fact.version, checked=checked)

    def _withdraw(self, stored: ObjectFact) -> None:
        """Remove what was just stored and is not right, unless somebody else has replaced it."""
        try:
            there = self._reader.head(stored.key).version.strip('"')
        except Missing:
            return
        if there == stored.version.strip('"'):
            self._wire.ask("delete_object", stored.key, Key=self._root + stored.key)
