"""Whether the constants of a recording depend on its inputs: then what was recorded would compute the example's results for ever.

A tensor that no recorded call returned is a constant. Most are from outside of the function, but some are made in it on ways
that a recording does not see: through NumPy, by a copy, as another class. A second run on other inputs tells.
"""

from __future__ import annotations

import warnings
from typing import Any

from .._base import Tensor
from .._C import DisableTorchFunctionSubclass
from .._functions import allclose
from ._record import CannotRecord

__all__ = ["refuse_changing", "same_values"]


def refuse_changing(made: Any, function: Any, args: Any, kwargs: Any, *settings: Any) -> None:
    """CannotRecord if a constant depends on the inputs.

    Args:
        made: the recording of a call of `function`, made by its class from the other arguments.
    """
    first = made.recorder
    if not first.sources:
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            second = type(made)(function, _other(args), _other(kwargs), *settings).recorder
    except Exception:
        # The function takes no other inputs, so that nothing can be said.
        return
    if len(first.sources) != len(second.sources):
        return
    pairs = zip(first.sources, second.sources, first.constants, second.constants, strict=True)
    if not all(a is b or same_values(x, y) for a, b, x, y in pairs):
        raise CannotRecord("a tensor that depends on the inputs was made outside of what can be recorded")


def same_values(a: Tensor, b: Tensor) -> bool:
    """Whether two results are the same but for rounding."""
    if a.shape != b.shape or a.dtype != b.dtype or a.is_quantized != b.is_quantized:
        return False
    if a.is_quantized:
        a, b = a.dequantize(), b.dequantize()
    with DisableTorchFunctionSubclass():
        return allclose(a.detach(), b.detach(), 1e-4, 1e-5, equal_nan=True)


def _other(value: Any) -> Any:
    """Arguments of the same kind with other values, which stay in the range of those given."""
    if isinstance(value, Tensor):
        changed = value.detach()
        changed = (
            changed * 0.5 + 0.25
            if value.is_floating_point() or value.is_complex()
            else changed.flip(*range(value.dim()))
        )
        return changed.requires_grad_(value.requires_grad)
    if isinstance(value, (list, tuple)):
        made = [_other(v) for v in value]
        return made if isinstance(value, list) else tuple(made)
    return {k: _other(v) for k, v in value.items()} if isinstance(value, dict) else value
