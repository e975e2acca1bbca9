"""Ways in which trainers save, with content that differs each time."""

from __future__ import annotations

import hashlib
import io
import json
import random
import zipfile
from collections.abc import Iterator
from pathlib import Path

MIB = 1024 * 1024


def torch_bytes(size: int, seed: int) -> bytes:
    """Return a file as torch.save writes it: a zip with one stored member of about this size."""
    out, chance = io.BytesIO(), random.Random(seed)
    with zipfile.ZipFile(out, "w") as archive, archive.open("archive/data.pkl", "w") as member:
        for start in range(0, size, 16 * MIB):
            member.write(chance.randbytes(min(16 * MIB, size - start)))
    return out.getvalue()


def by_rename(path: Path, size: int, seed: int) -> None:
    """Save under a temporary name and rename."""
    beside = path.with_name(f".tmp{seed:06d}")
    beside.write_bytes(torch_bytes(size, seed))
    beside.replace(path)


def in_place(path: Path, size: int, seed: int) -> None:
    """Save over the old content."""
    path.write_bytes(torch_bytes(size, seed))


def trainer_files(step: int, weights: int = 256 * 1024) -> Iterator[tuple[str, bytes]]:
    """Yield the eight files of a Hugging Face checkpoint in the order in which they are written."""
    yield "config.json", json.dumps({"hidden_size": 64, "step": step}).encode()
    yield "generation_config.json", b'{"do_sample": false}'
    yield "model.safetensors", safetensors_bytes(weights, step)
    yield "training_args.bin", torch_bytes(2000, step + 1)
    yield "optimizer.pt", torch_bytes(weights * 2, step + 2)
    yield "scheduler.pt", torch_bytes(500, step + 3)
    yield "rng_state.pth", torch_bytes(900, step + 4)
    yield "trainer_state.json", json.dumps({"global_step": step}).encode()


def safetensors_bytes(size: int, seed: int) -> bytes:
    """Return a safetensors file with one tensor of this many bytes."""
    header = {"w": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}}
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + random.Random(seed).randbytes(size)


def trainer_checkpoint(root: Path, step: int, weights: int = 256 * 1024) -> Path:
    """Save a Hugging Face checkpoint, in place, its marker last."""
    folder = root / f"checkpoint-{step}"
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in trainer_files(step, weights):
        (folder / name).write_bytes(data)
    return folder


def content(root: Path) -> dict[str, str]:
    """Return a fingerprint of every file below a directory, with its mode; ours left out."""
    found = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if name.split("/", maxsplit=1)[0] == ".ckptsyncd":
            continue
        if path.is_symlink():
            found[name] = f"-> {path.readlink()}"
        elif path.is_file():
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            found[name] = f"{path.stat().st_mode & 0o7777:o} {digest}"
    return found
