"""safetensors: weights, optimizer and counters as one file that is renamed into place."""

from __future__ import annotations

from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from tests.frameworks.trainings.gate import Run
from tests.frameworks.trainings.plain_torch import WIDTH, Model


def train(run: Run) -> None:
    """Train by momentum; the file is overwritten at every save."""
    torch.set_num_threads(1)
    torch.manual_seed(7)
    model = Model()
    pace: dict[str, Any] = {n: torch.zeros_like(p) for n, p in model.named_parameters()}
    step = 0
    path = run.root / "model.safetensors"
    if run.resume:
        with safe_open(path, framework="pt") as file:
            step = int(file.metadata()["step"])
        kept = load_file(path)
        model.load_state_dict({n: kept[n] for n in model.state_dict()})
        pace = {n: kept[f"pace.{n}"] for n in pace}
        torch.set_rng_state(kept["random"])
    while step < run.last_step:
        step += 1
        x = torch.randn(8, WIDTH)
        loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                pace[name].mul_(0.9).add_(parameter.grad)
                parameter.sub_(1e-3 * pace[name])
        run.note(step, loss.item())
        if run.saves_at(step):
            run.wait(step)
            tensors = model.state_dict() | {f"pace.{n}": pace[n] for n in pace}
            tensors["random"] = torch.get_rng_state()
            save_file(tensors, path, metadata={"step": str(step)})


if __name__ == "__main__":
    train(Run.started())
