"""Find the checkpoint that a framework's pointer names."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable

from ckptsyncd.core.records.documents import Pointer

#: TensorFlow's ``checkpoint`` file names its target in quotes on the first line.
_QUOTED = re.compile(r'model_checkpoint_path: "([^"\n]+)"')


def target_of(pointer: Pointer, candidates: Iterable[tuple[str, int | None]]) -> str | None:
    """Return the name among ``candidates`` (name, step) that the pointer names, if any.

    A link names its target or something below it; a text names it by path, by last component, or
    (Megatron's tracker) by step.
    """
    base = posixpath.dirname(pointer.path)
    if pointer.kind == "symlink":
        words = [pointer.text]
    else:
        quoted = _QUOTED.search(pointer.text)
        words = [quoted.group(1)] if quoted else pointer.text.split()[:1]
    for word in words:
        path = posixpath.normpath(posixpath.join(base, word))
        for name, step in candidates:
            if path == name or path.startswith(name + "/") or _same_name(word, name):
                return name
            if pointer.kind != "symlink" and word.isdecimal() and step == int(word[:18]):
                return name
    return None


def _same_name(word: str, name: str) -> bool:
    # An absolute path of another machine names the checkpoint with the same last component.
    return word.startswith("/") and posixpath.basename(word) == posixpath.basename(name)
