"""Writes `distributed_checkpoint/` with PyTorch: a checkpoint of two processes. Run: python record_distributed_checkpoint.py"""

import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.multiprocessing as mp

HERE = Path(__file__).parent


def run(rank: int) -> None:
    os.environ.update(RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT="29571")
    dist.init_process_group("gloo")
    state = {
        "model": {"weight": torch.arange(6.0).reshape(2, 3), "half": torch.tensor([1.5, -2.0], dtype=torch.bfloat16)},
        "large": torch.arange(40, dtype=torch.int16),
        "transposed": torch.arange(6, dtype=torch.float64).reshape(2, 3).t(),
        "list": [torch.tensor(3), {"name": "a", "size": torch.Size([2, 3])}],
        f"of_rank_{rank}": torch.full((2,), rank),
        "step": 7,
    }
    os.chdir(HERE)  # the metadata has the path
    dcp.save(state, checkpoint_id="distributed_checkpoint")
    dist.destroy_process_group()


if __name__ == "__main__":
    sys.exit(mp.spawn(run, nprocs=2))
