"""Lightning: ``ModelCheckpoint`` with the best two and the last, resumed by ``ckpt_path``."""

from __future__ import annotations

from typing import Any

import lightning.pytorch as pl
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from torch.utils.data import DataLoader, TensorDataset

from tests.frameworks.trainings.gate import Run
from tests.frameworks.trainings.plain_torch import WIDTH, Model


class Fitted(pl.LightningModule):
    """The model, its loss and its optimizer."""

    def __init__(self, run: Run) -> None:
        """Belong to a run."""
        super().__init__()
        self.run = run
        # Lightning keeps no random state, so nothing in a step may be random.
        self.model = Model(dropout=0.0)

    def training_step(self, batch: Any, index: int) -> Any:
        """Return the loss of a batch."""
        del index
        (x,) = batch
        loss = (self.model(x) - x.sum(1, keepdim=True)).square().mean()
        self.log("loss", loss)
        self.run.note(self.global_step + 1, loss.item())
        return loss

    def configure_optimizers(self) -> Any:
        """Return the optimizer."""
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


class Waiting(pl.Callback):
    """Waits before a save: checkpoints come after all other callbacks."""

    def __init__(self, run: Run) -> None:
        """Belong to a run."""
        self.run = run

    def on_train_batch_end(self, trainer: Any, *_: Any) -> None:
        """Wait where the checkpoint is due."""
        if self.run.saves_at(trainer.global_step):
            self.run.wait(trainer.global_step)


def train(run: Run) -> None:
    """Train; the order of the batches is the same in every epoch."""
    torch.set_num_threads(1)
    pl.seed_everything(7)
    data = TensorDataset(torch.randn(8 * run.save_every, WIDTH))
    saved = ModelCheckpoint(
        dirpath=run.root,
        filename="{step}-{loss:.3f}",
        monitor="loss",
        save_top_k=2,
        save_last=True,
        every_n_train_steps=run.save_every,
    )
    trainer = pl.Trainer(
        max_steps=run.last_step,
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[Waiting(run), saved],
    )
    path = str(run.root / run.resume) if run.resume else None
    trainer.fit(Fitted(run), DataLoader(data, batch_size=8), ckpt_path=path)


if __name__ == "__main__":
    train(Run.started())
