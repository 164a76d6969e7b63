"""Which tensors an op accepts as `out=`: tensors of other dtypes, and tensors that partially overlap an operand.

The same calls are made with PyTorch, whose results are recorded, and with the module under test.
"""

import math

from support import target
from support.samples import Call
from support.target import torch

DTYPES = {
    "float32": ["float64", "float16", "int64"],
    "int64": ["int32", "float32"],
    "bool": ["int32", "float32"],
}


def replaced(value, old, new):
    """A value, or the values of a list, with one tensor replaced by another."""
    if isinstance(value, (list, tuple)):
        return [replaced(v, old, new) for v in value]
    return new if value is old else value


def overlapping(args, result):
    """The arguments with one that overlaps the memory of an output, and that output; None if none can."""
    for x in target.tensors(args):
        if x.dtype != result.dtype or x.numel() < 2 or result.numel() < 2:
            continue
        memory = torch.zeros(x.numel() + result.numel(), dtype=x.dtype)
        moved = memory[: x.numel()].view(x.shape)
        moved.copy_(x.detach())
        return replaced(args, x, moved), memory[1 : 1 + math.prod(result.shape)].view(result.shape)
    return None


def taken(invoke, call: Call, result) -> dict[str, bool]:
    """For each kind of `out`, whether the call accepts it."""
    results = target.tensors(result)
    several = not isinstance(result, torch.Tensor)

    def takes(args, kwargs, goal) -> bool:
        goals = [goal, *(torch.zeros_like(r) for r in results[1:])]
        torch.manual_seed(0)
        try:
            invoke(*args, **kwargs, out=tuple(goals) if several else goal)
        except (RuntimeError, TypeError):
            return False
        return True

    found = {}
    for name in DTYPES.get(target.dtype_name(results[0].dtype), []):
        args, kwargs, _ = target.build(call)
        found[name] = takes(args, kwargs, torch.zeros(results[0].shape, dtype=target.dtype_of(name)))
    args, kwargs, _ = target.build(call)
    if shared := overlapping(args, results[0]):
        found["overlapping"] = takes(shared[0], kwargs, shared[1])
    return found
