"""A cap on the bytes that all hands together send, as a token bucket on what they read.

The reading is what waits, in the middle of a request, so that the stream is even. Setting another
pace wakes whoever waits: on an interruption notice the cap is gone at once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from ckptsyncd.core.facts import Listing, Piece
from ckptsyncd.core.ports import Body, Disk, OnDisk

#: So much may be saved up while nobody reads: a short burst, small against the 5 s over which the
#: cap is promised (guessed).
BURST_SECONDS = 0.1
#: A capped read takes so much at once: what the cap lets through in 5 ms, so that several hands
#: share evenly, and not less than is worth a system call of its own.
BLOCK_SECONDS = 0.005
BLOCK_BYTES = 64 * 1024


class Pace:
    """Tokens for bytes; thread-safe. ``seconds`` reads a monotonic clock."""

    def __init__(self, seconds: Callable[[], float]) -> None:
        """Start without a cap."""
        self._seconds = seconds
        self._changed = threading.Condition()
        self._rate: int | None = None
        self._tokens = 0.0
        self._filled_at = seconds()

    @property
    def is_capped(self) -> bool:
        """Whether there is a cap at the moment."""
        return self._rate is not None

    def share(self, most_bytes: int) -> int:
        """Return how much of what is wanted may be read at once."""
        rate = self._rate
        if rate is None:
            return most_bytes
        return min(most_bytes, max(BLOCK_BYTES, int(rate * BLOCK_SECONDS)))

    def set(self, bytes_per_second: int | None) -> None:
        """Take another cap, or none."""
        with self._changed:
            self._rate = bytes_per_second
            self._tokens = 0.0
            self._filled_at = self._seconds()
            self._changed.notify_all()

    def take(self, count: int) -> None:
        """Wait until so many bytes may go, and count them."""
        with self._changed:
            while self._rate is not None:
                self._fill(self._rate)
                if self._tokens >= 0.0:
                    self._tokens -= count
                    return
                self._changed.wait(-self._tokens / self._rate)

    def _fill(self, rate: int) -> None:
        now = self._seconds()
        grown = self._tokens + (now - self._filled_at) * rate
        self._tokens = min(grown, rate * BURST_SECONDS)
        self._filled_at = now


class PacedBody:
    """A body whose reading keeps the pace (contract at ``core.ports.Body``)."""

    def __init__(self, body: Body, pace: Pace) -> None:
        """Wrap a body."""
        self.length = body.length
        self._body = body
        self._pace = pace

    def read(self, most_bytes: int) -> bytes | bytearray | memoryview:
        """Return the next bytes once the pace allows them."""
        block = self._body.read(self._pace.share(most_bytes))
        self._pace.take(len(block))
        return block

    def rewind(self) -> None:
        """Start again from the first byte."""
        self._body.rewind()

    def origin(self) -> tuple[int, int] | None:
        """Return where the bytes lie, unless they have to keep a pace."""
        body = self._body
        return body.origin() if isinstance(body, OnDisk) and not self._pace.is_capped else None

    def crc64nvme(self) -> int:
        """Return the checksum; reading for it alone sends nothing and keeps no pace."""
        return self._body.crc64nvme()


class PacedDisk:
    """The two doors of a disk that hands use, with paced bodies behind the first."""

    def __init__(self, disk: Disk, pace: Pace) -> None:
        """Wrap a disk."""
        self._disk = disk
        self._pace = pace

    def open_piece(self, pin_id: str, listing: Listing, path: str, piece: Piece) -> Body:
        """Return the bytes of one piece, read at the pace."""
        return PacedBody(self._disk.open_piece(pin_id, listing, path, piece), self._pace)

    def read_small(self, path: str, most_bytes: int) -> bytes | None:
        """Return a small file."""
        return self._disk.read_small(path, most_bytes)
