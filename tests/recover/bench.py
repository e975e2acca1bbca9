"""A trainer's directory and its way into a store, as the remote format says; for these tests."""

from __future__ import annotations

import os
import stat
import threading
from dataclasses import replace
from pathlib import Path

from ckptsyncd.checksum import crc64nvme
from ckptsyncd.core.facts import FileFact, IfAbsent, Listing
from ckptsyncd.core.ports import Store
from ckptsyncd.core.records import names
from ckptsyncd.core.records.documents import Pointer, Pointers
from ckptsyncd.core.records.manifest import Manifest, StoredFile, Writer, encode
from ckptsyncd.recover.patience import Pace
from ckptsyncd.stores.memory import BytesBody

#: Old and odd, so that a restore that forgets it is noticed.
MTIME_NS = 1_600_000_000_123_456_789


def pace() -> Pace:
    """Return a pace that never rests: the dice always say zero."""
    return Pace(stop=threading.Event(), draw=lambda: 0.0)


def write(root: Path, path: str, data: bytes, *, mode: int = 0o640, mtime_ns: int = 0) -> None:
    """Write a file as a trainer would."""
    place = root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(data)
    place.chmod(mode)
    os.utime(place, ns=(mtime_ns or MTIME_NS, mtime_ns or MTIME_NS))


def facts(root: Path, path: str) -> tuple[FileFact, ...]:
    """Return everything at and below a path, sorted."""
    top = root / path
    below = sorted(top.rglob("*")) if top.is_dir() and not top.is_symlink() else []
    return tuple(_fact(root, place) for place in [top, *below])


def _fact(root: Path, place: Path) -> FileFact:
    found = place.lstat()
    path = place.relative_to(root).as_posix()
    mode = stat.S_IMODE(found.st_mode)
    where = (found.st_dev, found.st_ino)
    if stat.S_ISLNK(found.st_mode):
        target = str(place.readlink())
        return FileFact(path, "symlink", *where, found.st_size, found.st_mtime_ns, target, mode)
    if stat.S_ISDIR(found.st_mode):
        return FileFact(path, "directory", *where, 0, 0, None, mode)
    return FileFact(path, "file", *where, found.st_size, found.st_mtime_ns, None, mode)


def tree(root: Path, path: str) -> dict[str, tuple[object, ...]]:
    """Return everything that a restore must bring back, by path."""
    return {
        fact.path: (
            fact.kind,
            fact.mode if fact.kind != "symlink" else None,
            fact.mtime_ns if fact.kind == "file" else None,
            (root / fact.path).read_bytes() if fact.kind == "file" else fact.target,
        )
        for fact in facts(root, path)
    }


def manifest_of(root: Path, checkpoint: str, *paths: str, edition: int = 1) -> Manifest:
    """Return the manifest of what lies at ``paths`` (or at the checkpoint's own name)."""
    found = [fact for path in paths or (checkpoint,) for fact in facts(root, path)]
    listing = Listing(tuple(sorted(found, key=lambda fact: fact.path)))
    digits = "".join(letter for letter in checkpoint if letter.isdigit())
    return Manifest(
        checkpoint=checkpoint,
        edition=edition,
        series=checkpoint.rpartition("/")[0] or ".",
        step=int(digits) if digits else None,
        after_step=-1,
        lineage=0,
        layout="directory",
        evidence="marker",
        save_id=listing.save_id(),
        saved_at=listing.saved_at,
        committed_at=1_600_000_100.0 + edition,
        files=tuple(_stored(root, checkpoint, edition, fact) for fact in listing.files),
        writer=Writer("host", 1, "nonce", "0"),
    )


def _stored(root: Path, checkpoint: str, edition: int, fact: FileFact) -> StoredFile:
    row = StoredFile(fact.path, fact.kind, fact.size, fact.mode, fact.mtime_ns, target=fact.target)
    if fact.kind != "file":
        return row
    checksum = crc64nvme((root / fact.path).read_bytes())
    key = names.data_key(checkpoint, edition, fact.path)
    return replace(row, key=key, crc64nvme=checksum, checked="crc64nvme")


def put_data(store: Store, root: Path, manifest: Manifest) -> None:
    """Store the objects that a manifest names."""
    for stored in manifest.files:
        if stored.kind == "file":
            body = BytesBody((root / stored.path).read_bytes())
            store.put_whole(stored.key, body, "nonce", create_only=True)


def put_manifest(store: Store, manifest: Manifest) -> str:
    """Commit; return the manifest's key."""
    key = names.manifest_key(manifest.checkpoint, manifest.edition)
    store.put_small(key, encode(manifest), IfAbsent())
    return key


def commit(store: Store, root: Path, checkpoint: str, *paths: str, edition: int = 1) -> Manifest:
    """Store a checkpoint and commit it."""
    manifest = manifest_of(root, checkpoint, *paths, edition=edition)
    put_data(store, root, manifest)
    put_manifest(store, manifest)
    return manifest


def put_pointers(store: Store, manifest: Manifest, *pointers: Pointer) -> None:
    """Store the framework's pointers as last seen."""
    record = Pointers(manifest.series, manifest.checkpoint, manifest.edition, pointers)
    store.put_small(names.pointers_key(manifest.series), record.encode(), None)


def save(root: Path, step: int, *, run: str = "run", size: int = 70_000) -> str:
    """Write a small checkpoint of three files, the marker last; return its name."""
    name = f"{run}/checkpoint-{step}" if run else f"checkpoint-{step}"
    weights = bytes((n * (step + 1)) % 251 for n in range(size))
    write(root, f"{name}/model.safetensors", weights, mode=0o600, mtime_ns=MTIME_NS + step)
    write(root, f"{name}/sub/optimizer.pt", weights[::-1], mtime_ns=MTIME_NS + step + 1)
    state = f'{{"global_step": {step}}}'.encode()
    write(root, f"{name}/trainer_state.json", state, mode=0o644, mtime_ns=MTIME_NS + step + 2)
    return name
