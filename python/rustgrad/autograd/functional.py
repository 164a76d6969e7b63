"""Jacobians, Hessians and their products with vectors, by one or two runs of backward.

A product with a vector from the right (`jvp`, `hvp`) uses the double-backward trick: backward is
linear in its gradient, so differentiating it with respect to that gradient transposes it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._absent import getattr_of
from .._base import Tensor, eye, is_grad_enabled, stack, zeros, zeros_like
from .._C import _forward_levels
from ._engine import grad as autograd_grad
from .grad_mode import enable_grad, set_grad_enabled

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


def _as_tuple(value, what, where):
    """(was it a tuple, the tuple); TypeError for anything but tensors."""
    is_tuple = isinstance(value, tuple)
    values = value if is_tuple else (value,)
    for i, v in enumerate(values):
        if not isinstance(v, Tensor):
            which = f"value at index {i}" if is_tuple else f"given {what}"
            raise TypeError(
                f"The {what} given to {where} must be either a Tensor or a tuple of Tensors but the {which} has "
                f"type {type(v)}."
            )
    return is_tuple, values


def _fresh(tensors, create_graph, need_graph):
    """New tensors, so that the inputs are distinct from tensors the function closes over."""
    if _forward_levels():
        # Views, since a detached tensor has no tangent.
        views = (t.view_as(t) for t in tensors)
        return tuple(v.requires_grad_() if need_graph and not v.requires_grad else v for v in views)
    return tuple(
        t.view_as(t) if create_graph and t.requires_grad else t.detach().requires_grad_(need_graph) for t in tensors
    )


def _finish(values, create_graph, is_tuple):
    if not create_graph and not _forward_levels():
        values = tuple(v.detach() for v in values)
    return values if is_tuple else values[0]


_INDEPENDENT = {
    "outputs": (
        "Output {} of the user-provided function does not require gradients. The outputs must be computed in a "
        "differentiable manner from the input when running in strict mode."
    ),
    "grad_inputs": (
        "The gradient with respect to input {} is independent of the inputs of the user-provided function. This is "
        "not allowed in strict mode."
    ),
    "product": (
        "The jacobian of the user-provided function is independent of input {}. This is not allowed in strict mode when "
        "create_graph=True."
    ),
    "jacobian": (
        "While computing the hessian, found that the jacobian of the user-provided function with respect to input "
        "{} is independent of the input. This is not allowed in strict mode. You should ensure that your function "
        "is twice differentiable and that the jacobian depends on the inputs (this would be violated by a linear "
        "function for example)."
    ),
    "hessian": (
        "The hessian of the user-provided function with respect to input {} is independent of the input. This is "
        "not allowed in strict mode. You should ensure that your function is thrice differentiable and that the "
        "hessian depends on the inputs."
    ),
    "none": (
        "The output of the user-provided function is independent of input {}. This is not allowed in strict mode."
    ),
}


def _check_dependent(tensors, kind, strict):
    if not strict:
        return
    for i, t in enumerate(tensors):
        if t is None:
            raise RuntimeError(_INDEPENDENT["none"].format(i))
        if not t.requires_grad:
            raise RuntimeError(_INDEPENDENT[kind].format(i))


def _zeros_for_none(grads, references, strict, create_graph, kind):
    result = []
    for i, (g, reference) in enumerate(zip(grads, references, strict=True)):
        if g is None:
            if strict:
                raise RuntimeError(_INDEPENDENT["none"].format(i))
            g = zeros_like(reference)
        elif strict and create_graph and not g.requires_grad:
            raise RuntimeError(_INDEPENDENT[kind].format(i))
        result.append(g)
    return tuple(result)


def _grad(outputs, inputs, grad_outputs=None, create_graph=False, retain_graph=None):
    """`autograd.grad` that skips outputs without a graph."""
    if grad_outputs is None:
        grad_outputs = (None,) * len(outputs)
    pairs = zip(outputs, grad_outputs, strict=True)
    kept = [(o, g) for o, g in pairs if o is not None and o.requires_grad]
    if not kept:
        return (None,) * len(inputs)
    return autograd_grad(
        tuple(o for o, _ in kept),
        inputs,
        tuple(g for _, g in kept),
        allow_unused=True,
        create_graph=create_graph,
        retain_graph=retain_graph,
    )


def _prepare_v(v, like, like_is_tuple, create_graph, where, needed):
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(
                f"The vector v can only be None if {needed} is a single Tensor with a single element."
                if needed != "the user-provided function returns"
                else "The vector v can only be None if the user-provided function returns a single Tensor with a "
                "single element."
            )
        return None
    _, v = _as_tuple(v, "v", where)
    v = _fresh(v, create_graph, need_graph=False)
    if len(v) != len(like):
        if like_is_tuple:
            raise RuntimeError(f"v is a tuple of invalid length: should be {len(like)} but got {len(v)}.")
        raise RuntimeError("The given v should contain a single Tensor.")
    for i, (a, b) in enumerate(zip(v, like, strict=True)):
        if a.shape != b.shape:
            entry = f"Entry {i} in " if like_is_tuple else ""
            raise RuntimeError(f"{entry}v has invalid size: should be {b.size()} but got {a.size()}.")
    return v


def _call(func, inputs, where, strict):
    is_tuple, outputs = _as_tuple(func(*inputs), "outputs of the user-provided function", where)
    _check_dependent(outputs, "outputs", strict)
    return is_tuple, outputs


def vjp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """(outputs, v^T J): the product of a vector, of the outputs' shape, with the Jacobian of `func` at `inputs`.

    Args:
        v (Tensor or tuple, optional): not needed for a scalar output.
        create_graph (bool): results can be differentiated.
        strict (bool): an output that does not depend on an input is an error instead of zero.
    """
    with enable_grad():
        is_inputs_tuple, inputs = _as_tuple(inputs, "inputs", "vjp")
        inputs = _fresh(inputs, create_graph, need_graph=True)
        is_outputs_tuple, outputs = _call(func, inputs, "vjp", strict)
        v = _prepare_v(v, outputs, is_outputs_tuple, create_graph, "vjp", "the user-provided function returns")
    with set_grad_enabled(create_graph or is_grad_enabled()):
        grads = _grad(outputs, inputs, v, create_graph=create_graph)
        result = _zeros_for_none(grads, inputs, strict, create_graph, "product")
    return _finish(outputs, create_graph, is_outputs_tuple), _finish(result, create_graph, is_inputs_tuple)


_NEEDED = "the input to the user-provided function"


def jvp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """(outputs, J v): the product of the Jacobian with a vector of the inputs' shape. Arguments as in `vjp`."""
    with enable_grad():
        is_inputs_tuple, inputs = _as_tuple(inputs, "inputs", "jvp")
        inputs = _fresh(inputs, create_graph, need_graph=True)
        v = _prepare_v(v, inputs, is_inputs_tuple, create_graph, "jvp", _NEEDED)
        is_outputs_tuple, outputs = _call(func, inputs, "jvp", strict)
        seeds = tuple(zeros_like(o.detach()).requires_grad_() for o in outputs)
        grad_inputs = _grad(outputs, inputs, seeds, create_graph=True)
        _check_dependent(grad_inputs, "grad_inputs", strict)
    with set_grad_enabled(create_graph or is_grad_enabled()):
        grads = _grad(grad_inputs, seeds, v, create_graph=create_graph)
        result = _zeros_for_none(grads, outputs, strict, create_graph, "product")
    return _finish(outputs, create_graph, is_outputs_tuple), _finish(result, create_graph, is_outputs_tuple)


