"""The layouts that come with the program, in the order in which they are tried."""

from __future__ import annotations

from ckptsyncd.core.seeing.layouts.base import Layout, Marker, step_of
from ckptsyncd.core.seeing.layouts.files import (
    DIRECTORY,
    FILES,
    NUMBERED,
    RANKED,
    SHARDED,
    SPLIT,
)
from ckptsyncd.core.seeing.layouts.huggingface import (
    ACCELERATE,
    ACCELERATE_YOUNG,
    MODEL,
    TRAINER,
    TRAINER_COPY,
    TRAINER_YOUNG,
)
from ckptsyncd.core.seeing.layouts.jax import ORBAX
from ckptsyncd.core.seeing.layouts.keras import KERAS_BACKUP, KERAS_SHARDED
from ckptsyncd.core.seeing.layouts.parallel import DEEPSPEED, MEGATRON, MEGATRON_CORE, NEMO, RAY
from ckptsyncd.core.seeing.layouts.pytorch import (
    COMPOSER,
    DISTRIBUTED,
    DISTRIBUTED_TENSORS,
    LIGHTNING,
    LIGHTNING_DEEPSPEED,
    LIGHTNING_SHARDED,
    SNAPSHOT,
)
from ckptsyncd.core.seeing.layouts.tensorflow import SAVED_MODEL, TENSORFLOW

#: What tells more stands before what tells less: ``common.pt`` makes a distributed checkpoint
#: Megatron's, a random state makes any directory Accelerate's; bare names come last.
BUILT_IN: tuple[Layout, ...] = (
    TRAINER,
    ACCELERATE,
    TRAINER_YOUNG,
    TRAINER_COPY,
    NEMO,
    MEGATRON_CORE,
    MEGATRON,
    LIGHTNING_SHARDED,
    LIGHTNING_DEEPSPEED,
    DISTRIBUTED,
    DISTRIBUTED_TENSORS,
    DEEPSPEED,
    SNAPSHOT,
    ORBAX,
    SAVED_MODEL,
    KERAS_BACKUP,
    ACCELERATE_YOUNG,
    MODEL,
    KERAS_SHARDED,
    TENSORFLOW,
    COMPOSER,
    SHARDED,
    SPLIT,
    RAY,
    LIGHTNING,
    RANKED,
    DIRECTORY,
    NUMBERED,
    FILES,
)

__all__ = ["BUILT_IN", "Layout", "Marker", "step_of"]
