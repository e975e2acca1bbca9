"""Whose turn it is to upload where several daemons see one file system.

A record in the store says who uploads. Its holder renews it by compare-and-set; the others read it,
and take it by compare-and-set once it has not changed for longer than its holder trusts itself. So
nobody compares two clocks: the holder counts from when it asked for the renewal, the others from
when they first saw it, and those wait a quarter longer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field

from ckptsyncd.core.facts import Condition, IfAbsent, IfMatches, Instant
from ckptsyncd.core.messages import Answer, Failed, Message, RecordPut, RecordRead
from ckptsyncd.core.orders import Errand, GetSmall, HandOrder, PutSmall
from ckptsyncd.core.records import names
from ckptsyncd.core.records.manifest import as_int, as_number, as_object, as_text, parse_json
from ckptsyncd.core.sending.together.patience import spread
from ckptsyncd.errors import CkptsyncdError

READ, PUT = "read lease", "put lease"
#: After a failure the lease is asked for again so much later (guessed).
AGAIN_SECONDS = 2.0
#: The others wait so much longer than the holder trusts itself: clocks run at other speeds, and a
#: stopped machine's last order may be on its way (guessed).
PATIENCE = 1.25
MAX_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Held:
    """The lease as it lies in the store; ``count`` differs at every renewal."""

    nonce: str
    host: str
    count: int
    seconds: float

    def encode(self) -> bytes:
        """Return the lease as JSON."""
        return json.dumps(asdict(self), ensure_ascii=True, separators=(",", ":")).encode()

    @classmethod
    def decode(cls, data: bytes) -> Held:
        """Return the lease in ``data``; raises Never."""
        row = as_object(parse_json(data, MAX_BYTES))
        return cls(
            as_text(row, "nonce"),
            as_text(row, "host"),
            as_int(row, "count", 0),
            as_number(row, "seconds"),
        )


@dataclass(slots=True)
class Lease:
    """What one daemon knows of the lease. ``until``: so long it may act (boot seconds).

    ``seen`` is the lease as it was read last and ``seen_at`` when it was seen to be so first;
    ``asked`` is the order that is out and ``asked_at`` when it went.
    """

    host: str
    nonce: str
    seconds: float
    seen: Held | None = None
    version: str | None = None
    is_read: bool = False
    seen_at: float = 0.0
    until: float = float("-inf")
    due: float = float("-inf")
    count: int = 0
    asked: Errand | None = None
    asked_at: float = 0.0
    tries: int = field(default=0)

    def is_ours(self, now: float) -> bool:
        """Return whether this daemon is the one that uploads."""
        return now < self.until

    def holder(self) -> str:
        """Return who uploads, as far as is known."""
        return "" if self.seen is None else self.seen.host

    def orders(self, now: Instant) -> Iterator[HandOrder]:
        """Yield the one thing that is to be asked of the store now, if any is."""
        if self.asked is not None or now.boot < self.due:
            return
        is_mine = self.seen is not None and self.seen.nonce == self.nonce
        self.tries += 1
        if self.is_read and (is_mine or self._is_free(now.boot)):
            self.count += 1
            data = Held(self.nonce, self.host, self.count, self.seconds).encode()
            condition: Condition = IfAbsent() if self.version is None else IfMatches(self.version)
            order: HandOrder = PutSmall(self._errand(PUT), names.LEASE, data, condition)
        else:
            order = GetSmall(self._errand(READ), names.LEASE)
        self.asked, self.asked_at = order.errand, now.boot
        yield order

    def _errand(self, purpose: str) -> Errand:
        return Errand(purpose, index=self.tries)

    def _is_free(self, now: float) -> bool:
        return self.seen is None or now >= self.seen_at + self.seen.seconds * PATIENCE

    def next_alarm(self, now: float) -> float:
        """Return when something is to be asked or lost by the mere passing of time."""
        times = [self.until] + ([self.due] if self.asked is None else [])
        return min((time for time in times if time > now), default=float("inf"))

    def hear(self, message: Message, now: Instant) -> bool:
        """Take in an answer; return whether it was one to the lease's own questions."""
        if not isinstance(message, Answer) or message.errand.purpose not in (READ, PUT):
            return False
        if message.errand != self.asked:
            return True
        self.asked = None
        if isinstance(message, RecordRead):
            self._read(message, now.boot)
        elif isinstance(message, RecordPut):
            self.seen = Held(self.nonce, self.host, self.count, self.seconds)
            self._renewed(message.version, self.asked_at)
        elif isinstance(message, Failed):
            # Perhaps it was written after all, perhaps somebody else was faster: that is read.
            self.is_read = False
            lost = message.kind == "lost" or message.ambiguous
            self.due = now.boot if lost else now.boot + AGAIN_SECONDS
        return True

    def _read(self, message: RecordRead, now: float) -> None:
        held = None
        if message.data is not None:
            try:
                held = Held.decode(message.data)
            except CkptsyncdError:
                held = None
        version = message.version if message.data is not None else None
        is_new = not self.is_read and version != self.version
        self.is_read = True
        if is_new or version != self.version or self.seen != held:
            self.seen_at = now
        self.version, self.seen = version, held
        if held is not None and held.nonce == self.nonce:
            self.due = now
            return
        self.until = float("-inf")
        wait = self.seconds / 3.0 * (0.75 + spread(self.nonce, self.tries) / 2.0)
        self.due = now if self._is_free(now) else now + wait
        if not self._is_free(now):
            self.is_read = False

    def _renewed(self, version: str, asked_at: float) -> None:
        """Trust the lease from when it was asked for: the store may have taken its time."""
        self.version, self.is_read = version, True
        self.until = asked_at + self.seconds
        self.due = asked_at + self.seconds / 3.0
