"""Small whole values for tests of the mind: each with sane defaults, and nothing hidden."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ckptsyncd.core.facts import Begun, FileFact, Instant, Limits, Listing, Receipt
from ckptsyncd.core.records.manifest import Manifest, StoredFile, Writer
from ckptsyncd.core.rules.policy import Policy
from ckptsyncd.core.sending.edition import Edition
from ckptsyncd.core.sending.scene import Scene
from ckptsyncd.core.sightings import Settled

NOW = Instant(boot=1000.0, wall=1_750_000_000.0)
LIMITS = Limits(1, 1000, 100, 10_000)
#: Files over 30 bytes go out in pieces of 16.
POLICY = Policy(whole_bytes=30, piece_bytes=16)


def fact(path: str = "run/a.ckpt", size: int = 10, **other: Any) -> FileFact:
    """Return a regular file."""
    values: dict[str, Any] = {"kind": "file", "device": 1, "inode": 7, "mtime_ns": 5_000_000_000}
    return FileFact(path=path, size=size, **(values | other))


def settled(*facts: FileFact, checkpoint: str = "run/a.ckpt", **other: Any) -> Settled:
    """Return a checkpoint that is whole; of one file of 10 bytes by default."""
    values: dict[str, Any] = {
        "series": "run",
        "step": 100,
        "layout": "file",
        "evidence": "rename",
        "listing": Listing(facts or (fact(checkpoint),)),
    }
    return Settled(checkpoint=checkpoint, **(values | other))


def edition(*facts: FileFact, **other: Any) -> Edition:
    """Return an edition that has just settled, number 1."""
    seen = settled(*facts)
    made = Edition(seen, seen.listing.save_id(), settled_at=NOW.boot)
    made.number = 1
    for name, value in other.items():
        setattr(made, name, value)
    return made


def scene(**other: Any) -> Scene:
    """Return what an edition's next order depends on: epoch 3 is taken."""
    base = Scene(
        limits=LIMITS,
        policy=POLICY,
        host="host",
        nonce="me",
        version="1",
        epoch=3,
        lineage=0,
        after_step=-1,
        least_saved_at=0.0,
        late=False,
        now=NOW,
    )
    return replace(base, **other)


def stored(path: str = "run/a.ckpt", size: int = 10, **other: Any) -> StoredFile:
    """Return a manifest's row of a regular file."""
    values: dict[str, Any] = {
        "kind": "file",
        "mode": 0o644,
        "mtime_ns": 5_000_000_000,
        "key": path,
        "crc64nvme": 99,
        "checked": "crc64nvme",
    }
    return StoredFile(path=path, size=size, **(values | other))


def manifest(*files: StoredFile, **other: Any) -> Manifest:
    """Return the commit record of ``run/a.ckpt``."""
    values: dict[str, Any] = {
        "checkpoint": "run/a.ckpt",
        "edition": 1,
        "series": "run",
        "step": 100,
        "after_step": -1,
        "lineage": 0,
        "layout": "file",
        "evidence": "rename",
        "save_id": settled().listing.save_id(),
        "saved_at": 5.0,
        "committed_at": 6.0,
        "files": files or (stored(),),
        "writer": Writer("host", 3, "me", "1"),
    }
    return Manifest(**(values | other))


def begun(key: str = "run/a.ckpt", size: int = 40, number: int = 1) -> Begun:
    """Return a begun upload in pieces of 16 bytes."""
    return Begun(key, f"upload-{number}", f"me.{number}", size, 16)


def receipt(index: int, length: int = 16) -> Receipt:
    """Return the receipt of a piece."""
    return Receipt(index, length, crc64nvme=1000 + index)
