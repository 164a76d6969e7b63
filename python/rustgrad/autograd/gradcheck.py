"""`gradcheck` and `gradgradcheck`: gradients against central differences, element by element or, in fast mode, as one
product of the Jacobian (`_gradcheck_fast`).

A complex output counts as two real functions, its real and its imaginary part. A complex input is
perturbed along the real and along the imaginary axis; the derivative of a real function is then
ds/dx + i ds/dy, which is what backward returns. Inputs are perturbed in place, so that a function that
closes over them sees it too.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import sys
import types
import warnings
from collections.abc import Callable
from typing import Any

from .. import _C
from .._absent import getattr_of
from .._base import Tensor, stack, zeros, zeros_like
from ._engine import grad as autograd_grad
from ._engine import is_sparse
from .function import Function

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


class GradcheckError(RuntimeError):
    """Raised by `gradcheck` and `gradgradcheck` when a check fails."""


def _as_tuple(x):
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)


def _is_inexact(x):
    return isinstance(x, Tensor) and (x.is_floating_point() or x.is_complex())


def _differentiable(outputs):
    return tuple(o for o in _as_tuple(outputs) if isinstance(o, Tensor) and o.requires_grad)


def _of_dense(func, inputs, masked):
    """A function and its inputs, with the values of sparse inputs in their place."""
    if not any(map(is_sparse, inputs)):
        return func, inputs
    from ..sparse._grads import of_values

    return of_values(func, inputs, masked)


def _check_inputs(inputs):
    found = False
    for i, x in enumerate(inputs):
        if not (isinstance(x, Tensor) and x.requires_grad):
            continue
        found = True
        if x.dtype not in (_C.float64, _C.complex128):
            warnings.warn(
                f"Input #{i} requires gradient and is not a double precision floating point or complex. This check "
                "will likely fail if all the inputs are not of double precision floating point or complex. ",
                stacklevel=4,
            )
        if not all(stride > 0 or size <= 1 for stride, size in zip(x.stride(), x.shape, strict=True)):
            raise RuntimeError(
                f"The {i}th input has a dimension with stride 0. gradcheck only supports inputs that are "
                "non-overlapping to be able to compute the numerical gradients correctly. You should call "
                ".contiguous on the input before passing it to gradcheck."
            )
    if not found:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True."
        )


def _evaluate(function, inputs):
    """Copies of the real outputs, detached from graph and inputs."""
    return [o.detach().clone() for o in _as_tuple(function(*inputs)) if _is_inexact(o)]


def _central_difference(function, inputs, data, index, delta, size):
    """Derivative of every output, flat, where `data[index]` moves along `delta / size`."""
    original = data[index].clone()
    data[index] = original + delta
    upper = _evaluate(function, inputs)
    data[index] = original - delta
    lower = _evaluate(function, inputs)
    data[index] = original
    for u, v in zip(upper, lower, strict=True):
        for what in ("shape", "dtype"):
            if getattr(u, what) != getattr(v, what):
                raise AssertionError(
                    f"Expected `func` to return outputs with the same {what} when inputs are perturbed on index {index}, "
                    f"but got:\n {getattr(u, what)}\n {getattr(v, what)}"
                )
    return [((u - v) / (2 * size)).reshape(-1) for u, v in zip(upper, lower, strict=True)]


def _numerical_jacobians(function, inputs, x, eps, count):
    """For each output, a matrix with a row for each element of `x`."""
    rows = [[] for _ in range(count)]
    data = x.data
    for index in itertools.product(*map(range, x.shape)):
        columns = _central_difference(function, inputs, data, index, eps, eps)
        if x.is_complex():
            imaginary = _central_difference(function, inputs, data, index, eps * 1j, eps)
            columns = [a + 1j * b for a, b in zip(columns, imaginary, strict=True)]
        for row, column in zip(rows, columns, strict=True):
            row.append(column)
    return [stack(row) if row else zeros(0, 0, dtype=x.dtype, device=x.device) for row in rows]


def _check_gradients(grads, inputs, check_dtypes):
    for g, x in zip(grads, inputs, strict=True):
        if g is not None and g.shape != x.shape:
            raise GradcheckError("Analytical gradient has incorrect size")
        if g is not None and check_dtypes and g.dtype != x.dtype:
            raise GradcheckError("Gradient has dtype mismatch")


def _analytical_jacobians(output, inputs, check_dtypes):
    """For each input, a matrix with a row for each of its elements and a column for each of the output's."""
    seed = zeros_like(output.detach()).reshape(-1)
    columns = [[] for _ in inputs]
    for j in range(output.numel()):
        one_hot = seed.clone()
        one_hot[j] = 1.0
        grads = autograd_grad(output, inputs, one_hot.reshape(output.shape), retain_graph=True, allow_unused=True)
        _check_gradients(grads, inputs, check_dtypes)
        for column, g, x in zip(columns, grads, inputs, strict=True):
            column.append((zeros_like(x.detach()) if g is None else g.detach().clone()).reshape(-1))
    return [stack(c, 1) if c else zeros(0, 0, dtype=output.dtype, device=output.device) for c in columns]


