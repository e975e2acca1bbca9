"""What is still to be sent for one checkpoint, and how long that takes at a speed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ckptsyncd.core.facts import Limits
from ckptsyncd.core.records.memory import EditionRow
from ckptsyncd.core.rules.policy import Policy
from ckptsyncd.core.sending.edition import Edition, FileProgress
from ckptsyncd.core.sending.pieces import piece_bytes
from ckptsyncd.core.sending.rate import LARGE_BYTES, Speed
from ckptsyncd.core.sending.upload import one_piece
from ckptsyncd.errors import Never

#: Answers to be waited for one after another: the epoch is read and taken, the number claimed.
CLAIM_STEPS = 3
#: An upload is begun and finished.
FILE_STEPS = 2
#: The second look and the manifest.
SEAL_STEPS = 2


@dataclass(frozen=True, slots=True)
class Load:
    """What is still to be sent.

    ``bytes`` in large transfers, ``requests`` without much of a body, ``lane_bytes`` the most that
    can only go one after the other, ``steps`` that have to wait for each other's answers.
    """

    bytes: int = 0
    requests: int = 0
    lane_bytes: int = 0
    steps: int = 0

    def seconds(self, speed: Speed, *, sure: bool = False) -> float:
        """Return how long the hands are busy with it, at the speed or at what is sure of it."""
        share = 1.0 - speed.doubt if sure else 1.0
        busy = self.requests * speed.request_seconds / speed.hands
        if speed.bytes_per_second > 0.0:
            busy += self.bytes / (speed.bytes_per_second * share)
        return busy + self.steps * speed.request_seconds

    def alone_seconds(self, speed: Speed, *, sure: bool = False) -> float:
        """Return how long it takes if nothing else is sent: one lane is no faster than a hand."""
        share = 1.0 - speed.doubt if sure else 1.0
        lane = 0.0
        if speed.hand_bytes_per_second > 0.0:
            lane = self.lane_bytes / (speed.hand_bytes_per_second * share)
        tail = self.steps * speed.request_seconds
        return max(self.seconds(speed, sure=sure), lane + tail)


def load_of(
    edition: Edition, row: EditionRow | None, limits: Limits, policy: Policy, sent: int = 0
) -> Load:
    """Return what an edition still needs.

    ``row`` is what a former daemon had stored of it, until it is claimed again. ``sent`` bytes of
    it are under way, and need not be sent again.
    """
    steps = SEAL_STEPS + (0 if edition.claimed == "yes" else CLAIM_STEPS)
    if edition.claimed == "yes":
        files = [_of_file(waiting, limits, policy) for waiting in edition.files.values()]
    else:
        files = list(_of_listing(edition, row, limits, policy))
    count = sum(load.bytes for load in files)
    lane = max((load.lane_bytes for load in files), default=0)
    return Load(
        bytes=max(count - sent, 0),
        requests=sum(load.requests for load in files),
        lane_bytes=max(lane - sent, 0),
        steps=steps + max((load.steps for load in files), default=0),
    )


def _of_listing(
    edition: Edition, row: EditionRow | None, limits: Limits, policy: Policy
) -> Iterator[Load]:
    """Yield what each file needs, as far as one knows before they are laid out."""
    for fact in edition.listing.files:
        if fact.kind != "file" or (row is not None and fact.path in row.objects):
            continue
        load = _of_size(fact.size, limits, policy)
        stored = () if row is None else (r for _, r in row.pieces.get(fact.path, {}).values())
        done = sum(receipt.length for receipt in stored)
        yield Load(max(load.bytes - done, 0), load.requests, load.lane_bytes, load.steps)


def _of_file(waiting: FileProgress, limits: Limits, policy: Policy) -> Load:
    if waiting.begun is None:
        return _of_size(waiting.fact.size, limits, policy)
    lengths = [piece.length for piece in waiting.todo.values()]
    large = sum(length for length in lengths if length >= LARGE_BYTES)
    return _of_pieces(large, sum(length < LARGE_BYTES for length in lengths), limits)


def _of_size(size: int, limits: Limits, policy: Policy) -> Load:
    if size < LARGE_BYTES:
        return Load(requests=1)
    if size <= one_piece(policy, limits):
        return Load(bytes=size)
    try:
        wanted = piece_bytes(size, limits, policy.piece_bytes)
    except Never:
        return Load(bytes=size)
    # A file may have ten thousand pieces: they are not cut to be counted.
    count, rest = divmod(size, wanted)
    is_large = wanted >= LARGE_BYTES
    large = (count * wanted if is_large else 0) + (rest if rest >= LARGE_BYTES else 0)
    small = (0 if is_large else count) + (0 < rest < LARGE_BYTES)
    return _of_pieces(large, small, limits)


def _of_pieces(large: int, small: int, limits: Limits) -> Load:
    return Load(large, small, 0 if limits.pieces_in_parallel else large, FILE_STEPS)
