"""The frameworks that are trained: what each needs, saves, and leaves when it dies in a save."""

from __future__ import annotations

import importlib.util
import re
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

#: Given the watch root and the directory for temporary files: the name of what is half saved.
Half = Callable[[Path, Path], str]


@dataclass(frozen=True)
class Group:
    """One framework. ``layout``: as which its checkpoints are known.

    ``shared_memory``: its directory for temporary files lies on another file system.
    """

    name: str
    training: str
    needs: tuple[str, ...]
    layout: str
    half: Half
    shared_memory: bool = False

    def half_saved(self, root: Path, temporary: Path) -> str:
        """Return the name of what is half saved now, or nothing."""
        try:
            return self.half(root, temporary)
        except FileNotFoundError:  # rotated away while we looked
            return ""

    def missing(self) -> list[str]:
        """Return the packages that are not installed."""
        return [name for name in self.needs if importlib.util.find_spec(name) is None]


def newest(paths: Iterable[Path]) -> Path | None:
    """Return the path with the highest last number in its name."""
    return max(paths, key=lambda p: int(re.findall(r"\d+", p.name)[-1]), default=None)


def without(pattern: str, last: str) -> Half:
    """Return a question for the newest directory that its last file is missing in."""

    def half(root: Path, temporary: Path) -> str:
        del temporary
        folder = newest(root.glob(pattern))
        is_half = folder is not None and not (folder / last).exists() and any(folder.iterdir())
        return str(folder.relative_to(root)) if folder is not None and is_half else ""

    return half


def torn_archive(pattern: str) -> Half:
    """Return a question for a file whose end record is not there yet."""

    def half(root: Path, temporary: Path) -> str:
        del temporary
        torn = (p for p in root.glob(pattern) if p.stat().st_size and not zipfile.is_zipfile(p))
        return next((path.name for path in torn), "")

    return half


def named(pattern: str) -> Half:
    """Return a question for a temporary name in the watch root."""

    def half(root: Path, temporary: Path) -> str:
        del temporary
        return next((path.name for path in root.glob(pattern)), "")

    return half


def outside(root: Path, temporary: Path) -> str:
    """Return the name of a file that is written outside and will be renamed."""
    del root
    return next((path.name for path in temporary.glob("tmp*") if path.is_file()), "")


def rewritten_backup(root: Path, temporary: Path) -> str:
    """Return the backup's name while its weights are newer than what is written after them."""
    del temporary
    weights, last = root / "backup/latest.weights.h5", root / "backup/training_metadata.json"
    if not (weights.exists() and last.exists()):
        return ""
    return "backup" if weights.stat().st_mtime_ns > last.stat().st_mtime_ns else ""


GROUPS = (
    Group("torch", "plain_torch", ("torch",), "file", torn_archive("*.pt")),
    Group("safetensors", "tensors", ("torch", "safetensors"), "file", named(".tmp*")),
    Group(
        "transformers",
        "hf_trainer",
        ("torch", "transformers", "accelerate"),
        "huggingface-trainer",
        without("checkpoint-*", "trainer_state.json"),
    ),
    Group(
        "accelerate",
        "accelerated",
        ("torch", "accelerate"),
        "accelerate",
        without("checkpoints/checkpoint_*", "random_states_0.pkl"),
    ),
    Group("lightning", "lightning_fit", ("torch", "lightning"), "lightning", outside),
    Group(
        "lightning across file systems",
        "lightning_fit",
        ("torch", "lightning"),
        "lightning",
        torn_archive("*.ckpt"),
        shared_memory=True,
    ),
    Group("keras", "keras_fit", ("torch", "keras", "h5py"), "keras-backup", rewritten_backup),
    Group("orbax", "orbax_loop", ("jax", "orbax"), "orbax", named("*.orbax-checkpoint-tmp*")),
    Group(
        "torch distributed checkpoint",
        "distributed",
        ("torch",),
        "torch-distributed",
        without("step-*", ".metadata"),
    ),
)
