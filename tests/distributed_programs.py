"""Programs that the tests of `test_distributed_processes.py` run in several processes, with rustgrad as `torch`.

Each takes its rank and the number of processes from the default group, and asserts.
"""

import copy
import datetime
import os
import sys
import time

import torch
import torch.distributed as dist
import torch.distributed.nn as differentiable
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel


def reductions(rank, size):
    everyone = range(size)
    for count in (0, 1, 7, 20_001, 100_003):  # doubling and rings, of parts that differ in size
        base = torch.arange(count) % 5
        total = sum(base + r for r in everyone)
        for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.int16, torch.complex64):
            x = (base + rank).to(dtype)
            assert dist.all_reduce(x) is None and torch.equal(x, total.to(dtype)), (count, dtype)
        for op, expected in (
            (dist.ReduceOp.MAX, base + size - 1),
            (dist.ReduceOp.MIN, base),
            (dist.ReduceOp.BOR, base | (base + 1) if size == 2 else base | (base + 1) | (base + 2)),
        ):
            x = base + rank
            dist.all_reduce(x, op)
            assert torch.equal(x, expected), op
        x = (base + rank).double()
        dist.all_reduce(x, dist.ReduceOp.AVG)
        assert torch.allclose(x, (total / size).double())
        for root in everyone:
            x = base + rank
            dist.reduce(x, root)
            assert torch.equal(x, total if rank == root else base + rank)
    flags = torch.tensor([rank == 0, False])
    dist.all_reduce(flags)
    assert flags.tolist() == [True, False]
    x = torch.arange(6.0).reshape(2, 3).t() + rank  # not contiguous
    dist.all_reduce(x)
    assert torch.equal(x, size * torch.arange(6.0).reshape(2, 3).t() + sum(everyone))
    torch.manual_seed(rank)  # the same bits in all processes
    for count in (100, 50_000):
        x = torch.randn(count)
        dist.all_reduce(x)
        every = [torch.empty(count) for _ in everyone]
        dist.all_gather(every, x)
        assert all(torch.equal(x, each) for each in every)


def movements(rank, size):
    everyone = range(size)
    for root in everyone:
        x = torch.arange(50_000) + rank
        dist.broadcast(x, root)
        assert torch.equal(x, torch.arange(50_000) + root)
        lists = [torch.zeros(2, 3) for _ in everyone] if rank == root else None
        dist.gather(torch.full((2, 3), float(rank)), lists, dst=root)
        assert lists is None or [each.mean().item() for each in lists] == list(everyone)
        x = torch.zeros(3)
        dist.scatter(x, [torch.full((3,), 10.0 * r) for r in everyone] if rank == root else None, src=root)
        assert x.tolist() == [10.0 * rank] * 3
    every = [torch.zeros(3, 2).t() for _ in everyone]
    dist.all_gather(every, torch.full((2, 3), float(rank)))
    assert [each.sum().item() for each in every] == [6 * r for r in everyone]
    x = torch.zeros(2 * size, 3)
    dist.all_gather_into_tensor(x, torch.full((2, 3), float(rank)))
    assert x[:, 0].tolist() == [r for r in everyone for _ in range(2)]
    x = torch.zeros(2)
    dist.reduce_scatter_tensor(x, torch.arange(2.0 * size) + rank)
    assert x.tolist() == [size * (2 * rank + i) + sum(everyone) for i in range(2)]
    dist.reduce_scatter(x, [torch.full((2,), float(r + rank)) for r in everyone])
    assert x.tolist() == [size * rank + sum(everyone)] * 2
    x = torch.zeros(size * (rank + 1), 2)  # rank r has r + 1 rows of each
    rows = sum(r + 1 for r in everyone)
    dist.all_to_all_single(x, torch.full((rows, 2), float(rank)), [rank + 1] * size, [r + 1 for r in everyone])
    assert x[:, 0].tolist() == [r for r in everyone for _ in range(rank + 1)]
    outputs = [torch.zeros(1) for _ in everyone]
    dist.all_to_all(outputs, [torch.tensor([10.0 * rank + r]) for r in everyone])
    assert [each.item() for each in outputs] == [10 * r + rank for r in everyone]
    objects = [None] * size
    dist.all_gather_object(objects, {"rank": rank, "text": "x" * 1000 * rank})
    assert [(each["rank"], len(each["text"])) for each in objects] == [(r, 1000 * r) for r in everyone]
    objects = ["a", {"b": 1}] if rank == 1 else [None, None]
    dist.broadcast_object_list(objects, src=1)
    assert objects == ["a", {"b": 1}]
    objects = [None]
    dist.scatter_object_list(objects, [("for", r) for r in everyone] if rank == 0 else None)
    assert objects == [("for", rank)]
    dist.barrier()
    dist.monitored_barrier()


