"""Branches and loops that PyTorch's tracers keep in a graph: `cond` and `while_loop`. Here they run as Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._base import Tensor
from ..overrides import overridable

__all__ = ["cond", "while_loop"]


@overridable
def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Any = ()) -> Any:
    """`true_fn(*operands)` if the condition holds, else `false_fn(*operands)`.

    Args:
        pred (bool, number or Tensor of one element): the condition.
        true_fn, false_fn (functions): of the same arguments, with results of the same structure.
        operands (tuple or list).

    Raises:
        RuntimeError: a condition of several elements, or functions that are none.
    """
    if not isinstance(pred, (bool, int, float, Tensor)):
        raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
    if isinstance(pred, Tensor) and pred.numel() != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("Expect both branches to be callable.")
    return (true_fn if pred else false_fn)(*operands)


def while_loop(cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Any) -> Any:
    """Calls `values = body_fn(*values)` as long as `cond_fn(*values)` holds; returns the last values.

    Args:
        cond_fn (function): gives a bool or a tensor of one element.
        body_fn (function): gives a tuple with as many values as it takes.
        carried_inputs (tuple or list): the first values.

    Raises:
        RuntimeError: functions that are none, values that are no tuple, or another number of them after a call.
    """
    if not callable(cond_fn) or not callable(body_fn):
        raise RuntimeError("Expect cond_fn and body_fn to be callable.")
    if not isinstance(carried_inputs, (tuple, list)):
        raise RuntimeError(f"Expect carried_inputs to be a tuple or list, but got {type(carried_inputs)}")
    result = values = tuple(carried_inputs)
    while cond_fn(*values):
        result = body_fn(*values)
        found = (result,) if isinstance(result, Tensor) else tuple(result)
        if len(found) != len(values):
            raise RuntimeError(f"body_fn should return {len(values)} values, but it returned {len(found)}")
        values = found
    return result
