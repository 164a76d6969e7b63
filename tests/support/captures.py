"""Properties of the op table that a recording of the primitives of a call shows: see `dispatch/capture.rs`."""

import numpy as np

from support import target
from support.checking import each, same, shapes
from support.optable import Op
from support.samples import TensorSpec
from support.target import torch


def captured(op: Op, call, device: str):
    """(result, recording, tensors among the arguments) of a call."""
    args, kwargs, _ = target.build(call, device)
    kwargs = op.placed(args, kwargs, device)
    result, recording = torch._C._capture(lambda: op.run(args, kwargs))
    return result, recording, target.tensors([*args, *kwargs.values()])


def inferred(op: Op, device: str):
    """What a primitive infers before it runs is what it makes: shape, strides, dtype and device."""

    def check(call):
        _, recording, _ = captured(op, call, device)
        return "; ".join(p for p in recording.problems() if " infer" in p)

    return each(op, check, name="inferred")


def decomposes(op: Op, device: str):
    """An op that decomposes does nothing but call ops: it neither allocates nor reads or writes memory."""

    def check(call):
        _, recording, _ = captured(op, call, device)
        return "; ".join(p for p in recording.problems() if " decomposes" in p)

    return each(op, check, name="decomposes")


def turned(spec: TensorSpec, device: str):
    """The tensor of a spec with its floating-point elements in reverse order: other values of the same kind."""
    array = spec.array()
    if spec.differentiable and array.size:
        array = np.ascontiguousarray(array.reshape(-1)[::-1]).reshape(array.shape)
    return target.make(spec, device, array)


def replay(op: Op, device: str):
    """The primitives of a recorded call, run again on other inputs, compute what the call computes of those."""

    def again(call, recording, old, wanted, maker):
        args, kwargs, _ = target.build(call, device, maker=maker)
        expected = target.tensors(op.run(args, op.placed(args, kwargs, device)))
        args, kwargs, _ = target.build(call, device, maker=maker)
        torch.manual_seed(0)
        got = recording.replay(old, target.tensors([*args, *op.placed(args, kwargs, device).values()]), wanted)
        if op.leaf.startswith(("empty", "new_empty")):
            return "" if shapes(got) == shapes(expected) else f"shapes {shapes(got)} are not {shapes(expected)}"
        return same(got, expected)

    def check(call):
        result, recording, old = captured(op, call, device)
        wanted = target.tensors(result)
        difference = again(call, recording, old, wanted, target.make)
        if difference or op.reads_host:
            return difference
        return again(call, recording, old, wanted, turned)

    return each(op, check, name="replay")
