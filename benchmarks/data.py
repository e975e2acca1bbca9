"""What is uploaded: files of random bytes, made once."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

KIB, MIB, GIB = 2**10, 2**20, 2**30


@dataclass(frozen=True, slots=True)
class Case:
    """A checkpoint: names and sizes of its files."""

    name: str
    title: str
    sizes: tuple[int, ...]

    @property
    def total_bytes(self) -> int:
        """All of it."""
        return sum(self.sizes)

    def names(self) -> list[str]:
        """Return a name for each file."""
        if self.name != "hf":
            return [f"file-{index:05d}.bin" for index in range(len(self.sizes))]
        return [
            "model-00001-of-00002.safetensors.bin", "model-00002-of-00002.safetensors.bin",
            "optimizer.bin", "scheduler.bin", "rng_state.bin", "config.bin", "trainer_state.json",
            "training_args.bin",
        ]  # fmt: skip


FULL = (
    Case("4g", "1 x 4 GiB", (4 * GIB,)),
    Case("1g", "1 x 1 GiB", (GIB,)),
    Case("m16", "64 x 16 MiB", (16 * MIB,) * 64),
    Case("k64", "2,000 x 64 KiB", (64 * KIB,) * 2000),
    Case(
        "hf",
        "a Hugging Face checkpoint, 8 files, 1.2 GiB",
        (400 * MIB, 200 * MIB, 600 * MIB, 1 * KIB, 14 * KIB, 1 * KIB, 60 * KIB, 5 * KIB),
    ),
    Case("256m", "1 x 256 MiB", (256 * MIB,)),
    Case("k64s", "200 x 64 KiB", (64 * KIB,) * 200),
)
QUICK = (
    Case("4g", "1 x 24 MiB", (24 * MIB,)),
    Case("k64", "20 x 64 KiB", (64 * KIB,) * 20),
    Case("hf", "8 files of a trainer", (4 * MIB, 2 * MIB, *(KIB,) * 6)),
)


def make(case: Case, folder: Path) -> Path:
    """Write a case's files unless they are there, and return their directory."""
    place = folder / f"data-{case.name}-{case.total_bytes}"
    if place.exists():
        return place
    making = place.with_suffix(".making")
    making.mkdir(parents=True)
    block = os.urandom(MIB)
    for name, size in zip(case.names(), case.sizes, strict=True):
        if name.endswith(".json"):  # what ends a checkpoint must be what it says
            (making / name).write_text(f'{{"log_history": "{"x" * (size - 19)}"}}')
            continue
        with (making / name).open("wb") as file:
            left, turn = size, 0
            while left:  # no two blocks alike, and made faster than random
                mark = os.urandom(64)
                data = mark + block[turn % 4096 : len(block) - 4096 + turn % 4096]
                left -= file.write(data[: min(left, len(data))])
                turn += 1
    making.rename(place)
    return place


def linked(source: Path, to: Path) -> Path:
    """Make a directory of hard links to another's files: a checkpoint that costs nothing."""
    to.mkdir(parents=True)
    for file in sorted(source.iterdir()):
        os.link(file, to / file.name)
    return to
