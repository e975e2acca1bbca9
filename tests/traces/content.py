"""What a recorded file may have held: the right size, whole by its format, different each time."""

from __future__ import annotations

import io
import json
import random
import re
import struct
import zipfile
from collections.abc import Callable

from tests.formats.samples import gguf as made_gguf

#: Larger recorded files are made this much smaller: a replay is about order and time.
SCALE = 16
_KEPT_BYTES = 64 * 1024

_NUMBER = re.compile(r"\d+")


def scaled(size: int) -> int:
    """Return the size that a recorded size has in a replay."""
    return size if size <= _KEPT_BYTES else max(_KEPT_BYTES, size // SCALE)


def archive(size: int, seed: int) -> bytes:
    """Return a zip archive of exactly this size, if it is large enough for one."""
    empty = _archive(b"")
    return _archive(random.Random(seed).randbytes(max(0, size - len(empty))))


def _archive(data: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr(zipfile.ZipInfo("archive/data.pkl"), data)
    return buffer.getvalue()


def safetensors(size: int, seed: int) -> bytes:
    """Return a file of one tensor, of exactly this size if it is large enough for one."""
    room = 128
    length = max(0, size - room - 8)
    row = {"dtype": "U8", "shape": [length], "data_offsets": [0, length]}
    header = json.dumps({"w": row}).encode().ljust(room)
    return struct.pack("<Q", room) + header + random.Random(seed).randbytes(length)


def hdf5(size: int, seed: int) -> bytes:
    """Return a file whose superblock names its own size."""
    head = b"\x89HDF\r\n\x1a\n" + bytes([0, 0, 0, 0, 0, 8, 8, 0]) + struct.pack("<HHI", 4, 16, 0)
    head += struct.pack("<4Q", 0, 2**64 - 1, size, 2**64 - 1)
    return head + random.Random(seed).randbytes(max(0, size - len(head)))


def text(size: int, seed: int) -> bytes:
    """Return a JSON object of exactly this size, if it is large enough for one."""
    data = json.dumps({"n": seed, "weight_map": {}}).encode()
    return data[:-1].ljust(size - 1) + b"}"


def table(size: int, seed: int) -> bytes:
    """Return what ends as a table of TensorFlow's does."""
    head, end = bytes.fromhex("00000608011a020801"), struct.pack("<Q", 0xDB4775248B80FB57)
    return head + random.Random(seed).randbytes(max(0, size - len(head + end))) + end


def gguf(size: int, seed: int) -> bytes:
    """Return a GGUF file of about this size."""
    return made_gguf(elements=max(seed, size // 4))


_MAKERS: dict[str, Callable[[int, int], bytes]] = {
    ".pt": archive,
    ".pth": archive,
    ".ckpt": archive,
    ".keras": archive,
    ".npz": archive,
    ".safetensors": safetensors,
    ".h5": hdf5,
    ".gguf": gguf,
    ".json": text,
    ".index": table,
}


def content(path: str, size: int, seed: int, *, endless: bool = False) -> bytes:
    """Return bytes that a file of this name and size may have held, whole by its format.

    ``endless``: the name promises an end mark that the content is not to have.
    """
    made = b""
    for suffix, maker in _MAKERS.items():
        if path.endswith(suffix) and not endless:
            made = maker(size, seed)
    return made or b"\x80" + random.Random(seed).randbytes(max(0, size - 1))


def pointer(path: str, unit: str) -> bytes:
    """Return what a framework's pointer of this name says when it names a checkpoint."""
    base = path.rpartition("/")[2]
    if base == "checkpoint":
        return f'model_checkpoint_path: "{unit}"\n'.encode()
    if base == "latest_checkpointed_iteration.txt":
        return str((_NUMBER.findall(unit) or ["0"])[-1]).encode()
    return unit.encode()
