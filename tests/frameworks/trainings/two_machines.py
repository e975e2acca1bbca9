"""PyTorch distributed checkpoint of four ranks, two on each of two disks; or one that loads it.

``save ROOT-A ROOT-B SUMS PORT`` writes ``step-5`` by four ranks over gloo and notes what is in it;
``load ROOT SUMS`` reads it back in one process and compares.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing as mp
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Shard, distribute_tensor

RANKS = 4
ROWS = 4096
NAME = "step-5"


def tensors() -> dict[str, torch.Tensor]:
    """Return what is saved, the same for everybody."""
    made = torch.Generator().manual_seed(7)
    return {name: torch.randn(ROWS, 8, generator=made) for name in ("weight", "moment")}


def save(rank: int, roots: tuple[str, str], sums: str, port: str) -> None:
    """Save as one rank into the directory of its machine."""
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=RANKS, timeout=dt.timedelta(seconds=60))
    mesh = init_device_mesh("cpu", (RANKS,))
    state = {name: distribute_tensor(whole, mesh, [Shard(0)]) for name, whole in tensors().items()}
    folder = Path(roots[rank // 2]) / NAME
    folder.mkdir(parents=True, exist_ok=True)
    dist.barrier()
    dcp.save(dict(state), storage_writer=dcp.FileSystemWriter(folder))
    if rank == 0:
        Path(sums).write_text(json.dumps({n: digest(t) for n, t in tensors().items()}))
    dist.destroy_process_group()


def digest(tensor: torch.Tensor) -> str:
    """Return a name for a tensor's content."""
    whole = tensor.full_tensor() if isinstance(tensor, DTensor) else tensor
    return hashlib.sha256(whole.contiguous().numpy().tobytes()).hexdigest()


def load(root: str, sums: str) -> int:
    """Load in one process what four ranks saved; return 0 where every bit is the same."""
    state = {name: torch.zeros(ROWS, 8) for name in tensors()}
    dcp.load(state, checkpoint_id=Path(root) / NAME)
    found = {name: digest(tensor) for name, tensor in state.items()}
    return 0 if found == json.loads(Path(sums).read_text()) else 1


def main(arguments: list[str]) -> int:
    """Do what is asked for."""
    if arguments[0] == "load":
        return load(*arguments[1:])
    roots, sums, port = (arguments[1], arguments[2]), arguments[3], arguments[4]
    mp.spawn(save, args=(roots, sums, port), nprocs=RANKS)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
