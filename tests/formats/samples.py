"""Small checkpoint files of every format, made byte by byte or by the standard library."""

from __future__ import annotations

import io
import json
import os
import struct
import tempfile
import zipfile

from ckptsyncd.formats import check
from ckptsyncd.formats.verdict import Verdict


def checked(name: str, data: bytes) -> Verdict:
    """Return the verdict on a file of this name and content."""
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.flush()
        return check(file.fileno(), name, os.fstat(file.fileno()).st_size)


def zipped(comment: bytes = b"", members: int = 2) -> bytes:
    """Return an archive as torch and NumPy lay it out: members stored, directory, end record."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.comment = comment
        for number in range(members):
            archive.writestr(f"archive/data/{number}", bytes(range(100)))
    return buffer.getvalue()


def zipped_64() -> bytes:
    """Return the same with zip64 records before the end record, as torch always writes them."""
    plain = zipped()
    body, end = plain[:-22], plain[-22:]
    entries, length, offset = struct.unpack("<H2I", end[10:20])
    record = struct.pack(
        "<4sQ2H2I4Q", b"PK\6\6", 44, 45, 45, 0, 0, entries, entries, length, offset
    )
    locator = struct.pack("<4sIQI", b"PK\6\7", 0, len(body), 1)
    return body + record + locator + end


def safetensors_head(payload: int) -> bytes:
    """Return the beginning of a file of one tensor of so many bytes, and metadata."""
    row = {"dtype": "U8", "shape": [payload], "data_offsets": [0, payload]}
    header = json.dumps({"__metadata__": {"format": "pt"}, "w": row}).encode()
    return struct.pack("<Q", len(header)) + header


def safetensors(payload: int = 64) -> bytes:
    """Return a file of one tensor of so many bytes, and metadata."""
    return safetensors_head(payload) + bytes(payload)


def hdf5(version: int = 0, *, size: int = 2000, place: int = 0, flags: int = 0) -> bytes:
    """Return a file whose superblock names its own size, behind a user's block of ``place``."""
    addresses = struct.pack("<4Q", place, 2**64 - 1, size, 2**64 - 1)
    if version < 2:
        head = bytes([version, 0, 0, 0, 0, 8, 8, 0]) + struct.pack("<HHI", 4, 16, 0)
        head += bytes(4) if version == 1 else b""
    else:
        head = bytes([version, 8, 8, flags])
    block = bytes(place) + b"\x89HDF\r\n\x1a\n" + head + addresses
    return block + bytes(size - len(block))


def text(value: str) -> bytes:
    """Return a GGUF string."""
    return struct.pack("<Q", len(value)) + value.encode()


def gguf(alignment: int = 32, kind: int = 0, elements: int = 15) -> bytes:
    """Return a GGUF file of two tensors, with a value of every shape in its header."""
    pairs = [
        text("general.architecture") + struct.pack("<I", 8) + text("llama"),
        text("general.alignment") + struct.pack("<2I", 4, alignment),
        text("llama.block_count") + struct.pack("<2I", 4, 3),
        text("tokens") + struct.pack("<2IQ", 9, 8, 2) + text("a") + text("bc"),
        text("scores") + struct.pack("<2IQ3f", 9, 6, 3, 0.1, 0.2, 0.3),
    ]
    second = 64 // alignment * alignment if alignment <= 64 else alignment
    infos = [
        text("first") + struct.pack("<I2QIQ", 2, 3, 5, 0, 0),
        text("second") + struct.pack("<IQIQ", 1, elements, kind, second),
    ]
    head = struct.pack("<4sI2Q", b"GGUF", 3, len(infos), len(pairs)) + b"".join(pairs + infos)
    head += bytes(-len(head) % alignment)
    data = bytes(second + elements * 4)
    return head + data + bytes(-len(data) % alignment)


def table() -> bytes:
    """Return a TensorFlow index, laid out as version 2.21.0 writes it."""
    head = bytes.fromhex("00000608011a02080100")
    return head + bytes(range(1, 200)) + bytes.fromhex("57fb808b247547db")


#: A whole file of every format with an end mark.
WHOLE: dict[str, bytes] = {
    "torch.pt": zipped_64(),
    "plain.npz": zipped(),
    "comment.keras": zipped(comment=b"made by hand"),
    "model.safetensors": safetensors(),
    "v0.weights.h5": hdf5(0),
    "v1.h5": hdf5(1),
    "v2.hdf5": hdf5(2),
    "v3.h5": hdf5(3),
    "user.h5": hdf5(0, place=512),
    "model.gguf": gguf(),
    "aligned.gguf": gguf(alignment=64),
    "model.safetensors.index.json": b'{"weight_map": {"w": "model-1.safetensors"}, "n": [1, 2.5]}',
    "ckpt-1.index": table(),
    ".snapshot_metadata": b'{"version": "0.1.0", "world_size": 1, "manifest": {}}',
    "list.json": '["ä", true, null, "\\u00e4"]'.encode(),
}
