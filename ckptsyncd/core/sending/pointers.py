"""How a framework's own pointer (``latest``, ``last.ckpt``) is made to name a restored checkpoint.

Pointers are never copied back as they were: one that names a checkpoint that is not there sends the
trainer to nothing, or to a start from zero. Four forms are understood: a link, a text that is a
step (Megatron), a text that is a name (DeepSpeed), and TensorFlow's ``checkpoint`` file.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import replace

from ckptsyncd.core.records.documents import Pointer

#: Names that mean "the newest"; ``best`` and others keep their own meaning and are not moved.
_NEWEST = re.compile(r"(?i)(latest|last|newest|current)(?![a-z])")
#: What a name is made of: no blanks, no quotes, so that prose and JSON are no pointers.
_NAME = re.compile(r"""[^\s"'{}\[\]<>]{1,1024}""")
_TENSORFLOW = re.compile(r'\s*model_checkpoint_path: "([^"\n]+)"\n')
_DIGITS = re.compile(r"\d+")


def point_at(
    pointer: Pointer, checkpoint: str, step: int | None, files: Sequence[str] = ()
) -> Pointer | None:
    """Return the pointer as it must be to name ``checkpoint``, or ``None``: leave it out.

    One that names it already comes back as it is. One that names another checkpoint is rewritten
    where its name says that it means the newest. ``files`` are the checkpoint's paths, for links
    that name one member of several (``latest-rank0.pt``). Paths are relative to the watch root.
    """
    if pointer.kind == "symlink":
        return _linked(pointer, checkpoint, files)
    if posixpath.basename(pointer.path) == "checkpoint":
        return _tensorflow(pointer, checkpoint)
    return _written(pointer, checkpoint, step)


def may_replace(path: str, text: str | None) -> bool:
    """Return whether what has a pointer's name is a pointer too, and means the newest.

    ``text`` is a file's content, ``None`` for a link. A trainer's own file is never replaced.
    """
    if text is not None and posixpath.basename(path) == "checkpoint":
        return _TENSORFLOW.match(text) is not None
    return _means_newest(path) and (text is None or _NAME.fullmatch(text.strip()) is not None)


def is_inside(link: str, target: str) -> bool:
    """Return whether a link's target stays below the root, however the links on its way lead.

    ``..`` is allowed at the front only: behind another name it could climb out through a link.
    """
    if not target or target.startswith("/") or "\0" in target:
        return False
    parts = [part for part in target.split("/") if part not in ("", ".")]
    climbs = next((n for n, part in enumerate(parts) if part != ".."), len(parts))
    return climbs <= link.count("/") and ".." not in parts[climbs:]


def _means_newest(path: str) -> bool:
    return _NEWEST.match(posixpath.basename(path)) is not None


def _relative(path: str, checkpoint: str) -> str:
    return posixpath.relpath("/" + checkpoint, "/" + posixpath.dirname(path))


def _linked(pointer: Pointer, checkpoint: str, files: Sequence[str]) -> Pointer | None:
    old = posixpath.normpath(posixpath.join(posixpath.dirname(pointer.path), pointer.text))
    if old == checkpoint or old in files or old.startswith(checkpoint + "/"):
        return pointer if is_inside(pointer.path, pointer.text) else None
    if not _means_newest(pointer.path):
        return None
    new = _successor(old, checkpoint, files)
    return replace(pointer, text=_relative(pointer.path, new)) if new else None


def _successor(old: str, checkpoint: str, files: Sequence[str]) -> str:
    """Return the path of the restored checkpoint that stands where ``old`` stood, or nothing."""
    beside = posixpath.dirname(old) == posixpath.dirname(checkpoint)
    one = not files or checkpoint in files or any(f.startswith(checkpoint + "/") for f in files)
    if one and (beside or (old.startswith("/") and _shape(old) == _shape(checkpoint))):
        return checkpoint
    alike = [path for path in files if beside and _shape(path) == _shape(old)]
    lengths = [len(posixpath.commonprefix([path[::-1], old[::-1]])) for path in alike]
    best = max(lengths, default=0)
    return alike[lengths.index(best)] if lengths.count(best) == 1 else ""


def _shape(path: str) -> str:
    return _DIGITS.sub("#", posixpath.basename(path))


def _written(pointer: Pointer, checkpoint: str, step: int | None) -> Pointer | None:
    old = pointer.text.strip()
    if not _NAME.fullmatch(old) or old.startswith("/"):
        return None
    name = _relative(pointer.path, checkpoint)
    if old == name:
        return pointer
    is_step = old.isascii() and old.isdecimal() and not name.isdecimal()
    if is_step and step is not None and int(old) == step:
        return pointer
    new = name if not is_step else "" if step is None else str(step)
    alike = _DIGITS.sub("#", new) == _DIGITS.sub("#", old)
    if not alike or not _means_newest(pointer.path):
        return None
    return replace(pointer, text=pointer.text.replace(old, new))


def _tensorflow(pointer: Pointer, checkpoint: str) -> Pointer | None:
    """Only the restored checkpoint is there, so it is the only one that the file may list."""
    if not _TENSORFLOW.match(pointer.text):
        return None
    name = _relative(pointer.path, checkpoint)
    if '"' in name or "\\" in name or "\n" in name:
        return None
    text = f'model_checkpoint_path: "{name}"\nall_model_checkpoint_paths: "{name}"\n'
    return replace(pointer, text=text)