def _all_close(a, b, rtol, atol):
    if a.numel() == 0 or b.numel() == 0:
        return a.numel() == b.numel()
    if a.shape != b.shape:
        return False
    return bool(((a == b) | ((a - b).abs() <= atol + rtol * b.abs())).all().item())


def _check_reentrant(output, inputs, nondet_tol):
    """Backward run twice must give the same gradients."""
    seed = zeros_like(output.detach()) + 1.0
    runs = [autograd_grad(output, inputs, seed, retain_graph=True, allow_unused=True) for _ in range(2)]
    for a, b in zip(*runs, strict=True):
        if (a is None) != (b is None) or (a is not None and not _all_close(a, b, 0.0, nondet_tol)):
            raise GradcheckError(
                "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times "
                "gives different values, although analytical gradient matches numerical gradient."
                f"The tolerance for nondeterminism was {nondet_tol}."
            )


def _parts(function, outputs):
    """(function, wording) of the real functions to check: one, or the two components of complex outputs."""
    if not any(o.is_complex() for o in _as_tuple(outputs) if isinstance(o, Tensor)):
        return [(function, "")]

    def part(name):
        def wrapped(*inputs):
            values = _as_tuple(function(*inputs))
            return tuple(getattr(o, name) if isinstance(o, Tensor) and o.is_complex() else o for o in values)

        return wrapped

    wording = "While considering the {} part of complex outputs only, "
    return [(part("imag"), wording.format("imaginary")), (part("real"), wording.format("real"))]


class _Jacobians:
    """Whole Jacobians by all three ways, and when two of them are close."""

    note = ""

    def __init__(self, function, inputs, active, outputs, check_dtypes):
        self.function, self.inputs, self.active = function, inputs, active
        self.count, self.check_dtypes = len(outputs), check_dtypes

    def numerical(self, i, x, eps):
        return _numerical_jacobians(self.function, self.inputs, x, eps, self.count)

    def analytical(self, output, j):
        return _analytical_jacobians(output, [x for _, x in self.active], self.check_dtypes)

    def forward(self, which):
        from ._gradcheck_forward import forward_jacobians

        return forward_jacobians(self.function, self.inputs, self.active, which, self.check_dtypes)

    def tolerance(self, atol, i, j):
        return atol


class _Products(_Jacobians):
    """Their products with random vectors."""

    note = "These are products of the Jacobians with random vectors (fast mode); fast_mode=False shows the Jacobians.\n"

    def __init__(self, function, inputs, active, outputs, check_dtypes):
        from ._gradcheck_fast import Directions

        super().__init__(function, inputs, active, outputs, check_dtypes)
        self.directions = Directions(active, outputs)
        self.tolerance = self.directions.tolerance

    def numerical(self, i, x, eps):
        def difference(index, delta, size):
            return _central_difference(self.function, self.inputs, x.data, index, delta, size)

        return self.directions.numerical(difference, i, eps)

    def analytical(self, output, j):
        grads = self.directions.analytical(output, j, self.active)
        _check_gradients(grads, [x for _, x in self.active], self.check_dtypes)
        return [self.directions.along(i, x, g) for (i, x), g in zip(self.active, grads, strict=True)]

    def forward(self, which):
        from ._gradcheck_forward import directional

        i = self.active[which][0]
        run = functools.partial(directional, self.function, self.inputs, self.active, which, self.check_dtypes)
        return self.directions.forward(run, i)


