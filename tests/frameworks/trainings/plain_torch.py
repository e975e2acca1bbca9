"""PyTorch by hand: a training loop that saves with ``torch.save`` and keeps the newest two."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from tests.frameworks.trainings.gate import Run

WIDTH = 16
#: Never touched by training; it only makes a save take its time.
BALLAST = 8 * 1024 * 1024


class Model(torch.nn.Module):
    """Two layers, dropout, and ballast."""

    def __init__(self, dropout: float = 0.1) -> None:
        """Make the layers."""
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(WIDTH, 4 * WIDTH),
            torch.nn.ReLU(),
            torch.nn.Dropout(dropout),
            torch.nn.Linear(4 * WIDTH, 1),
        )
        self.register_buffer("ballast", torch.zeros(BALLAST))

    def forward(self, x: Any) -> Any:
        """Return the prediction."""
        return self.layers(x)


def train(run: Run) -> None:
    """Train, from what ``resume`` names or from nothing."""
    torch.set_num_threads(1)
    torch.manual_seed(7)
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    step = 0
    if run.resume:
        state = torch.load(run.root / run.resume, weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        torch.set_rng_state(state["random"])
        step = state["step"]
    saved: list[Path] = []
    while step < run.last_step:
        step += 1
        x = torch.randn(8, WIDTH)
        loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        run.note(step, loss.item())
        if run.saves_at(step):
            run.wait(step)
            saved.append(run.root / f"ckpt_step_{step}.pt")
            torch.save(
                {
                    "model": model.state_dict(),
                    "optimizer": optimizer.state_dict(),
                    "random": torch.get_rng_state(),
                    "step": step,
                },
                saved[-1],
            )
            if len(saved) > 1:
                saved.pop(0).unlink()


if __name__ == "__main__":
    train(Run.started())
