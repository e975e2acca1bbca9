"""PyTorch distributed checkpoint: two ranks over gloo, one directory for each step."""

from __future__ import annotations

import datetime as dt
import os
import shutil
import sys

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing as mp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from tests.frameworks.trainings.gate import Run
from tests.frameworks.trainings.plain_torch import WIDTH

RANKS = 2
#: Sharded over the ranks, and large enough for a save to take its time.
HIDDEN = 64 * 1024


def train(rank: int, run: Run, port: int) -> None:
    """Train as one rank."""
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=RANKS, timeout=dt.timedelta(seconds=60))
    torch.manual_seed(7)
    model = torch.nn.Sequential(torch.nn.Linear(WIDTH, HIDDEN), torch.nn.Linear(HIDDEN, 1))
    fully_shard(model, mesh=init_device_mesh("cpu", (RANKS,)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    step = 0
    if run.resume:
        step = int(run.resume.rpartition("-")[2])
        weights, moments = get_state_dict(model, optimizer)
        kept = {"model": weights, "optimizer": moments}
        dcp.load(kept, checkpoint_id=run.root / run.resume)
        set_state_dict(model, optimizer, model_state_dict=weights, optim_state_dict=moments)
    while step < run.last_step:
        step += 1
        x = torch.randn(8, WIDTH, generator=torch.Generator().manual_seed(step))
        loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0:
            run.note(step, loss.item())
        if run.saves_at(step):
            save(rank, run, step, model, optimizer)
    dist.destroy_process_group()


def save(
    rank: int, run: Run, step: int, model: torch.nn.Module, optimizer: torch.optim.Optimizer
) -> None:
    """Save by all ranks, and keep the newest two."""
    if rank == 0:
        run.wait(step)
    dist.barrier()
    weights, moments = get_state_dict(model, optimizer)
    dcp.save({"model": weights, "optimizer": moments}, checkpoint_id=run.root / f"step-{step}")
    old = run.root / f"step-{step - run.save_every}"
    if rank == 0 and old.exists():
        shutil.rmtree(old)


def main() -> None:
    """Start the second rank and be the first."""
    run = Run.started()
    port = int(os.environ["TRAINING_PORT"])
    other = mp.get_context("spawn").Process(target=train, args=(1, run, port), daemon=True)
    other.start()
    train(0, run, port)
    other.join()
    sys.exit(other.exitcode)


if __name__ == "__main__":
    main()