def _check_forward(jacobians, prefix, numerical, rtol, atol):
    for which, (i, _) in enumerate(jacobians.active):
        for number, a in enumerate(jacobians.forward(which)):
            n = numerical[i][number]
            if not _all_close(a.to(n.dtype), n, rtol, jacobians.tolerance(atol, i, number)):
                raise GradcheckError(
                    f"{prefix}Jacobian computed with forward mode mismatch for output {number} with respect to input {i},\n"
                    f"numerical:{n}\nanalytical:{a}\n{jacobians.note}"
                )


def _check_part(function, prefix, inputs, eps, rtol, atol, nondet_tol, check_dtypes, modes):
    outputs = [o for o in _as_tuple(function(*inputs)) if _is_inexact(o)]
    active = [(i, x) for i, x in enumerate(inputs) if _is_inexact(x) and x.requires_grad]
    jacobians = (_Products if modes["fast"] else _Jacobians)(function, inputs, active, outputs, check_dtypes)
    numerical = {i: jacobians.numerical(i, x, eps) for i, x in active}
    if modes["forward"]:
        _check_forward(jacobians, prefix, numerical, rtol, atol)
    if not modes["backward"]:
        return
    differentiable = [(j, o) for j, o in enumerate(outputs) if o.requires_grad]
    for j, output in enumerate(outputs):
        if output.requires_grad or differentiable:
            continue
        for i, _ in active:
            if numerical[i][j].numel() and bool((numerical[i][j] != 0).any().item()):
                raise GradcheckError("Numerical gradient for function expected to be zero")
    tensors = [x for _, x in active]
    for number, (j, output) in enumerate(differentiable):
        analytical = jacobians.analytical(output, j)
        if output.numel():
            _check_reentrant(output, tensors, nondet_tol)
            if modes["batched"]:
                from ._gradcheck_batched import check_backward

                check_backward(output, tensors, number)
        for (i, _), a in zip(active, analytical, strict=True):
            n = numerical[i][j]
            if not _all_close(a.to(n.dtype), n, rtol, jacobians.tolerance(atol, i, j)):
                raise GradcheckError(
                    f"{prefix}Jacobian mismatch for output {number} with respect to input {i},\n"
                    f"numerical:{n}\nanalytical:{a}\n{jacobians.note}"
                )


def _check_zero_grad(function, inputs):
    """Zero gradients of outputs must give zero gradients of inputs, of the right type, device and size."""
    outputs = _differentiable(function(*inputs))
    tensors = [x for x in inputs if isinstance(x, Tensor) and x.requires_grad]
    if not outputs:
        return
    seeds = [zeros_like(o.detach()) for o in outputs]
    for g, x in zip(autograd_grad(outputs, tensors, seeds, allow_unused=True), tensors, strict=True):
        if g is None:
            continue
        if g.numel() and not bool((g == 0).all().item()):
            raise GradcheckError("backward not multiplied by grad_output")
        for what, same in (("type", g.dtype == x.dtype), ("device", g.device == x.device)):
            if not same:
                raise GradcheckError(f"grad is incorrect {what}")
        if g.shape != x.shape:
            raise GradcheckError("grad is incorrect size")


