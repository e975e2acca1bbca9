"""Hugging Face Trainer: a tiny GPT-2, ``save_total_limit=1``, resumed by itself."""

from __future__ import annotations

from typing import Any

import torch
import transformers
from torch.utils.data import Dataset

from tests.frameworks.trainings.gate import Run

VOCABULARY = 64
#: Positions that nobody uses: a save with its optimizer takes its time.
POSITIONS = 32 * 1024


class Numbers(Dataset[Any]):
    """Sequences of numbers."""

    def __len__(self) -> int:
        """Return how many there are."""
        return 64

    def __getitem__(self, index: int) -> dict[str, Any]:
        """Return one."""
        ids = torch.arange(index, index + 16) % VOCABULARY
        return {"input_ids": ids, "labels": ids}


class Watched(transformers.TrainerCallback):
    """Notes losses, and waits before a save."""

    def __init__(self, run: Run) -> None:
        """Belong to a run."""
        self.run = run

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Wait where the trainer is about to save."""
        del args
        if control.should_save:
            self.run.wait(state.global_step)

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        """Note the loss of the last step."""
        del args, control
        if "loss" in (logs or {}):
            self.run.note(state.global_step, logs["loss"])


def train(run: Run) -> None:
    """Train; a resumed one takes the newest checkpoint of the directory."""
    torch.set_num_threads(1)
    transformers.set_seed(7)
    config = transformers.GPT2Config(
        vocab_size=VOCABULARY, n_positions=POSITIONS, n_embd=32, n_layer=1, n_head=2
    )
    asked = transformers.TrainingArguments(
        output_dir=str(run.root),
        max_steps=run.last_step,
        save_steps=run.save_every,
        save_total_limit=1,
        logging_steps=1,
        per_device_train_batch_size=4,
        learning_rate=1e-3,
        report_to=[],
        use_cpu=True,
        seed=7,
        disable_tqdm=True,
    )
    trainer = transformers.Trainer(
        model=transformers.GPT2LMHeadModel(config),
        args=asked,
        train_dataset=Numbers(),
        callbacks=[Watched(run)],
    )
    trainer.train(resume_from_checkpoint=bool(run.resume) or None)


if __name__ == "__main__":
    train(Run.started())
