"""Which bytes of a checkpoint are read back to see that they are what was stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

from ckptsyncd.core.records.manifest import StoredFile
from ckptsyncd.recover.stream import Gap, Span, covers


@dataclass(frozen=True, slots=True)
class Sample:
    """Bytes of one file whose CRC64-NVME the manifest knows: all of it, or one piece."""

    stored: StoredFile
    gap: Gap
    crc64nvme: int

    @property
    def identity(self) -> tuple[str, int, int]:
        """What is the same in every edition that names the same object."""
        return self.stored.key, self.gap.offset, self.crc64nvme

    def matches(self, spans: list[Span]) -> bool:
        """Return whether what was read is all of it, and what was stored."""
        return covers(self.gap.length, self.crc64nvme, spans)


def whole(files: Iterable[StoredFile]) -> tuple[Sample, ...]:
    """Return everything, file by file."""
    return tuple(map(_whole, files))


def by_chance(
    title: str, files: Sequence[StoredFile], percent: float, seed: int
) -> tuple[Sample, ...]:
    """Return random pieces until ``percent`` of the bytes are together, at least one.

    A file that was sent in one go counts as a piece. The same seed chooses the same ones.
    """
    pieces = sorted(
        (sample for stored in files for sample in _pieces(stored)),
        key=lambda sample: (sample.stored.path, sample.gap.offset),
    )
    Random(f"{seed} {title!r}").shuffle(pieces)  # noqa: S311 - chance, no secret
    wanted = sum(stored.size for stored in files) * percent / 100.0
    return tuple(_until(pieces, wanted))


def _whole(stored: StoredFile) -> Sample:
    return Sample(stored, Gap(0, stored.size), stored.crc64nvme)


def _pieces(stored: StoredFile) -> Iterator[Sample]:
    if not stored.piece_sums:
        yield _whole(stored)
    for index, crc in enumerate(stored.piece_sums):
        start = index * stored.piece_bytes
        yield Sample(stored, Gap(start, min(stored.piece_bytes, stored.size - start)), crc)


def _until(pieces: Sequence[Sample], wanted_bytes: float) -> Iterator[Sample]:
    total = 0
    for sample in pieces:
        yield sample
        total += sample.gap.length
        if total >= wanted_bytes:
            return
