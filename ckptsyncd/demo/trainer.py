"""A small trainer: ``python -m ckptsyncd.demo.trainer DIR LOG``.

It counts steps and saves ``checkpoint-N`` as the Hugging Face Trainer does: eight files written in
place, ``trainer_state.json`` last, all but the newest ones removed. It goes on from the newest one
that it finds. It knows nothing of ckptsyncd.

In LOG, outside of DIR, it writes one JSON object a line: every step, and the SHA-256 of every file
*before* the file is written, so that the log never knows less than the disk.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import math
import os
import shutil
import threading
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

MIB = 1024 * 1024
STEP_SECONDS = 0.1
#: Between two files of one save: a real one takes its time as well.
FILE_SECONDS = 0.08


def main() -> None:
    """Train until interrupted, or for so many steps."""
    options = _options()
    options.dir.mkdir(parents=True, exist_ok=True)
    with suppress(KeyboardInterrupt), options.log.open("a", encoding="utf-8") as log:
        train(options, log, threading.Event())


def train(options: argparse.Namespace, log: TextIO, pause: threading.Event) -> None:
    """Count steps from the newest checkpoint on, save every so many of them, keep the newest."""
    first = _newest(options.dir) + 1
    for step in range(first, first + options.steps):
        pause.wait(STEP_SECONDS)
        _write(log, event="step", step=step, loss=_loss(step))
        if step % options.every == 0:
            save(options.dir, step, options.weights, log, pause)
            _write(log, event="saved", step=step)
            _rotate(options.dir, options.keep)


def save(root: Path, step: int, weights: int, log: TextIO, pause: threading.Event) -> None:
    """Write the files of one checkpoint, each told to the log first."""
    folder = root / f"checkpoint-{step}"
    folder.mkdir(exist_ok=True)
    for name, data in files(step, weights):
        _write(log, event="file", step=step, file=name, sha256=hashlib.sha256(data).hexdigest())
        (folder / name).write_bytes(data)
        pause.wait(FILE_SECONDS)


def files(step: int, weights: int) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of a checkpoint's eight files, the marker last."""
    history = [{"step": n, "loss": _loss(n)} for n in range(1, step + 1)]
    yield "config.json", _json({"model_type": "demo", "parameters": weights // 4})
    yield "generation_config.json", _json({"do_sample": False})
    yield "model.safetensors", safetensors(weights)
    yield "training_args.bin", torch_zip(os.urandom(2048))
    yield "optimizer.pt", torch_zip(os.urandom(2 * weights))
    yield "scheduler.pt", torch_zip(os.urandom(512))
    yield "rng_state.pth", torch_zip(os.urandom(5056))
    yield "trainer_state.json", _json({"global_step": step, "log_history": history})


def safetensors(size: int) -> bytes:
    """Return a safetensors file of two tensors that are together about ``size`` bytes."""
    half = size // 8 * 4
    tensors = {
        name: {"dtype": "F32", "shape": [half // 4], "data_offsets": [start, start + half]}
        for name, start in (("embed.weight", 0), ("head.weight", half))
    }
    header = json.dumps({"__metadata__": {"format": "pt"}, **tensors}).encode()
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header + os.urandom(2 * half)


def torch_zip(data: bytes) -> bytes:
    """Return a zip with stored members, as ``torch.save`` writes it."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("archive/data/0", data)
        archive.writestr("archive/version", b"3\n")
    return out.getvalue()


def _loss(step: int) -> float:
    return round(2.0 + 8.0 * math.exp(-step / 40.0), 4)


def _newest(root: Path) -> int:
    """Return the step of the newest whole checkpoint, 0 where there is none."""
    return max(
        (_step(state.parent) for state in root.glob("checkpoint-*/trainer_state.json")), default=0
    )


def _rotate(root: Path, keep: int) -> None:
    for folder in sorted(root.glob("checkpoint-*"), key=_step)[:-keep]:
        shutil.rmtree(folder)


def _step(folder: Path) -> int:
    return int(folder.name.rpartition("-")[2])


def _json(value: Any) -> bytes:
    return json.dumps(value, indent=2).encode()


def _write(log: TextIO, **event: object) -> None:
    log.write(json.dumps(event) + "\n")
    log.flush()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A small trainer that saves checkpoints.")
    parser.add_argument("dir", type=Path, help="where checkpoints go")
    parser.add_argument("log", type=Path, help="where steps and checksums go")
    parser.add_argument("--every", type=int, default=20, help="save every so many steps")
    parser.add_argument("--keep", type=int, default=2, help="keep so many checkpoints")
    parser.add_argument("--weights", type=int, default=2 * MIB, help="bytes of weights")
    # A trainer whose terminal is gone ends by itself, within minutes.
    parser.add_argument("--steps", type=int, default=3000, help="end after so many steps")
    return parser.parse_args()


if __name__ == "__main__":
    main()
