"""First and second order gradients against numerical differences.

The full Jacobian-vector product, element by element, by central differences in float64. A complex input's gradient
is dL/dre + i dL/dim for the real loss L = Re(sum(conj(v) * out)), PyTorch's convention.
"""

import numpy as np

from support import target
from support.target import torch

STEP = 1e-5
RTOL, ATOL = 1e-5, 1e-6


def loss(function, arrays, dtypes, directions) -> float:
    """Re(sum(conj(v) * out)) over the outputs of function."""
    inputs = [torch.tensor(a, dtype=d).reshape(a.shape).requires_grad_() for a, d in zip(arrays, dtypes)]
    outputs = function(inputs)
    return sum(float(np.sum(np.conj(v) * target.to_numpy(o)).real) for v, o in zip(directions, outputs))


def numerical(function, arrays, dtypes, directions) -> list[np.ndarray]:
    """d(loss)/d(input) for every element of every input."""
    found = []
    for k, array in enumerate(arrays):
        gradient = np.zeros_like(array)
        for index in np.ndindex(array.shape):
            for part in (1.0, 1j) if array.dtype.kind == "c" else (1.0,):
                ends = []
                for step in (STEP * part, -STEP * part):
                    moved = array.copy()
                    moved[index] += step
                    ends.append(loss(function, [*arrays[:k], moved, *arrays[k + 1 :]], dtypes, directions))
                gradient[index] += part * (ends[0] - ends[1]) / (2 * STEP)
        found.append(gradient)
    return found


def check(function, inputs) -> str | None:
    """Compares function's gradients with numerical ones; function takes and returns lists of tensors.

    None if there is no output to differentiate. An output that does not require grad must be constant."""
    arrays = [target.to_numpy(x) for x in inputs]
    dtypes = [x.dtype for x in inputs]
    fresh = [torch.tensor(a, dtype=d).reshape(a.shape).requires_grad_() for a, d in zip(arrays, dtypes)]
    outputs = function(fresh)
    if not outputs:
        return None
    directions = target.cotangents(outputs)
    carried = [(o, v) for o, v in zip(outputs, directions) if o.requires_grad]
    gradients = target.gradients([o for o, _ in carried], fresh, [v for _, v in carried])
    analytic = [target.to_numpy(g) for g in gradients]
    expected = numerical(function, arrays, dtypes, [target.to_numpy(v) for v in directions])
    for i, (got, want) in enumerate(zip(analytic, expected)):
        if got.shape != want.shape:
            return f"input {i}: the gradient's shape {got.shape} is not {want.shape}"
        scale = max(1.0, float(np.abs(want, where=np.isfinite(want), out=np.zeros(want.shape)).max(initial=0.0)))
        wrong = ~(np.abs(got - want) <= ATOL * scale + RTOL * np.abs(want)) & np.isfinite(want)
        if wrong.any():
            at = tuple(int(x[0]) for x in np.nonzero(wrong)) if wrong.ndim else ()
            return f"input {i}, element {at}: gradient {got[at]:.9g}, by differences {want[at]:.9g}"
    return ""


def gradcheck(op, call) -> str | None:
    """Compares the op's gradients with differences for a call in double precision."""
    return check(as_function(op, call), leaves_of(call))


def gradgradcheck(op, call) -> str | None:
    """The same for the map (inputs, directions) -> gradients."""
    forward = as_function(op, call)
    inputs = leaves_of(call)
    outputs = [o for o in forward(inputs) if o.requires_grad]
    if not outputs:
        return None
    directions = target.cotangents(outputs)

    def backward(both):
        leaves, along = both[: len(inputs)], both[len(inputs) :]
        outputs = [o for o in forward(leaves) if o.requires_grad]
        return target.gradients(outputs, leaves, along, create_graph=True)

    return check(backward, [*inputs, *directions])


def leaves_of(call) -> list:
    return target.build(call, grad=True)[2]


def as_function(op, call):
    """The op as a function of its differentiable inputs; returns the outputs that require grad."""

    def function(leaves):
        rest = iter(leaves)
        maker = lambda spec, device: next(rest) if spec.differentiable else target.make(spec, device)
        args, kwargs, _ = target.build(call, maker=maker)
        out = op.run(args, kwargs)
        return [t for t in target.tensors(out) if t.dtype.is_floating_point or t.dtype.is_complex]

    return function