class _Undefined(Function):
    """The identity, whose gradient is undefined."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return None


def _check_undefined(function, inputs):
    """Backward must handle undefined gradients of outputs: of all of them, and of each alone."""
    tensors = [x for x in inputs if isinstance(x, Tensor) and x.requires_grad]
    count = len(_differentiable(function(*inputs)))
    choices = [set(range(count))] + ([{k} for k in range(count)] if count > 1 else [])
    for undefined in choices if count else ():
        outputs = [
            _Undefined.apply(o) if k in undefined else o for k, o in enumerate(_differentiable(function(*inputs)))
        ]
        seeds = [zeros_like(o.detach()) for o in outputs]
        try:
            grads = autograd_grad(outputs, tensors, seeds, allow_unused=True)
        except RuntimeError as error:
            _warn_of_undefined()
            raise GradcheckError("Expected backward function to handle undefined output grads.") from error
        if any(g is not None and g.numel() and bool((g != 0).any().item()) for g in grads):
            _warn_of_undefined()
            raise GradcheckError(
                "Expected all input grads to be undefined or zero when all output grads are undefined or zero."
            )


def _warn_of_undefined():
    warnings.warn(
        "Backwards compatibility: New undefined gradient support checking feature is enabled by default, but it may break "
        "existing callers of this function. If this is true for you, you can call this function with "
        '"check_undefined_grad=False" to disable the feature',
        stacklevel=4,
    )


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Compares the gradients of `func` with central differences at `inputs`.

    Args:
        func (callable): from tensors to a tensor or a tuple of tensors.
        inputs (Tensor or tuple): those that require grad are checked; double precision is needed.
        eps (float): the step of the central differences.
        atol, rtol (float): tolerances.
        raise_exception (bool): raise instead of returning False.
        nondet_tol (float): allowed difference between two runs of backward.
        check_undefined_grad (bool): also run backward with some outputs lacking a gradient.
        check_grad_dtypes (bool): the gradients' dtypes must be the inputs'.
        check_forward_ad, check_backward_ad (bool): which modes are compared.
        check_batched_grad, check_batched_forward_grad (bool): `vmap` over backward, or forward mode, must equal a loop.
        fast_mode (bool): compare one product of the Jacobian with random vectors instead of all its elements: two
            evaluations and one backward for each input and output, whatever their sizes.
        masked (bool): needed where an input is sparse: its values alone are varied.

    Returns:
        True, or False if a check fails and `raise_exception` is False.

    Raises:
        GradcheckError: a check fails.
        AssertionError: the shape or dtype of an output changes with the inputs.
        ValueError: no input requires grad, or one is sparse and `masked` is not True.
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_batched_grad and not check_backward_ad:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be True")
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    modes = {"forward": check_forward_ad, "backward": check_backward_ad}
    modes |= {"batched": check_batched_grad, "fast": fast_mode}
    func, inputs = _of_dense(func, _as_tuple(inputs), masked)
    _check_inputs(inputs)
    try:
        for function, prefix in _parts(func, func(*inputs)):
            _check_part(function, prefix, inputs, eps, rtol, atol, nondet_tol, check_grad_dtypes, modes)
        active = [(i, x) for i, x in enumerate(inputs) if _is_inexact(x) and x.requires_grad]
        if check_batched_forward_grad:
            from ._gradcheck_batched import check_forward

            check_forward(func, inputs, active)
        if check_forward_ad and check_undefined_grad:
            from ._gradcheck_forward import check_undefined

            check_undefined(func, inputs, active)
        if check_backward_ad:
            _check_zero_grad(func, inputs)
            if check_undefined_grad:
                _check_undefined(func, inputs)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _random_like(x, noncontiguous):
    """Uniform values in [-1, 1) of the shape of `x`, in double precision where `x` is not inexact."""
    inexact = _is_inexact(x)
    real = {_C.complex64: _C.float32, _C.complex128: _C.float64}.get(x.dtype, x.dtype if inexact else _C.float64)
    shape = (*x.shape, 2) if noncontiguous else tuple(x.shape)

    def draw():
        values = zeros(shape, dtype=real, device=x.device).uniform_(-1, 1)
        return values[..., 0] if noncontiguous else values

    return (draw() + 1j * draw() if x.is_complex() else draw()).requires_grad_()


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Checks second-order gradients: `gradcheck` of the backward of `func`.

    Args:
        grad_outputs (Tensor or tuple, optional): gradients of the outputs; random by default.
        gen_non_contig_grad_outputs (bool): make those non-contiguous.
        Others as in `gradcheck`.
    """
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError("Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    func, inputs = _of_dense(func, _as_tuple(inputs), masked)
    if grad_outputs is None:
        outputs = _differentiable(func(*inputs))
        grad_outputs = tuple(_random_like(o, gen_non_contig_grad_outputs) for o in outputs)
    else:
        grad_outputs = _as_tuple(grad_outputs)
    n = len(grad_outputs)
    active = [i for i, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad]

    def backward_of(*args):
        # Dual inputs are views without history.
        args = [x.view_as(x).requires_grad_() if i in active and not x.requires_grad else x for i, x in enumerate(args)]
        outputs = _differentiable(func(*args[: len(args) - n]))
        chosen = [args[i] for i in active]
        grads = autograd_grad(outputs, chosen, args[len(args) - n :], create_graph=True, allow_unused=True)
        return tuple(g for g in grads if g is not None)

    return gradcheck(
        backward_of,
        inputs + grad_outputs,
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode,
        masked=masked,
    )


class _CallableModule(types.ModuleType):
    """Importing this module binds `autograd.gradcheck` to it, and that name must also be the function."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return gradcheck(*args, **kwargs)

    def __reduce__(self) -> Any:
        return importlib.import_module, (self.__name__,)


sys.modules[__name__].__class__ = _CallableModule


__getattr__ = getattr_of(__name__)