def _jacobian_rows(output, inputs, create_graph, strict, i):
    """For each input, the Jacobian of one output: its shape, then the input's."""
    rows = [[] for _ in inputs]
    for j in range(output.numel()):
        element = output.reshape(-1)[j]
        grads = _grad((element,), inputs, retain_graph=True, create_graph=create_graph)
        for k, (g, x) in enumerate(zip(grads, inputs, strict=True)):
            if g is None:
                if strict:
                    raise RuntimeError(
                        f"Output {i} of the user-provided function is independent of input {k}. "
                        "This is not allowed in strict mode."
                    )
                g = zeros_like(x)
            elif strict and create_graph and not g.requires_grad:
                raise RuntimeError(
                    f"The jacobian of the user-provided function is independent of input {k}. "
                    "This is not allowed in strict mode when create_graph=True."
                )
            rows[k].append(g)
    shapes = [(*output.shape, *x.shape) for x in inputs]
    return tuple(
        stack(row).view(shape) if row else zeros(shape, dtype=x.dtype, device=x.device)
        for row, shape, x in zip(rows, shapes, inputs, strict=True)
    )


def _jacobian_at_once(output, inputs, create_graph):
    """The same by one backward pass over a batch of rows."""
    n = output.numel()
    shapes = [(*output.shape, *x.shape) for x in inputs]
    if not output.requires_grad or n == 0:
        return tuple(zeros(shape, dtype=x.dtype, device=x.device) for shape, x in zip(shapes, inputs, strict=True))
    basis = eye(n, dtype=output.dtype, device=output.device).view(n, *output.shape)
    grads = autograd_grad(
        output, inputs, basis, retain_graph=True, create_graph=create_graph, allow_unused=True, is_grads_batched=True
    )
    return tuple(
        zeros(shape, dtype=x.dtype, device=x.device) if g is None else g.reshape(shape)
        for g, shape, x in zip(grads, shapes, inputs, strict=True)
    )


