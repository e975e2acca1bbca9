"""Accelerate: ``save_state`` with automatic names and ``total_limit=1``, and ``load_state``."""

from __future__ import annotations

import accelerate
import torch
from accelerate.utils import ProjectConfiguration

from tests.frameworks.trainings.gate import Run
from tests.frameworks.trainings.plain_torch import WIDTH, Model


class Counter:
    """The step, as a part of the saved state."""

    def __init__(self) -> None:
        """Begin at nothing."""
        self.step = 0

    def state_dict(self) -> dict[str, int]:
        """Return what is saved."""
        return {"step": self.step}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Take what was saved."""
        self.step = state["step"]


def train(run: Run) -> None:
    """Train; ``resume`` names the directory of a saved state."""
    torch.set_num_threads(1)
    accelerate.utils.set_seed(7)
    project = ProjectConfiguration(str(run.root), automatic_checkpoint_naming=True, total_limit=1)
    accelerator = accelerate.Accelerator(cpu=True, project_config=project)
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    model, optimizer = accelerator.prepare(model, optimizer)
    counter = Counter()
    accelerator.register_for_checkpointing(counter)
    if run.resume:
        accelerator.load_state(str(run.root / run.resume))
        project.iteration = counter.step // run.save_every
    while counter.step < run.last_step:
        counter.step += 1
        x = torch.randn(8, WIDTH)
        loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        accelerator.backward(loss)
        optimizer.step()
        run.note(counter.step, loss.item())
        if run.saves_at(counter.step):
            run.wait(counter.step)
            accelerator.save_state()


if __name__ == "__main__":
    train(Run.started())
