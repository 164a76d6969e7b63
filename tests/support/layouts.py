"""Arguments with memory layouts other than row-major, and the strides of the results.

PyTorch's results preserve the memory layout of their arguments. `golden/record_ops.py` records the strides of
its results for the layouts below, and the table compares.
"""

import numpy as np

from support import target
from support.checking import each, run, same
from support.optable import Op, recorded
from support.samples import TensorSpec, edge_variants


def transposed(spec: TensorSpec, device: str):
    array = spec.array()
    order = tuple(range(array.ndim))[::-1]
    return target.make(spec, device, array.transpose(order)).permute(order)


def stepped(spec: TensorSpec, device: str):
    array = spec.array()
    if not array.ndim:
        return target.make(spec, device, np.array([array, array, array]))[1]
    base = np.zeros((*array.shape[:-1], 2 * array.shape[-1] + 1), array.dtype)
    base[..., 1::2] = array
    return target.make(spec, device, base)[..., 1::2]


def loose(spec: TensorSpec, device: str):
    """The strides of dimensions of size one are huge, and those of tensors without elements are zero, as NumPy may have them."""
    tensor = target.make(spec, device)
    ones = [10**12 if n == 1 else s for n, s in zip(tensor.shape, tensor.stride())]
    return tensor.as_strided(tensor.shape, ones if tensor.numel() else [0] * tensor.ndim)


MAKERS = {"plain": target.make, "transposed": transposed, "stepped": stepped}


def strides(make, call, device: str = "cpu") -> dict:
    """The strides of every result of a call, by the layout of its arguments; None if the call is rejected.

    Strides of dimensions of size one, and of empty tensors, are ignored.
    """
    found = {}
    for name, maker in MAKERS.items():
        args, kwargs, _ = target.build(call, device, maker=maker)
        try:
            result = make(args, kwargs)
        except RuntimeError:
            found[name] = None
            continue
        pairs = [zip(t.shape, t.stride()) for t in target.tensors(result) if t.numel()]
        found[name] = [[s if n > 1 else 0 for n, s in p] for p in pairs]
    return found


def same_strides(op: Op, device: str):
    """The property: results have PyTorch's strides. Calls that a device or a layout does not support are skipped."""

    def check(call):
        want = recorded(op, call.text, "strides")
        if not want:
            return None
        got = strides(lambda args, kwargs: op.run(args, op.placed(args, kwargs, device)), call, device)
        wrong = [n for n in want if want[n] is not None and got[n] is not None and got[n] != want[n]]
        return "; ".join(f"{n}: {got[n]} is not {want[n]}" for n in wrong)

    return each(op, check, name="strides")


def thinned(text: str) -> list[str]:
    """The sample with rows or columns of one element or of none, in single and in half precision."""
    rows = {**edge_variants(text, 1), **edge_variants(text)}
    found = [text, *(rows[name] for name in rows if name.startswith(("no ", "one ")))]
    return list(dict.fromkeys([*found, *(t.replace("f32[", "f16[") for t in found)]))


def loose_strides(op: Op, device: str):
    """The property: strides that no element depends on mean nothing. Views keep them, and may not exist with them."""

    def outcome(call, maker):
        torch = target.torch
        torch.manual_seed(0)
        try:
            return "", *run(op, call, device, op.differentiable, maker)
        except (RuntimeError, ValueError, IndexError, TypeError) as error:
            return f"{type(error).__name__}: {error}", None, None

    def check(call):
        (error, result, slopes), (refused, other, gradients) = outcome(call, target.make), outcome(call, loose)
        if bool(error) != bool(refused):
            return "" if op.kind == "view" and refused else f"{error or 'no error'} became {refused or 'no error'}"
        halves = any(t.dtype == target.torch.complex32 for t in target.tensors(result))
        return "" if error or op.undefined or halves else same(other, result) or same(gradients, slopes, 2)

    return each(op, check, [t for text in op.sample_texts()[:3] for t in thinned(text)], "loose strides")
