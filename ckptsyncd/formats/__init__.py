"""Cheap structural checks of checkpoint files: whole, cut off, or nobody can tell.

Heads and tails only, within bounds of memory and time on whatever content; nothing is unpickled.
"""

from __future__ import annotations

from collections.abc import Callable

from ckptsyncd.formats import gguf, hdf5, safetensors, tables, text, zips
from ckptsyncd.formats.reading import Reader
from ckptsyncd.formats.verdict import UNKNOWN, Verdict, broken

Checker = Callable[[Reader], Verdict]

#: What these names promise is what the file must be.
BY_NAME: dict[tuple[str, ...], Checker] = {
    (".safetensors",): safetensors.check,
    (".npz", ".zip"): zips.check,
    (".h5", ".hdf5"): hdf5.check,
    (".gguf",): gguf.check,
    (".json", ".snapshot_metadata"): text.check,
    (".index",): tables.check,
}

#: Behind these names lies one of several formats: the first bytes tell which. ``.keras`` files of
#: Keras 2 may be HDF5. Not here: ``.distcp``, a row of zip archives, whole after each of them.
BY_MAGIC: dict[bytes, Checker] = {
    zips.LOCAL_HEADER: zips.check,
    zips.END_RECORD: zips.check,
    hdf5.SIGNATURE: hdf5.check,
}
AMBIGUOUS = (".pt", ".pth", ".ckpt", ".bin", ".tar", ".keras", ".pt2", ".torch")

#: Other programs use these names for files that may well be empty.
TEXTS = (".json", ".index")

#: Empty files of these names are no checkpoints. Not here: ``.distcp``; a rank that has nothing of
#: its own to save may leave an empty one.
WEIGHTS = (
    *(suffix for suffixes in BY_NAME for suffix in suffixes if suffix not in TEXTS),
    *AMBIGUOUS,
    *(".pkl", ".npy", ".onnx", ".msgpack", ".joblib", ".nemo"),
)


def check(fd: int, path: str, size: int) -> Verdict:
    """Return the shape of an open file, whether its format has an end mark, and what is wrong.

    ``whole``: it ends where its own records say. ``broken``: it cannot be whole, and the fault
    says why. ``unknown``: nothing can be said. Only the last component of ``path`` matters.
    Never raises for what the file contains; OSError where it cannot be read.
    """
    name = path.rpartition("/")[2].lower()
    if size == 0:
        return broken("empty") if name.endswith(WEIGHTS) else UNKNOWN
    reader = Reader(fd, size)
    for suffixes, checker in BY_NAME.items():
        if name.endswith(suffixes):
            return checker(reader)
    if name.endswith(AMBIGUOUS):
        head = reader.at(0, 8)
        for magic, checker in BY_MAGIC.items():
            if head.startswith(magic):
                return checker(reader)
    return UNKNOWN
