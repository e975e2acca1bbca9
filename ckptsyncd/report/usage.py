"""What a destination is and what was asked of it: requests by class, bytes by direction, a price.

A call is a request, but for lists of many pages and what the first look tries out; the estimate is
what the user's own prices make of these counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from ckptsyncd.core.snapshot import StoreCalls
from ckptsyncd.core.words import size_words

#: As object stores bill them: what writes or lists, what reads, and what is free.
CLASSES = ("write", "read", "free")
_WRITE = frozenset(
    ("begin", "put_piece", "finish", "put_whole", "put_small", "list", "uploads", "probe")
)
_READ = frozenset(("get_small", "stat", "read_range"))
_SENT = frozenset(("put_piece", "put_whole", "put_small"))
_GIB = 2**30


@dataclass(frozen=True, slots=True)
class Prices:
    """The user's: of a thousand requests, and of a GiB; all 0 where nothing was said."""

    writes: float = 0.0
    reads: float = 0.0
    sent: float = 0.0
    received: float = 0.0
    currency: str = ""

    @property
    def is_said(self) -> bool:
        """Whether there is anything to estimate with."""
        return any((self.writes, self.reads, self.sent, self.received))


@dataclass(frozen=True, slots=True)
class Usage:
    """Since the program started. ``cost`` is ``None`` where the user gave no prices."""

    write: int
    read: int
    free: int
    bytes_sent: int
    bytes_received: int
    cost: float | None
    currency: str = ""

    def of(self, kind: str) -> int:
        """Return the requests of a class."""
        return {"write": self.write, "read": self.read, "free": self.free}[kind]


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """Where bytes go, as the store and the settings tell; empty where they do not."""

    url: str
    bucket: str
    region: str
    endpoint: str
    key_id: str
    storage_class: str
    description: str


def usage(calls: Iterable[StoreCalls], prices: Prices) -> Usage:
    """Add up what was asked of a store, whatever came of it; bytes are those of calls done."""
    counts = dict.fromkeys(CLASSES, 0)
    sent = received = 0
    for row in calls:
        counts[class_of(row.verb)] += row.count
        sent += row.bytes if row.verb in _SENT else 0
        received += row.bytes if row.verb in _READ else 0
    cost = (
        counts["write"] * prices.writes / 1000
        + counts["read"] * prices.reads / 1000
        + sent * prices.sent / _GIB
        + received * prices.received / _GIB
    )
    known = cost if prices.is_said else None
    return Usage(**counts, bytes_sent=sent, bytes_received=received, cost=known,
                 currency=prices.currency)  # fmt: skip


def class_of(verb: str) -> str:
    """Return the class of a verb's requests."""
    if verb in _WRITE:
        return "write"
    return "read" if verb in _READ else "free"


def document(where: Whereabouts, used: Usage) -> dict[str, Any]:
    """Return both as JSON has them."""
    return {**asdict(where), "usage": asdict(used)}


def lines(document_: dict[str, Any]) -> list[str]:
    """Return the document for people."""
    names = {
        "url": "destination",
        "bucket": "bucket",
        "region": "region",
        "endpoint": "endpoint",
        "key_id": "key id",
        "storage_class": "storage class",
        "description": "store",
    }
    told = [f"{names[key]}: {document_.get(key) or 'not told'}" for key in names]
    used = document_.get("usage") or {}
    requests = ", ".join(f"{used.get(kind, 0)} {kind}" for kind in CLASSES)
    told.append(f"requests since the start: {requests}")
    sent, received = used.get("bytes_sent", 0), used.get("bytes_received", 0)
    told.append(f"bytes: {size_words(sent)} sent, {size_words(received)} received")
    cost = used.get("cost")
    if cost is None:
        told.append("cost: not estimated; set price_writes and its like")
    else:
        told.append(f"cost: about {cost:.4f} {used.get('currency', '')}".rstrip())
    return told
