"""Properties of the op table that a recording of the primitives of a call shows: see `dispatch/capture.rs`."""

import functools

import numpy as np

from support import target
from support.checking import each, same, shapes
from support.optable import Op, ops
from support.samples import COMPLEX, TensorSpec
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


def shaders(op: Op, device: str):
    """An op that decomposes runs on the GPU exactly where all primitives that it calls do."""
    lacking = set()

    def check(call):
        if any(s.dtype in COMPLEX for s in call.tensors()):
            return None  # There are no shaders for complex numbers.
        _, recording, _ = captured(op, call, device)
        # A kernel of the CPU that stands in for the steps of another op does not stand in on the GPU.
        lacking.update(step for step in recording.steps() if not by_name()[step].gpu and step not in stand_ins())
        return ""

    problems, count = each(op, check, name="shaders")
    if op.gpu and lacking:
        problems.append(f"is said to run on the GPU, but these have no shader: {sorted(lacking)}")
    if not op.gpu and count and not lacking:
        problems.append("is said to lack a shader, but all its primitives have one")
    return problems, count


@functools.cache
def stand_ins() -> set[str]:
    """The fused kernels of ops that decompose."""
    return {op.fused for op in ops() if op.fused}


@functools.cache
def by_name() -> dict[str, Op]:
    return {op.name: op for op in ops()}


def laid_out(tensors) -> list:
    return [(tuple(t.shape), t.stride(), t.dtype) for t in tensors]


def meta(op: Op, device: str):
    """Without memory, on the meta device, results have the shape, strides and dtype that they have elsewhere."""

    def check(call):
        result, recording, _ = captured(op, call, device)
        if any(by_name()[step].reads_host for step in recording.steps()):
            return None  # Nothing can be read there.
        args, kwargs, _ = target.build(call, "meta")
        found = target.tensors(op.run(args, op.placed(args, kwargs, "meta")))
        if not all(t.is_meta for t in found):
            return f"is on {[str(t.device) for t in found]}"
        expected = laid_out(target.tensors(result))
        return "" if laid_out(found) == expected else f"{laid_out(found)} is not {expected}"

    return each(op, check, name="meta")


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
