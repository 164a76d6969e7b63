"""Private names of `autograd` and its modules that libraries import: calls of the engine, structures of tensors, Jacobians by hand."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .._base import Tensor
from . import _engine
from .functional import _check_dependent

__all__: list[str] = []


def _engine_run_backward(
    t_outputs: Sequence[Any],
    grad_tensors: Sequence[Tensor | None],
    keep_graph: bool,
    create_graph: bool,
    inputs: Sequence[Any] = (),
    allow_unreachable: bool = True,
    accumulate_grad: bool = False,
) -> Any:
    """The engine's pass: adds to `.grad` if `accumulate_grad`, else returns the gradients of `inputs`."""
    found = _engine._run(
        tuple(t_outputs),
        tuple(grad_tensors),
        keep_graph,
        create_graph,
        tuple(inputs),
        allow_unreachable,
        accumulate_grad,
    )
    return None if accumulate_grad else found


def _make_grads(outputs: Sequence[Any], grads: Sequence[Tensor | None], is_grads_batched: bool) -> tuple[Any, ...]:
    """The gradient of each output: the given one, checked, or 1 for a scalar."""
    return _engine.make_grads(outputs, grads, is_grads_batched)


def _tensor_or_tensors_to_tuple(tensors: Any, length: int) -> tuple[Any, ...]:
    """A tensor as a tuple of one, several as a tuple, None as a tuple of that length."""
    if tensors is None:
        return (None,) * length
    return (tensors,) if isinstance(tensors, Tensor) else tuple(tensors)


def _calculate_shape(output: Any, grad: Tensor, is_grads_batched: bool) -> tuple[Any, Any]:
    """The shapes of an output and of its gradient, without the batch."""
    shape = grad.shape[1:] if is_grads_batched else grad.shape
    return _engine._described(output).shape, shape


def _is_checkpoint_valid() -> bool:
    """True: recomputation by hooks works in every pass."""
    return True


def _check_requires_grad(inputs: Any, input_type: str, strict: bool) -> None:
    """RuntimeError, if `strict`, for a tensor that does not depend on the inputs.

    Args:
        inputs (tuple of Tensor).
        input_type (str): "outputs", "grad_inputs", "jacobian" or "hessian".
        strict (bool).
    """
    if input_type not in ("outputs", "grad_inputs", "jacobian", "hessian"):
        raise RuntimeError("Invalid input_type to _check_requires_grad")
    _check_dependent(inputs, input_type, strict)


def _nested_map(condition: Callable[[Any], bool], fn: Callable[[Any], Any], condition_msg: str | None = None) -> Any:
    """A function that applies `fn` to what fulfils a condition in nested tuples, lists and dicts."""

    def apply(obj: Any) -> Any:
        if condition(obj):
            return fn(obj)
        if obj is None:
            return None
        if isinstance(obj, (list, tuple)):
            mapped = [apply(x) for x in obj]
            return type(obj)(*mapped) if hasattr(obj, "_fields") else type(obj)(mapped)
        if isinstance(obj, dict):
            return {key: apply(value) for key, value in obj.items()}
        kind = f"{type(obj).__module__}.{type(obj).__qualname__}"
        hint = f". Accepts only {condition_msg}" if condition_msg else ""
        raise ValueError(f"Auto nesting doesn't know how to process an input object of type {kind}{hint}")

    return apply


def _iter_tensors(obj: Any) -> Iterator[Tensor]:
    """The tensors in nested tuples, lists and dicts."""
    if isinstance(obj, Tensor):
        yield obj
    elif isinstance(obj, (list, tuple, dict)):
        for item in obj.values() if isinstance(obj, dict) else obj:
            yield from _iter_tensors(item)
    elif obj is not None:
        kind = f"{type(obj).__module__}.{type(obj).__qualname__}"
        raise ValueError(
            f"Auto nesting doesn't know how to process an input object of type {kind}. Accepts only Tensors"
        )


def _gradcheck() -> Any:
    return sys.modules[f"{__package__}.gradcheck"]


def get_numerical_jacobian(
    fn: Callable[..., Any], inputs: Any, target: Any = None, eps: float = 1e-3, grad_out: float = 1.0
) -> tuple[Tensor, ...]:
    """Jacobians of the first output of `fn(inputs)` by differences; deprecated. A row for each element of an input."""
    _warn_of("get_numerical_jacobian")
    module = _gradcheck()
    if grad_out != 1.0:
        raise ValueError(
            "Expected grad_out to be 1.0. get_numerical_jacobian no longer supports values of grad_out != 1.0."
        )
    given = (
        tuple(t for t in _engine.as_tuple(inputs) if t.requires_grad) if target is None else _engine.as_tuple(target)
    )
    count = len(module._evaluate(lambda *x: fn(inputs), ()))
    return tuple(module._numerical_jacobians(lambda *x: fn(inputs), (), t, eps, count)[0] for t in given)


def get_analytical_jacobian(inputs: Any, output: Tensor, nondet_tol: float = 0.0, grad_out: float = 1.0) -> Any:
    """(Jacobians by backward, whether two passes agree, whether sizes fit, whether types fit); deprecated."""
    _warn_of("get_analytical_jacobian")
    module = _gradcheck()
    if grad_out != 1.0:
        raise ValueError(
            "Expected grad_out to be 1.0. get_analytical_jacobian no longer supports values of grad_out != 1.0."
        )
    chosen = [t for t in _engine.as_tuple(inputs) if t.requires_grad]
    first, again = (tuple(module._analytical_jacobians(output, chosen, False)) for _ in range(2))
    reentrant = all(bool(((a - b).abs() <= nondet_tol).all()) for a, b in zip(first, again, strict=True))
    types = all(jacobian.dtype == t.dtype for jacobian, t in zip(first, chosen, strict=True))
    return first, reentrant, True, types


def _warn_of(name: str) -> None:
    warnings.warn(
        f"`{name}` was part of PyTorch's private API and not meant to be exposed. We are deprecating it and it will be removed "
        "in a future version of PyTorch.",
        FutureWarning,
        stacklevel=3,
    )
