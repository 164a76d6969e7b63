"""Forward mode of every op: the tangents of its results against its gradients, in place, and on the GPU."""

import numpy as np

from support import numeric, target
from support.properties import derivable, each
from support.samples import TensorSpec
from support.target import torch

RTOL, ATOL = 1e-9, 1e-10


def real_product(a, b) -> tuple[float, float]:
    """(Re <a, b>, the sum of the absolute terms) over two lists of tensors."""
    pairs = [(target.to_numpy(x), target.to_numpy(y)) for x, y in zip(a, b, strict=True)]
    terms = [np.conj(x) * y for x, y in pairs]
    return sum(float(t.sum().real) for t in terms), sum(float(np.abs(t).sum()) for t in terms)


def dualised(op, call, device, which, run):
    """(results, their tangents) of a call whose differentiable inputs `which` have tangents; None stands for zeros."""
    fw = torch.autograd.forward_ad
    count = iter(range(1000))
    with fw.dual_level():

        def maker(spec, device):
            x = target.make(spec, device)
            if not spec.differentiable:
                return x
            i = next(count)
            return fw.make_dual(x, target.cotangents([x], seed=10 + i)[0]) if i in which else x

        args, kwargs, _ = target.build(call, device, maker=maker)
        torch.manual_seed(0)
        out = run(args, op.placed(args, kwargs, device))
        pairs = [fw.unpack_dual(t) for t in target.tensors(out) if t.dtype.is_floating_point or t.dtype.is_complex]
        return [p for p, _ in pairs], [torch.zeros_like(p) if t is None else t for p, t in pairs]


def adjoint(op, call):
    """<v, J t> = <J^T v, t>: forward mode is the transpose of reverse mode, which differences verify."""
    torch.manual_seed(0)
    leaves = numeric.leaves_of(call)
    outputs = numeric.as_function(op, call)(leaves)
    if not any(o.requires_grad for o in outputs):
        return None
    directions = target.cotangents(outputs)
    carried = [(o, v) for o, v in zip(outputs, directions) if o.requires_grad]
    gradients = target.gradients([o for o, _ in carried], leaves, [v for _, v in carried])
    everyone = set(range(len(leaves)))
    for which in [everyone, *({i} for i in everyone if len(leaves) > 1)]:
        primals, tangents = dualised(op, call, "cpu", which, op.run)
        if any(p.shape != t.shape or p.dtype != t.dtype for p, t in zip(primals, tangents, strict=True)):
            return "a tangent differs from its result in shape or dtype"
        kept = [(v, t) for o, v, t in zip(outputs, directions, tangents, strict=True) if o.requires_grad]
        left, size = real_product([v for v, _ in kept], [t for _, t in kept])
        along = [target.cotangents([leaves[i]], seed=10 + i)[0] for i in sorted(which)]
        right, other = real_product([gradients[i] for i in sorted(which)], along)
        if np.isfinite(left + right) and not abs(left - right) <= ATOL + RTOL * (size + other):
            return f"inputs {sorted(which)}: <v, Jt> = {left:.12g}, <J'v, t> = {right:.12g}"
    return ""


def in_place(op, call):
    """The write in place changes the tangent as it changes the tensor."""
    form = getattr(torch.Tensor, f"{op.leaf}_", None) or target.resolve(f"{op.public}_")

    def run(args, kwargs):
        x = args[0].clone()
        form(x, *args[1:], **kwargs)
        return x

    everyone = set(range(1000))
    primals, expected = dualised(op, call, "cpu", everyone, op.run)
    if not isinstance(call.args[0], TensorSpec) or len(primals) != 1:
        return ""
    spec = target.build(call)[0][0]
    if (spec.shape, spec.dtype) != (primals[0].shape, primals[0].dtype):
        return ""
    _, found = dualised(op, call, "cpu", everyone, run)
    return (
        ""
        if np.allclose(*map(target.to_numpy, (found[0], expected[0])), equal_nan=True)
        else "in place: another tangent"
    )


def forward_mode(op, device: str):
    def check(call):
        wide = derivable(call)
        if wide is None:
            return None
        found = adjoint(op, wide)
        return found if found or not (op.inplace and not op.only_inplace) else in_place(op, wide)

    return each(op, check, name="forward mode")
