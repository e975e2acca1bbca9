"""How much of the trainer's disk pins may take.

A pin is a hard link: it takes nothing until the trainer removes the file. From then on the disk
holds the file for us alone, and the trainer must not run out of space because of that.
"""

from __future__ import annotations

from dataclasses import dataclass

_GIB = 2**30
#: So much stays free unless a user says otherwise (guessed: some seconds of a fast disk's writing).
FLOOR_SHARE = 0.05
FLOOR_BYTES = 10 * _GIB
#: So much of the disk pins may hold for us alone unless a user says otherwise (guessed: a trainer
#: that keeps one checkpoint needs room for two).
MOST_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class Room:
    """What a user allows; ``None``: a share of the disk."""

    floor_bytes: int | None = None
    most_bytes: int | None = None

    def floor(self, disk_bytes: int) -> int:
        """Return how much of a disk of this size stays free."""
        if self.floor_bytes is not None:
            return self.floor_bytes
        return min(int(disk_bytes * FLOOR_SHARE), FLOOR_BYTES)

    def most(self, disk_bytes: int) -> int:
        """Return how much of a disk of this size pins may hold for us alone."""
        return int(disk_bytes * MOST_SHARE) if self.most_bytes is None else self.most_bytes
