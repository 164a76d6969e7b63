"""Arguments with memory layouts other than row-major, and the strides of the results.

PyTorch's results preserve the memory layout of their arguments. `golden/record_ops.py` records the strides of
its results for the layouts below, and the table compares.
"""

import numpy as np

from support import target
from support.checking import each
from support.optable import Op, recorded
from support.samples import TensorSpec


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