def messages(rank, size):
    right, left = (rank + 1) % size, (rank - 1) % size
    for count in (0, 5, 500_000):  # all send before any receives
        out, into = torch.full((count,), float(rank)), torch.zeros(count)
        operations = [dist.P2POp(dist.isend, out, right), dist.P2POp(dist.irecv, into, left)]
        for work in dist.batch_isend_irecv(operations):
            work.wait()
        assert torch.equal(into, torch.full((count,), float(left)))
    if rank == 0:
        for tag in (5, 6):
            dist.send(torch.full((2,), float(tag)), 1, tag=tag)
        senders = [dist.recv(into := torch.zeros(1)) for _ in range(size - 1)]
        assert sorted(senders) == list(range(1, size)) and into.item() in senders
    else:
        x = torch.zeros(2)
        if rank == 1:  # a tag overtakes another
            for tag in (6, 5):
                assert dist.recv(x, 0, tag=tag) == 0 and x.tolist() == [tag, tag]
        dist.send(torch.tensor([float(rank)]), 0)
    given = [torch.full((1000,), float(i)) for i in range(10)]
    works = [dist.all_reduce(each, async_op=True) for each in given]
    assert all(work.wait() and work.is_completed() for work in works)
    assert [t[0].item() for t in given] == [size * i for i in range(10)]
    assert works[3].get_future().wait()[0] is given[3]
    x = torch.ones(2)
    again = dist.all_reduce(x, async_op=True).get_future().then(lambda future: dist.all_reduce(future.value()[0]))
    again.wait()
    assert x.tolist() == [size**2] * 2


def groups(rank, size):
    pair = dist.new_group([0, size - 1])
    if rank in (0, size - 1):
        x = torch.tensor([float(rank)])
        dist.broadcast(x, size - 1, group=pair)
        assert x.item() == size - 1 and dist.get_global_rank(pair, 1) == size - 1
        assert dist.get_process_group_ranks(pair) == [0, size - 1]
        dist.destroy_process_group(pair)
    else:
        assert pair == dist.GroupMember.NON_GROUP_MEMBER and dist.get_rank(pair) == -1
    own, every = dist.new_subgroups(1)
    assert dist.get_process_group_ranks(own) == [rank] and len(every) == size
    mesh = init_device_mesh("cpu", (1, size), mesh_dim_names=("data", "model"))
    x = torch.ones(1)
    dist.all_reduce(x, group=mesh["model"].get_group())
    assert x.item() == size and mesh.get_coordinate() == (0, rank) and mesh["data"].size() == 1


def gradients(rank, size):
    """The gradient of each collective: that of the sum over all processes of what they compute."""

    def check(function, expected):
        x = (torch.arange(2.0) + rank + 1).requires_grad_()
        out = function(x)
        (out * (rank + 1.0)).sum().backward()
        assert x.grad.tolist() == [expected] * 2, (function, x.grad)

    total = size * (size + 1) / 2
    check(lambda x: differentiable.all_reduce(x), total)
    check(lambda x: differentiable.broadcast(x, 1), total if rank == 1 else 0)
    check(lambda x: torch.stack(differentiable.all_gather(x)), total)
    check(lambda x: differentiable.reduce_scatter(torch.empty(2), [x] * size), total)
    check(lambda x: differentiable.scatter([x] * size, 1), total if rank == 1 else 0)


def training(rank, size):
    """Processes with a part of the batch each compute what one process computes with the whole batch."""
    torch.manual_seed(0)
    base = nn.Sequential(
        nn.Conv2d(2, 4, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 8), nn.Linear(8, 1)
    ).double()
    x, y = torch.randn(4 * size, 2, 6, 6).double(), torch.randn(4 * size, 1).double()
    for options in ({"bucket_cap_mb": 0.0005}, {"gradient_as_bucket_view": True}, {"static_graph": True}):
        one, many = copy.deepcopy(base), nn.SyncBatchNorm.convert_sync_batchnorm(copy.deepcopy(base))
        if rank:
            nn.init.zeros_(many[0].weight)  # the copies start as that of rank 0
        many = DistributedDataParallel(many, **options)
        single = torch.optim.Adam(one.parameters(), 0.01)
        shared = ZeroRedundancyOptimizer(many.parameters(), torch.optim.Adam, lr=0.01)
        for _ in range(3):
            for model, optimizer, part in ((one, single, slice(None)), (many, shared, slice(rank, None, size))):
                optimizer.zero_grad()
                (model(x[part]) - y[part]).square().mean().backward()
                optimizer.step()
        pairs = zip(one.state_dict().values(), many.module.state_dict().values())
        assert all(torch.allclose(a, b, rtol=1e-9, atol=1e-12) for a, b in pairs)
        assert list(many.state_dict()) == [f"module.{name}" for name in one.state_dict()]
        shared.consolidate_state_dict()
        if rank == 0:
            state = shared.state_dict()
            assert len(state["state"]) == 7 and len(shared.state) < 7
            assert torch.allclose(state["state"][4]["exp_avg"], single.state_dict()["state"][4]["exp_avg"])


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 3), nn.Linear(4, 3)

    def forward(self, x, both=True):
        return self.a(x) + (self.b(x) if both else 0)