def jacobian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The Jacobian of `func` at `inputs`: shape (*output.shape, *input.shape).

    For a tuple of inputs, a tuple; for a tuple of outputs, a tuple of those, one for each output.

    Args:
        create_graph (bool): the Jacobian can be differentiated.
        strict (bool): an output that does not depend on an input is an error instead of zero.
        vectorize (bool): all rows at once, by one backward pass over a batch of them.
        strategy (str): "reverse-mode", or "forward-mode", which needs `vectorize` and takes a pass for each element of
            the inputs.
    """
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function has more outputs '
            'than inputs, "forward-mode" tends to be more performant. Otherwise, prefer to use "reverse-mode".'
        )
    if strict and vectorize:
        raise RuntimeError(
            "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported together. Please "
            "either set `strict=False` or `vectorize=False`."
        )
    if strategy == "forward-mode":
        return _forward_jacobian(func, inputs, create_graph, strict, vectorize)
    with enable_grad():
        is_inputs_tuple, inputs = _as_tuple(inputs, "inputs", "jacobian")
        inputs = _fresh(inputs, create_graph, need_graph=True)
        is_outputs_tuple, outputs = _call(func, inputs, "jacobian", strict)
        result = tuple(
            _finish(
                _jacobian_at_once(o, inputs, create_graph)
                if vectorize
                else _jacobian_rows(o, inputs, create_graph, strict, i),
                create_graph,
                is_inputs_tuple,
            )
            for i, o in enumerate(outputs)
        )
    return result if is_outputs_tuple else result[0]


def _forward_jacobian(func, inputs, create_graph, strict, vectorize):
    """`jacobian` by forward mode: a pass for each element of the inputs."""
    for asked, what in ((create_graph, "create_graph"), (strict, "strict")):
        if asked:
            error = NotImplementedError if what == "create_graph" else RuntimeError
            raise error(
                f'torch.autograd.functional.jacobian: `{what}=True` and `strategy="forward-mode"` are not supported together '
                f'(yet). Please either set `{what}=False` or `strategy="reverse-mode"`.'
            )
    if not vectorize:
        raise NotImplementedError(
            "Computing Jacobian using forward-AD or forward-over-reverse Hessian isonly implemented for `vectorize=True`."
        )
    from ..func._forward import jacfwd

    is_inputs_tuple, inputs = _as_tuple(inputs, "inputs", "jacobian")
    was_tuple = []

    def checked(*args):
        is_tuple, outputs = _as_tuple(func(*args), "outputs of the user-provided function", "jacobian")
        was_tuple.append(is_tuple)
        return outputs

    result = jacfwd(checked, tuple(range(len(inputs))))(*inputs)
    result = tuple(r if is_inputs_tuple else r[0] for r in result)
    return result if was_tuple[0] else result[0]


def _single_output(func, where, strict):
    """`func`, checked to return one tensor with one element."""

    def checked(*inputs):
        is_tuple, outputs = _call(func, inputs, where, strict)
        if is_tuple:
            raise RuntimeError(f"The function given to {where} should return a single Tensor")
        if outputs[0].numel() != 1:
            raise RuntimeError(f"The Tensor returned by the function given to {where} should contain a single element")
        return outputs[0]

    return checked


def hessian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The Hessian of a scalar function: shape (*input.shape, *input.shape), or a tuple of tuples for several inputs.

    Arguments as in `jacobian`.
    """
    is_inputs_tuple, inputs = _as_tuple(inputs, "inputs", "hessian")
    scalar = _single_output(func, "hessian", strict)

    def gradient(*args):
        jac = jacobian(lambda *a: scalar(*a).squeeze(), args, create_graph=True, vectorize=vectorize)
        _check_dependent(jac, "jacobian", strict)
        return jac

    result = jacobian(gradient, inputs, create_graph, strict, vectorize, outer_jacobian_strategy)
    return result if is_inputs_tuple else result[0][0]


def _gradient(func, inputs, v, create_graph, strict, where):
    """The common part of `vhp` and `hvp`: inputs, v, output, and the gradient with its graph."""
    is_inputs_tuple, inputs = _as_tuple(inputs, "inputs", where)
    inputs = _fresh(inputs, create_graph, need_graph=True)
    v = _prepare_v(v, inputs, is_inputs_tuple, create_graph, where, _NEEDED)
    output = _single_output(func, where, strict)(*inputs)
    jac = _grad((output,), inputs, create_graph=True)
    _check_dependent(jac, "jacobian", strict)
    return is_inputs_tuple, inputs, v, output, jac


def vhp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """(output, v^T H): the product of a vector of the inputs' shape with the Hessian of a scalar function."""
    with enable_grad():
        is_tuple, inputs, v, output, jac = _gradient(func, inputs, v, create_graph, strict, "vhp")
    with set_grad_enabled(create_graph or is_grad_enabled()):
        grads = _grad(jac, inputs, v, create_graph=create_graph)
        result = _zeros_for_none(grads, inputs, strict, create_graph, "hessian")
    return _finish((output,), create_graph, False), _finish(result, create_graph, is_tuple)


def hvp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """(output, H v): as `vhp`, with the vector on the right. Equal to it up to rounding, and slower."""
    with enable_grad():
        is_tuple, inputs, v, output, jac = _gradient(func, inputs, v, create_graph, strict, "hvp")
        seeds = tuple(zeros_like(x.detach()).requires_grad_() for x in inputs)
        double_back = _grad(jac, inputs, seeds, create_graph=True)
        _check_dependent(jac, "hessian", strict)
    with set_grad_enabled(create_graph or is_grad_enabled()):
        grads = _grad(double_back, seeds, v, create_graph=create_graph)
        result = _zeros_for_none(grads, inputs, strict, create_graph, "hessian")
    return _finish((output,), create_graph, False), _finish(result, create_graph, is_tuple)


__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
