"""The layouts that come with the program, in the order in which they are tried."""

from __future__ import annotations

from ckptsyncd.core.layouts.base import Layout, Marker, step_of
from ckptsyncd.core.layouts.files import DIRECTORY, FILES, NUMBERED, SHARDED, SPLIT
from ckptsyncd.core.layouts.huggingface import ACCELERATE, MODEL, TRAINER, TRAINER_YOUNG

BUILT_IN: tuple[Layout, ...] = (
    TRAINER,
    ACCELERATE,
    TRAINER_YOUNG,
    MODEL,
    SHARDED,
    SPLIT,
    DIRECTORY,
    NUMBERED,
    FILES,
)

__all__ = ["BUILT_IN", "Layout", "Marker", "step_of"]