def reducing(rank, size):
    ones, mean = torch.ones(2, 4), 2 * sum(r + 1 for r in range(size)) / size

    def grads(model):
        return [None if p.grad is None else p.grad.flatten()[0].item() for p in model.module.parameters()][::2]

    model = DistributedDataParallel(Branches())
    with model.no_sync():
        model(ones * (rank + 1)).sum().backward()
    assert grads(model)[0] == 2 * (rank + 1)
    model(ones * (rank + 1)).sum().backward()
    assert grads(model)[0] == 2 * mean  # of both passes
    again = copy.deepcopy(model)
    model.zero_grad()
    model(ones, both=False).sum().backward()
    try:
        model(ones)
    except RuntimeError as error:
        assert "find_unused_parameters=True" in str(error) and "for rank" in str(error) and "2 3" in str(error)
    else:
        raise AssertionError("no error for unused parameters")
    again.zero_grad()
    again(ones * (rank + 1)).sum().backward()
    assert grads(again) == [mean, mean]
    model = DistributedDataParallel(Branches(), find_unused_parameters=True)
    model(ones, both=False).sum().backward()
    assert grads(model)[1] is None
    model.zero_grad()
    model(ones, both=rank == 0).sum().backward()  # a branch that one process takes
    assert abs(grads(model)[1] - 2 / size) < 1e-6
    for hook in (default_hooks.allreduce_hook, default_hooks.fp16_compress_hook, default_hooks.bf16_compress_hook):
        model = DistributedDataParallel(Branches())
        model.register_comm_hook(None, hook)
        model(ones * (rank + 1)).sum().backward()
        assert grads(model) == [mean, mean]
    model = DistributedDataParallel(Branches())
    with model.join():  # rank r has r + 1 inputs
        for _ in range(rank + 1):
            model.zero_grad()
            model(ones).sum().backward()
    assert abs(grads(model)[0] - 2 * (size - rank) / size) < 1e-6
    norm = DistributedDataParallel(nn.BatchNorm1d(4))
    norm(ones * (rank + 1)).sum().backward()
    norm(ones)  # the buffers of rank 0 come before each forward
    assert torch.allclose(norm.module.running_mean, torch.full((4,), 0.19))
    try:
        DistributedDataParallel(nn.Linear(2 + rank, 2))
    except RuntimeError as error:
        assert "expects same model across all ranks" in str(error)
    else:
        raise AssertionError("no error for different models")


def failures(rank, size, kind):
    """Rank 1 fails; the others see why, at once."""
    begin = time.monotonic()
    try:
        if kind == "ends":
            if rank == 1:
                os._exit(0)
            dist.all_reduce(torch.ones(1_000_000))
        elif kind == "message":
            if rank == 1:
                time.sleep(0.5)
                os._exit(0)
            dist.recv(torch.ones(1))
        elif kind == "other":
            dist.broadcast(torch.ones(4), 1) if rank == 1 else dist.all_reduce(torch.ones(4))
            dist.barrier()
        elif kind == "late":
            if rank == 1:
                time.sleep(3)
                os._exit(0)
            dist.all_reduce(torch.ones(4))
        elif kind == "barrier":
            if rank == 1:
                time.sleep(2)
                os._exit(0)
            dist.monitored_barrier(timeout=datetime.timedelta(seconds=0.5))
    except RuntimeError as error:
        print(f"after {time.monotonic() - begin:.1f} s: {error}", flush=True)
    os._exit(0)


def main():
    kind = sys.argv[2] if len(sys.argv) > 2 else ""
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=60))
    if kind == "late":
        dist.distributed_c10d._set_pg_timeout(datetime.timedelta(seconds=1.5))
    rank, size = dist.get_rank(), dist.get_world_size()
    if kind:
        failures(rank, size, kind)
    for name in sys.argv[1].split(","):
        globals()[name](rank, size)
    dist.barrier()
    os.write(1, f"rank {rank} of {size} is done\n".encode())  # `print` may write the end of a line later
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
