"""Rows of two processes: collectives, and a step of training whose gradients are averaged."""

import importlib
import json
import os
import subprocess
import sys
import tempfile
import time

# Elements, and calls that are timed together; the process of rank 0 tells the median.
REDUCED = {"1 KB": (256, 1000), "1 MB": (1 << 18, 100), "25 MB": (25 << 18, 5)}
STRETCHES = 7
RANKS = 2


def collectives(torch) -> dict:
    """`all_reduce` of floats over two processes with one thread each, and a step of an MLP in DistributedDataParallel."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, torch.__name__, os.path.join(folder, "store")]
        ranks = [subprocess.Popen([*command, str(rank)], stdout=subprocess.PIPE, text=True) for rank in range(RANKS)]
        told = [process.communicate()[0] for process in ranks]
    if any(process.returncode for process in ranks):
        raise RuntimeError("a process has failed")
    return json.loads(told[0])


def rank(torch, store: str, number: int) -> dict:
    """What one of the processes does."""
    torch.set_num_threads(1)
    dist = torch.distributed
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=number, world_size=RANKS)
    found = {}
    for size, (elements, calls) in REDUCED.items():
        x = torch.ones(elements)
        found[f"all_reduce of {size}, 2 processes"] = together(dist, lambda x=x: dist.all_reduce(x), calls)
    nn = torch.nn
    model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 512))
    shared = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(shared.parameters(), lr=1e-3)
    x = torch.rand(64, 512)

    def step():
        optimizer.zero_grad()
        shared(x).square().mean().backward()
        optimizer.step()

    found["MLP 512-1024-512, batch 64, a step of 2 processes"] = together(dist, step, 20)
    dist.destroy_process_group()
    return found


def together(dist, function, calls: int) -> float:
    """Seconds per call, the median of several stretches that all processes begin together."""
    spent = []
    for _ in range(STRETCHES + 1):
        dist.barrier()
        start = time.perf_counter()
        for _ in range(calls):
            function()
        spent.append((time.perf_counter() - start) / calls)
    return sorted(spent[1:])[STRETCHES // 2]


if __name__ == "__main__":
    answer = rank(importlib.import_module(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
    print(json.dumps(answer))
