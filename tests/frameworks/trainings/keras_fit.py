"""Keras 3 on PyTorch: ``BackupAndRestore``, which resumes by itself."""

from __future__ import annotations

import os
from typing import Any

os.environ["KERAS_BACKEND"] = "torch"

import keras
import numpy as np
import torch

from tests.frameworks.trainings.gate import Run

WIDTH = 16


class Watched(keras.callbacks.Callback):
    """Notes losses, and waits before the backup of an epoch."""

    def __init__(self, run: Run) -> None:
        """Belong to a run."""
        super().__init__()
        self.run = run

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Note the epoch's loss; the backup of the epoch comes next."""
        self.run.note(epoch + 1, logs["loss"])
        self.run.wait(epoch + 1)


def train(run: Run) -> None:
    """Train; one epoch counts as a step."""
    torch.set_num_threads(1)
    keras.utils.set_random_seed(7)
    model = keras.Sequential(
        [
            keras.layers.Input((WIDTH,)),
            keras.layers.Dense(256 * 1024, name="ballast"),
            keras.layers.Dense(1),
        ]
    )
    model.compile(optimizer=keras.optimizers.SGD(1e-9, momentum=0.9), loss="mse")
    x = np.random.default_rng(7).normal(size=(16, WIDTH)).astype("float32")
    backup = keras.callbacks.BackupAndRestore(str(run.root / "backup"), delete_checkpoint=False)
    model.fit(
        x,
        x.sum(1, keepdims=True),
        epochs=run.last_step,
        batch_size=8,
        shuffle=False,
        verbose=0,
        callbacks=[Watched(run), backup],
    )


if __name__ == "__main__":
    train(Run.started())
